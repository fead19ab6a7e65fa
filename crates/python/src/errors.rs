//! Errors of the libraries as exceptions of Python, in the words of the command.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::any::Any;
use std::error::Error;
use std::io::{self, ErrorKind};

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
    match error.chain().find_map(of_system) {
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

/// What the system said, if it is behind an error. Messages of the libraries are complete, so they name no sources.
fn of_system(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    use {
        negscale_audit as audit, negscale_data as data, negscale_methods as methods, negscale_nets as nets,
    };
    use {negscale_report as report, negscale_run as run};
    if let Some(error) = error.downcast_ref::<io::Error>() {
        Some(error.kind())
    } else if let Some(error) = error.downcast_ref() {
        match error {
            run::Error::Io(error) => of_system(error),
            run::Error::Methods(error) => of_system(error),
            run::Error::Nets(error) => of_system(error),
            run::Error::Audit(error) => of_system(error),
            run::Error::Data(error) => of_system(error),
            run::Error::Report(error) => of_system(error),
            run::Error::Other(error) => error.chain().find_map(of_system),
            _ => None,
        }
    } else if let Some(error) = error.downcast_ref() {
        match error {
            methods::Error::File { r#source, .. } => of_system(r#source),
            methods::Error::Data(error) => of_system(error),
            methods::Error::Nets(error) => of_system(error),
            methods::Error::Audit(error) => of_system(error),
            _ => None,
        }
    } else if let Some(error) = error.downcast_ref() {
        match error {
            data::Error::Io { r#source, .. } => of_system(r#source),
            data::Error::Item { r#source, .. } => of_system(&**r#source),
            _ => None,
        }
    } else if let Some(error) = error.downcast_ref() {
        match error {
            nets::Error::File { r#source, .. } => of_system(r#source),
            nets::Error::Data(error) => of_system(error),
            _ => None,
        }
    } else if let Some(audit::Error::File { r#source, .. }) = error.downcast_ref() {
        of_system(r#source)
    } else if let Some(report::Error::Io { r#source, .. } | report::Error::Folder(r#source)) =
        error.downcast_ref()
    {
        of_system(r#source)
    } else {
        None
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
