//! Wrong labels made to order, by the same draws as those of the command.

use crate::arrays::{describe, features};
use crate::calls::detached;
use crate::errors::{input_error, raise};
use negscale_data::folders::Folders;
use negscale_data::noise::{NoiseSpec, apply};
use negscale_data::{Dataset, Image, ImageStore, Items, Noise, NoiseContext, Result, Shape};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// Pictures in memory, one after the other.
struct Pictures {
    pixels: Vec<u8>,
    shape: Shape,
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.pixels.len() / self.shape.len()
    }

    fn load(&self, index: usize) -> Result<Image> {
        Ok(Image { shape: self.shape, pixels: self.bytes(index)?.into_owned() })
    }

    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        let size = self.shape.len();
        Ok(Cow::Borrowed(&self.pixels[index * size..(index + 1) * size]))
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.shape)
    }
}

/// A dataset of these items; without any, of items of which nothing is known.
fn dataset(classes: Vec<String>, labels: Vec<u32>, items: Option<&Bound<'_, PyAny>>) -> PyResult<Dataset> {
    let Some(items) = items else {
        let nothing = vec![0.0; labels.len()];
        return Dataset::from_features("labels", classes, nothing, 1, labels).map_err(raise);
    };
    if let Ok(pictures) = items.extract::<PyReadonlyArray4<'_, u8>>() {
        let [_, height, width, channels] = pictures.shape()[..] else {
            return Err(input_error(format!(
                "pictures must be N x height x width x channels; got {}",
                describe(items)
            )));
        };
        let shape = Shape { width, height, channels };
        if shape.is_empty() {
            return Err(input_error(format!(
                "pictures need at least one pixel each; got {}",
                describe(items)
            )));
        }
        let pixels = pictures.as_array().iter().copied().collect();
        let items = Items::Images(Arc::new(Pictures { pixels, shape }));
        return Dataset::new("labels", classes, items, labels, None).map_err(raise);
    }
    let (values, dim) = features("features", items)?;
    Dataset::from_features("labels", classes, values, dim, labels).map_err(raise)
}

/// What noise did.
#[pyclass(frozen, get_all, module = "negscale._negscale")]
struct DrawnNoise {
    /// The given label of every item, as a number.
    labels: Py<PyArray1<u32>>,
    /// What became of the true labels: counts, C x C.
    counts: Py<PyArray2<u64>>,
    /// The rate asked for, where there is one.
    nominal: Option<f64>,
    /// Share of labels that are not the true ones.
    achieved: f64,
    /// The noise model, with defaults filled in.
    spec: String,
    /// The law in a sentence.
    convention: String,
    /// What it was drawn with; 0 where nothing is drawn.
    seed: u64,
    /// Identifies labels and noise, as in the command's noise files.
    hash: String,
}

/// Draws noise over true labels; `folders` are where tables of human labels are looked for.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names where they are given")]
#[pyo3(signature = (spec, labels, classes, items=None, seed=0, superclasses=None, data_dir=None))]
fn draw_noise<'py>(
    py: Python<'py>,
    spec: &str,
    labels: PyReadonlyArray1<'py, u32>,
    classes: Vec<String>,
    items: Option<&Bound<'py, PyAny>>,
    seed: u64,
    superclasses: Option<Vec<u32>>,
    data_dir: Option<PathBuf>,
) -> PyResult<DrawnNoise> {
    let spec: NoiseSpec = spec.parse().map_err(raise)?;
    if items.is_none() && matches!(spec, NoiseSpec::Ins { .. }) {
        let problem = "depends on the items: hand them over as features=, rows of numbers or pictures";
        return Err(input_error(format!("noise `{spec}` {problem}")));
    }
    let dataset = dataset(classes, labels.as_array().to_vec(), items)?;
    let folders = Folders::of_process(data_dir.as_deref()).looked_in().to_vec();
    let context = NoiseContext { superclasses, folders };
    let drawn = detached(py, || apply(&spec, &dataset, seed, &context))?.map_err(raise)?;
    let Noise { labels, nominal, achieved, transition, convention, seed, spec, hash, .. } = drawn;
    let count = dataset.classes().len();
    let counts = PyArray1::from_iter(py, transition.counts().iter().flatten().copied());
    Ok(DrawnNoise {
        labels: PyArray1::from_vec(py, labels).unbind(),
        counts: counts.reshape([count, count])?.unbind(),
        nominal,
        achieved,
        spec: spec.to_string(),
        convention,
        seed,
        hash,
    })
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DrawnNoise>()?;
    module.add_function(wrap_pyfunction!(draw_noise, module)?)
}
