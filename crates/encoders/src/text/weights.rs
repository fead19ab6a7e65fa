//! `model.safetensors` to a network.

use super::bert::{Affine, Bert, Layer, Norm, Pooling};
use super::config::Config;
use crate::{Error, Result};
use negscale_kernels::Precision;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeSet;
use std::path::Path;

/// Tensors of published files that have no part in embeddings.
const NOT_NEEDED: [&str; 3] = ["embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"];

/// A file of which every tensor is asked for once.
struct Tensors<'a> {
    file: SafeTensors<'a>,
    left: BTreeSet<&'a str>,
    /// Before all names, in files of some programs.
    prefix: &'static str,
}

impl Tensors<'_> {
    /// The numbers of a tensor of this shape.
    fn take(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f32>, String> {
        let name = format!("{}{name}", self.prefix);
        let Ok(tensor) = self.file.tensor(&name) else {
            let some: Vec<&str> = self.left.iter().take(3).copied().collect();
            return Err(format!("there is no tensor {name}; it holds {}, ...", some.join(", ")));
        };
        self.left.remove(name.as_str());
        if tensor.shape() != shape {
            return Err(format!("{name} has shape {:?}, but config.json asks for {shape:?}", tensor.shape()));
        }
        if tensor.dtype() != Dtype::F32 {
            return Err(format!(
                "{name} is {:?}; save the network with torch_dtype=torch.float32",
                tensor.dtype()
            ));
        }
        let numbers: Vec<f32> =
            tensor.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        match numbers.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(format!("{name} holds {} at place {at}", numbers[at])),
            None => Ok(numbers),
        }
    }

    fn norm(&mut self, name: &str, width: usize) -> std::result::Result<Norm, String> {
        let weight = self.take(&format!("{name}.weight"), &[width])?;
        Ok(Norm { weight, bias: self.take(&format!("{name}.bias"), &[width])? })
    }

    /// Weights and biases of several affine maps of the same input, one below the other.
    fn affine(
        &mut self,
        names: &[String],
        [outputs, inputs]: [usize; 2],
        precision: Precision,
    ) -> std::result::Result<Affine, String> {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weight.extend(self.take(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(self.take(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(Affine::new(&weight, bias, inputs, precision))
    }
}

/// Reads the weights of a network.
pub(super) fn read(path: &Path, config: &Config, pooling: Pooling, precision: Precision) -> Result<Bert> {
    let problem = |problem: String| Error::Weights { what: path.display().to_string(), problem };
    let bytes = std::fs::read(path).map_err(|error| problem(error.to_string()))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| problem(format!("{error}; it is no complete .safetensors file")))?;
    let left: BTreeSet<&str> = file.names().into_iter().collect();
    let prefix = if left.contains("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
    let mut tensors = Tensors {
        left,
        prefix,
        file: SafeTensors::deserialize(&bytes).map_err(|error| problem(error.to_string()))?,
    };
    let bert = network(&mut tensors, config, pooling, precision).map_err(problem)?;
    let extra = tensors.left.iter().find(|name| {
        !NOT_NEEDED.contains(&name.strip_prefix(prefix).unwrap_or(name)) && !name.starts_with("cls.")
    });
    match extra {
        Some(extra) => {
            Err(problem(format!("it holds {extra}, which a network of this config.json does not have")))
        }
        None => Ok(bert),
    }
}

fn network(
    tensors: &mut Tensors,
    config: &Config,
    pooling: Pooling,
    precision: Precision,
) -> std::result::Result<Bert, String> {
    let (width, wide) = (config.hidden_size, config.intermediate_size);
    let words = tensors.take("embeddings.word_embeddings.weight", &[config.vocab_size, width])?;
    let shape = [config.max_position_embeddings, width];
    let mut positions = tensors.take("embeddings.position_embeddings.weight", &shape)?;
    let types = tensors.take("embeddings.token_type_embeddings.weight", &[config.type_vocab_size, width])?;
    for row in positions.chunks_exact_mut(width) {
        for (x, kind) in row.iter_mut().zip(&types) {
            *x += kind;
        }
    }
    let norm = tensors.norm("embeddings.LayerNorm", width)?;
    let mut layers = Vec::new();
    for n in 0..config.num_hidden_layers {
        let named = |name: &str| format!("encoder.layer.{n}.{name}");
        let maps = ["query", "key", "value"].map(|map| named(&format!("attention.self.{map}")));
        layers.push(Layer {
            attention: tensors.affine(&maps, [width, width], precision)?,
            output: tensors.affine(&[named("attention.output.dense")], [width, width], precision)?,
            output_norm: tensors.norm(&named("attention.output.LayerNorm"), width)?,
            wide: tensors.affine(&[named("intermediate.dense")], [wide, width], precision)?,
            narrow: tensors.affine(&[named("output.dense")], [width, wide], precision)?,
            narrow_norm: tensors.norm(&named("output.LayerNorm"), width)?,
        });
    }
    let heads = config.num_attention_heads;
    Ok(Bert { words, positions, norm, layers, width, heads, epsilon: config.layer_norm_eps, pooling })
}
