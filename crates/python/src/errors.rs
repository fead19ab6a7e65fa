//! Errors of the libraries as exceptions of Python, in the words of the command.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::any::Any;
use std::io::ErrorKind;

/// An exception class of `negscale._errors`, looked up once.
struct Class {
    name: &'static str,
    found: PyOnceLock<Py<PyType>>,
}

impl Class {
    const fn new(name: &'static str) -> Self {
        Self { name, found: PyOnceLock::new() }
    }

    fn error(&self, message: String) -> PyErr {
        Python::attach(|py| match self.found.import(py, "negscale._errors", self.name) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(problem) => problem,
        })
    }
}

static BASE: Class = Class::new("NegScaleError");
static INPUT: Class = Class::new("InputError");
static FILE: Class = Class::new("FileError");

/// Input that does not fit: `InputError`, which is a `ValueError`.
pub(crate) fn input_error(message: impl Into<String>) -> PyErr {
    INPUT.error(message.into())
}

/// Any error of the libraries. A file that cannot be read or written is a `FileError` (an `OSError`), a stop that was asked for a
/// `KeyboardInterrupt`, everything else an `InputError`.
pub(crate) fn raise(error: impl Into<anyhow::Error>) -> PyErr {
    let error = error.into();
    let message = format!("{error:#}");
    let io =
        |part: &(dyn std::error::Error + 'static)| part.downcast_ref::<std::io::Error>().map(|io| io.kind());
    match error.chain().find_map(io) {
        _ if matches!(error.downcast_ref(), Some(negscale_run::Error::Stopped(_))) => {
            PyKeyboardInterrupt::new_err(message)
        }
        // What a file holds is input, too.
        Some(ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof) | None => {
            input_error(message)
        }
        Some(_) => FILE.error(message),
    }
}

/// A panic that was caught: a fault of ours.
pub(crate) fn fault(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let said = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    BASE.error(format!(
        "internal error: {said}. This is a fault of negscale, not of your data: please report it"
    ))
}

/// Adds what this file has to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
