//! Arrays of numpy as slices.

use crate::errors::input_error;
use negscale::Real;
use numpy::{
    Element, PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use std::borrow::Cow;

/// Rows of an array with two axes, one after the other; copied only where they are not so already.
pub(crate) fn rows<'a, T: Element + Copy>(array: &'a PyReadonlyArray2<'_, T>) -> Cow<'a, [T]> {
    match array.as_slice() {
        // Columns one after the other are a slice, too.
        Ok(slice) if array.is_c_contiguous() => Cow::Borrowed(slice),
        _ => Cow::Owned(array.as_array().iter().copied().collect()),
    }
}

/// What somebody handed over in place of an array, in words.
pub(crate) fn describe(given: &Bound<'_, PyAny>) -> String {
    match given.cast::<PyUntypedArray>() {
        Ok(array) => format!("{} of shape {:?}", array.dtype(), array.shape()),
        Err(_) => given.get_type().name().map_or("something else".into(), |name| name.to_string()),
    }
}

/// One number per sample: an array with one axis, or anything that numpy makes one of.
pub(crate) fn numbers<T: Real + Element>(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    if let Ok(array) = given.extract::<PyReadonlyArray1<'_, T>>() {
        return Ok(array.as_array().to_vec());
    }
    let made = as_array(given, "float64");
    match made.as_ref().map(|made| made.extract::<PyReadonlyArray1<'_, f64>>()) {
        Ok(Ok(array)) => Ok(array.as_array().iter().map(|&x| T::of(x)).collect()),
        _ => Err(input_error(format!("{what} must be one number per sample; got {}", describe(given)))),
    }
}

/// One class index per sample: an array of whole numbers with one axis, or a list of them.
pub(crate) fn indices(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(array) = given.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(array.as_array().to_vec());
    }
    let wrong =
        || input_error(format!("{what} must be one whole number per sample; got {}", describe(given)));
    let array = given.py().import("numpy")?.call_method1("asarray", (given,)).map_err(|_| wrong())?;
    let is_whole =
        array.cast::<PyUntypedArray>().is_ok_and(|array| matches!(array.dtype().kind(), b'i' | b'u'));
    // A list without elements says nothing of its kind.
    let is_empty = array.len().is_ok_and(|len| len == 0);
    if !(is_whole || is_empty) {
        return Err(wrong());
    }
    let array = as_array(&array, "int64")?;
    let array = array.extract::<PyReadonlyArray1<'_, i64>>().map_err(|_| wrong())?;
    Ok(array.as_array().to_vec())
}

/// Class indices that are not negative.
pub(crate) fn classes(what: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let class = |(at, index): (usize, i64)| {
        usize::try_from(index).map_err(|_| {
            input_error(format!(
                "{what}: sample {at} has {index}, which is negative; leave samples without a label out"
            ))
        })
    };
    indices(what, given)?.into_iter().enumerate().map(class).collect()
}

/// Rows of numbers as f32: features of any float type, in any order of memory. Returns their dimension, too.
pub(crate) fn features(what: &str, given: &Bound<'_, PyAny>) -> PyResult<(Vec<f32>, usize)> {
    let made = as_array(given, "float32");
    match made.as_ref().map(|made| made.extract::<PyReadonlyArray2<'_, f32>>()) {
        Ok(Ok(array)) => Ok((rows(&array).into_owned(), array.shape()[1])),
        _ => Err(input_error(format!(
            "{what} must be an array with a row of numbers per sample; got {}",
            describe(given)
        ))),
    }
}

/// `numpy.asarray` with this element type.
fn as_array<'py>(given: &Bound<'py, PyAny>, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
    given.py().import("numpy")?.call_method1("asarray", (given, dtype))
}

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
