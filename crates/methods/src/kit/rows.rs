//! One row of numbers per sample: checked, normalised, and their labels.

use crate::{Error, Result};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Places in a batch, for choosing rows of tensors by.
pub fn places(places: &[usize], device: &Device) -> Tensor<1, Int> {
    let places: Vec<i64> = places.iter().map(|&place| place as i64).collect();
    let count = places.len();
    Tensor::from_data(TensorData::new(places, [count]), device)
}

/// Rows scaled to length 1, as cosines need them; a row of zeros stays as it is, at cosine 0 to everyone.
pub fn normalise(features: &[f32], dim: usize) -> Result<Vec<f32>> {
    count("features", features, dim)?;
    let mut z = features.to_vec();
    for row in z.chunks_exact_mut(dim) {
        let length = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        if length > 0.0 {
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        }
    }
    Ok(z)
}

/// Number of rows, if they are whole and finite.
pub(super) fn count(what: &'static str, values: &[f32], dim: usize) -> Result<usize> {
    let problem = if dim == 0 || !values.len().is_multiple_of(dim) {
        format!("{} values cannot be rows of {dim}: hand over whole rows", values.len())
    } else if let Some(at) = values.iter().position(|x| !x.is_finite()) {
        let (sample, place) = (at / dim, at % dim);
        format!("sample {sample} has {} at place {place}: training may have diverged", values[at])
    } else {
        return Ok(values.len() / dim);
    };
    Err(Error::Samples { what, problem })
}

/// Whether there is a label for every sample, and each names a class.
pub(super) fn check_labels(what: &'static str, labels: &[u32], samples: usize, classes: usize) -> Result<()> {
    let problem = if labels.len() != samples {
        format!("{} labels for {samples} samples: every sample needs one", labels.len())
    } else if let Some(at) = labels.iter().position(|&label| label as usize >= classes) {
        format!("label {} of sample {at} is not a class: there are {classes}", labels[at])
    } else {
        return Ok(());
    };
    Err(Error::Samples { what, problem })
}

/// Values widened, if there are any and all are finite.
pub(super) fn wide<T: Copy + Into<f64>>(what: &'static str, values: &[T]) -> Result<Vec<f64>> {
    let wide: Vec<f64> = values.iter().map(|&x| x.into()).collect();
    match wide.iter().position(|x| !x.is_finite()) {
        Some(at) => {
            let problem = format!("sample {at} has {}: training may have diverged", wide[at]);
            Err(Error::Samples { what, problem })
        }
        None => Ok(wide),
    }
}

/// Place of the largest value, the first of equals.
pub(super) fn largest<T: PartialOrd>(row: &[T]) -> usize {
    (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
}
