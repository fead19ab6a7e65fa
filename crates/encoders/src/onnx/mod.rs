//! Networks of one's own, from ONNX files, run by the `rten` crate.
//!
//! Every item goes through the network alone: no row depends on its company, and files that were exported for batches of one work. Items
//! are shared among the threads instead.

mod fit;
mod pictures;
mod texts;

pub use pictures::OnnxPictures;
pub use texts::OnnxTexts;

use crate::{Error, Result};
use rayon::prelude::*;
use rten::{Dimension, Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView, ValueType};
use rten_tensor::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// What an ONNX file does not say of itself. The default is what most networks for photographs want.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxSettings {
    /// Rows and columns of the pictures that the network takes, where the file leaves them open; without it 224 x 224.
    pub size: Option<[usize; 2]>,
    /// Taken away from red, green and blue between 0 and 1. The default is the mean of ImageNet.
    pub mean: [f32; 3],
    /// What is left is divided by this. The default is the standard deviation of ImageNet.
    pub deviation: [f32; 3],
    /// Tokens of a text at most, with those that the tokeniser adds: 256.
    pub most_tokens: usize,
    /// Name of the output to take. Without it the last one that is a row for each item is taken, else the last one that can be averaged to
    /// one: over tokens (items x tokens x numbers) or over pixels (items x numbers x rows x columns).
    pub output: Option<String>,
}

impl Default for OnnxSettings {
    fn default() -> Self {
        let (mean, deviation) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
        Self { size: None, mean, deviation, most_tokens: 256, output: None }
    }
}

/// One input of a network.
struct Input {
    node: NodeId,
    name: String,
    dtype: Option<ValueType>,
    /// `None` for sizes that are left open; none at all if the file says nothing.
    shape: Option<Vec<Option<usize>>>,
}

/// A network whose output has been chosen.
struct Network {
    name: String,
    model: Model,
    pool: Arc<ThreadPool>,
    output: NodeId,
    width: usize,
}

/// A problem with a file.
fn problem(path: &Path, problem: impl Into<String>) -> Error {
    Error::Weights { what: path.display().to_string(), problem: problem.into() }
}

/// Runs code of others that should not panic, but may when it is given what nobody thought of.
fn guarded<T, E: std::fmt::Display>(
    call: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the runtime `rten` gave up on it (what it said is above)".into()),
    }
}

fn load(path: &Path) -> Result<Model> {
    guarded(|| Model::load_file(path)).map_err(|error| {
        problem(path, format!("{error}; it should be an .onnx file as torch.onnx.export writes it"))
    })
}

fn inputs(model: &Model) -> Vec<Input> {
    let one = |&node: &NodeId| {
        let info = model.node_info(node);
        let size = |dimension: Dimension| match dimension {
            Dimension::Fixed(size) => Some(size),
            Dimension::Symbolic(_) => None,
        };
        Input {
            node,
            name: info.as_ref().and_then(|info| info.name()).unwrap_or_default().to_owned(),
            dtype: info.as_ref().and_then(|info| info.dtype()),
            shape: info.and_then(|info| info.shape()).map(|shape| shape.into_iter().map(size).collect()),
        }
    };
    model.input_ids().iter().map(one).collect()
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

impl Network {
    /// Chooses the output, by running the network once.
    fn new(
        path: &Path,
        model: Model,
        settings: &OnnxSettings,
        trial: Vec<(NodeId, ValueOrView)>,
    ) -> Result<Self> {
        let pool = Arc::new(ThreadPool::with_num_threads(rayon::current_num_threads()));
        let named =
            |node: NodeId| model.node_info(node).and_then(|info| info.name()).unwrap_or_default().to_owned();
        let outputs: Vec<NodeId> = match &settings.output {
            None => model.output_ids().to_vec(),
            Some(name) => model.output_ids().iter().copied().filter(|&node| named(node) == *name).collect(),
        };
        if outputs.is_empty() {
            let names: Vec<String> = model.output_ids().iter().map(|&node| named(node)).collect();
            let asked = settings.output.as_deref().unwrap_or("any");
            let has = listed(names.iter().map(String::as_str));
            return Err(problem(path, format!("it has no output {asked}; it has {has}")));
        }
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let values = guarded(|| model.run(trial, &outputs, Some(options)))
            .map_err(|error| problem(path, format!("a first run of it failed: {error}")))?;
        let shapes: Vec<String> = outputs
            .iter()
            .zip(&values)
            .map(|(&node, value)| format!("{} {:?}", named(node), shape(value)))
            .collect();
        let rows: Vec<(NodeId, usize, usize)> = outputs
            .iter()
            .zip(values)
            .filter_map(|(&node, value)| {
                let rank = shape(&value).len();
                Some((node, row(value).ok()?.len(), rank))
            })
            .collect();
        let last = |rows: &[(NodeId, usize, usize)], plain: bool| {
            rows.iter().rev().find(|&&(_, _, rank)| !plain || rank == 2).copied()
        };
        let Some((output, width, _)) = last(&rows, true).or_else(|| last(&rows, false)) else {
            return Err(problem(
                path,
                format!(
                    "no output is a row of numbers for an item, nor can be averaged to one: {}",
                    shapes.join(", ")
                ),
            ));
        };
        let name = path.file_stem().map_or_else(|| "onnx".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, model, pool, output, width })
    }

    /// Runs every item by itself, with the inputs that `prepare` makes of it.
    fn encode<Item: Sync>(
        &self,
        items: &[Item],
        rows: &mut [f32],
        prepare: impl Fn(&Item) -> std::result::Result<Vec<(NodeId, ValueOrView<'static>)>, String> + Sync,
    ) -> Result<()> {
        assert!(
            Some(rows.len()) == items.len().checked_mul(self.width),
            "{} numbers for {} rows of {}",
            rows.len(),
            items.len(),
            self.width
        );
        let one = |item: &Item| {
            let inputs = prepare(item)?;
            let options = RunOptions::default().with_thread_pool(Some(self.pool.clone()));
            let values = guarded(|| self.model.run(inputs, &[self.output], Some(options)))?;
            let numbers = row(values.into_iter().next().ok_or("the network gave nothing")?)?;
            match numbers.iter().find(|x| !x.is_finite()) {
                Some(odd) => Err(format!("the network gave {odd}")),
                None if numbers.len() != self.width => {
                    Err(format!("the network gave {} numbers, but {} before", numbers.len(), self.width))
                }
                None => Ok(numbers),
            }
        };
        let mut work: Vec<(usize, &Item, &mut [f32])> = items
            .iter()
            .zip(rows.chunks_exact_mut(self.width))
            .enumerate()
            .map(|(at, (item, row))| (at, item, row))
            .collect();
        // In the pool of the network, so that what it shares among threads stays in the same pool.
        self.pool.run(|| {
            work.par_iter_mut().with_max_len(1).try_for_each(|(item, from, to)| {
                to.copy_from_slice(&one(from).map_err(|problem| Error::Item { item: *item, problem })?);
                Ok(())
            })
        })
    }
}

fn shape(value: &Value) -> Vec<usize> {
    match value {
        Value::FloatTensor(tensor) => tensor.shape().to_vec(),
        Value::Int32Tensor(tensor) => tensor.shape().to_vec(),
        Value::Int8Tensor(tensor) => tensor.shape().to_vec(),
        Value::UInt8Tensor(tensor) => tensor.shape().to_vec(),
        _ => Vec::new(),
    }
}

/// The row of the only item in a value: as it is, or the mean over tokens or pixels.
fn row(value: Value) -> std::result::Result<Vec<f32>, String> {
    let Value::FloatTensor(tensor) = value else { return Err("the output is not of type float".into()) };
    let (shape, numbers) = (tensor.shape().to_vec(), tensor.to_vec());
    // Places to average over, and how far apart the numbers of a row and those of neighbouring places are.
    let (places, width, [apart, next]) = match shape[..] {
        [1, width] => (1, width, [1, 0]),
        [1, tokens, width] => (tokens, width, [1, width]),
        [1, width, height, columns] => (height * columns, width, [height * columns, 1]),
        _ => return Err(format!("the output has shape {shape:?}, which is no row of numbers for one item")),
    };
    if places == 0 || width == 0 {
        return Err(format!("the output has shape {shape:?}: it holds nothing"));
    }
    let mean =
        |i: usize| (0..places).map(|place| numbers[i * apart + place * next]).sum::<f32>() / places as f32;
    Ok((0..width).map(mean).collect())
}
