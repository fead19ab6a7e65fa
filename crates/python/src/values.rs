//! Settings as Python has them, as TOML has them.

use crate::errors::input_error;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::path::PathBuf;
use toml::{Table, Value};

/// A dict of settings as a table. A setting that is `None` is one that was not given.
pub(crate) fn table(given: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in given {
        let name: String =
            key.extract().map_err(|_| input_error(format!("settings are called by strings; got {key}")))?;
        // `lambda` is a word of Python's own.
        let name = if name == "lam" { "lambda".to_owned() } else { name };
        if !value.is_none() {
            let value = value_of(&name, &value)?;
            table.insert(name, value);
        }
    }
    Ok(table)
}

fn value_of(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let list = |items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| -> PyResult<Value> {
        Ok(Value::Array(items.map(|item| value_of(name, &item)).collect::<PyResult<_>>()?))
    };
    if given.is_instance_of::<PyBool>() {
        Ok(Value::Boolean(given.extract()?))
    } else if given.is_instance_of::<PyInt>() {
        let whole = given.extract::<i64>();
        Ok(Value::Integer(
            whole.map_err(|_| input_error(format!("setting `{name}` = {given} is too large")))?,
        ))
    } else if given.is_instance_of::<PyFloat>() {
        Ok(Value::Float(given.extract()?))
    } else if let Ok(text) = given.cast::<PyString>() {
        Ok(Value::String(text.to_string()))
    } else if let Ok(dict) = given.cast::<PyDict>() {
        Ok(Value::Table(table(dict)?))
    } else if let Ok(items) = given.cast::<PyList>() {
        list(&mut items.iter())
    } else if let Ok(items) = given.cast::<PyTuple>() {
        list(&mut items.iter())
    } else if let Ok(switch) = given.extract::<bool>() {
        // Of numpy, as are the next two.
        Ok(Value::Boolean(switch))
    } else if let Ok(number) = given.extract::<i64>() {
        Ok(Value::Integer(number))
    } else if let Ok(number) = given.extract::<f64>() {
        Ok(Value::Float(number))
    } else if let Ok(path) = given.extract::<PathBuf>() {
        Ok(Value::String(path.to_str().map(str::to_owned).ok_or_else(|| {
            input_error(format!("setting `{name}` = {}: the path is not UTF-8; rename it", path.display()))
        })?))
    } else {
        let kind = given.get_type();
        Err(input_error(format!(
            "setting `{name}` is {kind}; give a string, a number, True or False, a list or a dict"
        )))
    }
}
