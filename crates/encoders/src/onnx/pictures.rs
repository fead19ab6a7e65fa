//! Networks that take one picture.

use super::fit::fit;
use super::{Network, OnnxSettings, inputs, listed, load, problem};
use crate::{Encoder, Picture, Result};
use rten::{DataType, NodeId, Value, ValueOrView, ValueType};
use std::path::Path;

/// Rows or columns of a picture at most: what a network works with at a time stays in memory.
const LARGEST: usize = 4096;

/// A network in an ONNX file that takes a picture: one input of floats, 1 x 3 x rows x columns (or with any number of pictures).
///
/// Of every picture the largest piece in the middle with the shape that the network wants is resized to it. The numbers of the output are
/// left as they are. Files come from people: a network is free to ask for as much memory and time as it likes, so use only those of people
/// you trust.
pub struct OnnxPictures {
    network: Network,
    input: NodeId,
    size: [usize; 2],
    mean: [f32; 3],
    deviation: [f32; 3],
}

impl OnnxPictures {
    /// Reads an `.onnx` file, and runs it once. The file's name is the encoder's.
    ///
    /// # Errors
    /// Says why the file cannot be used.
    pub fn open(path: &Path, settings: &OnnxSettings) -> Result<Self> {
        let model = load(path)?;
        let [input] = &inputs(&model)[..] else {
            let all = inputs(&model);
            let names = listed(all.iter().map(|input| input.name.as_str()));
            return Err(problem(
                path,
                format!("it takes {names}, but a network for pictures takes one input"),
            ));
        };
        if input.dtype.is_some_and(|dtype| dtype != ValueType::Tensor(DataType::Float)) {
            return Err(problem(path, format!("its input {} is not of type float", input.name)));
        }
        let [rows, columns] = match input.shape.as_deref() {
            None => [None, None],
            Some(&[None | Some(1), None | Some(3), rows, columns]) => [rows, columns],
            Some(shape) => {
                let sizes = shape.iter().map(|size| size.map_or("any".into(), |size| size.to_string()));
                let shape = sizes.collect::<Vec<String>>().join(" x ");
                let input = &input.name;
                let wanted = "1 x 3 x rows x columns; export it with one picture as example, or with a free first size";
                return Err(problem(path, format!("its input {input} is {shape}, but should be {wanted}")));
            }
        };
        let open = settings.size.unwrap_or([224, 224]);
        let size = [rows.unwrap_or(open[0]), columns.unwrap_or(open[1])];
        if settings.size.is_some_and(|given| given != size) {
            return Err(problem(
                path,
                format!("it takes pictures of {} x {} pixels and no others", size[0], size[1]),
            ));
        }
        if size.iter().any(|side| !(1..=LARGEST).contains(side)) {
            return Err(problem(
                path,
                format!("{size:?} is no size of a picture: 1 to {LARGEST} pixels a side"),
            ));
        }
        let scales = settings.mean.iter().chain(&settings.deviation);
        if scales.clone().any(|x| !x.is_finite()) || settings.deviation.iter().any(|&x| x <= 0.0) {
            return Err(problem(path, "mean and deviation must be numbers, and deviations larger than 0"));
        }
        let (input, mean, deviation) = (input.node, settings.mean, settings.deviation);
        let blank = vec![0.0f32; 3 * size[0] * size[1]];
        let trial = vec![(input, value(size, blank).map_err(|error| problem(path, error))?)];
        Ok(Self { network: Network::new(path, model, settings, trial)?, input, size, mean, deviation })
    }
}

fn value(size: [usize; 2], numbers: Vec<f32>) -> std::result::Result<ValueOrView<'static>, String> {
    let value = Value::from_shape([1, 3, size[0], size[1]], numbers).map_err(|error| error.to_string())?;
    Ok(value.into())
}

impl Encoder<Picture<'_>> for OnnxPictures {
    fn name(&self) -> &str {
        &self.network.name
    }

    fn width(&self) -> usize {
        self.network.width
    }

    fn encode(&self, items: &[Picture<'_>], rows: &mut [f32]) -> Result<()> {
        self.network.encode(items, rows, |picture| {
            let Picture { pixels, width, height } = *picture;
            let count = width.checked_mul(height).and_then(|count| count.checked_mul(3));
            if count != Some(pixels.len()) || count == Some(0) {
                return Err(format!("{} bytes are no picture of {width} x {height} pixels", pixels.len()));
            }
            let numbers = fit(picture, self.size, self.mean, self.deviation);
            Ok(vec![(self.input, value(self.size, numbers)?)])
        })
    }
}
