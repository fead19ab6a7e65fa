//! Weights as `torch.save` wrote them, read without running anything that the file says.

use crate::{Error, Result};
use pytorch_reader::{DType, PytorchReader};
use std::path::Path;

/// The most bytes that a file of weights may have.
const LARGEST: u64 = 1 << 30;

/// A state dict.
pub(super) struct State {
    what: String,
    tensors: PytorchReader,
}

impl State {
    /// Opens a file. Tensors are read when they are asked for.
    pub fn open(path: &Path) -> Result<Self> {
        let what = path.display().to_string();
        let unusable = |problem: String| Error::Weights { what: what.clone(), problem };
        let file = std::fs::metadata(path).map_err(|e| unusable(e.to_string()))?;
        if !file.is_file() || file.len() > LARGEST {
            return Err(unusable(format!("it is no file of at most {LARGEST} bytes")));
        }
        let tensors = PytorchReader::new(path)
            .map_err(|e| unusable(format!("it is not a state dict saved by PyTorch, or damaged: {e}")))?;
        Ok(Self { what, tensors })
    }

    /// The numbers of a tensor that must be there, in this shape.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let unusable = |problem: String| Error::Weights { what: self.what.clone(), problem };
        let Some(tensor) = self.tensors.get(name) else {
            return Err(unusable(format!("it has no tensor `{name}`; it is of another network")));
        };
        if tensor.dtype() != DType::F32 || tensor.shape() != shape {
            return Err(unusable(format!(
                "`{name}` is {:?} {:?}, not F32 {shape:?}; it is of another network",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        let bytes = tensor.read().map_err(|e| unusable(format!("`{name}` cannot be read: {e}")))?;
        let (numbers, []) = bytes.as_chunks::<4>() else {
            return Err(unusable(format!("`{name}` is cut off")));
        };
        let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        if numbers.len() != shape.iter().product::<usize>() {
            return Err(unusable(format!("`{name}` has {} numbers for {shape:?}", numbers.len())));
        }
        match numbers.iter().all(|value| value.is_finite()) {
            true => Ok(numbers),
            false => Err(unusable(format!("`{name}` holds values that are not numbers"))),
        }
    }
}
