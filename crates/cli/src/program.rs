//! How the command starts itself again: for each run of a sweep, and for each case of a benchmark.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

static STARTS_WITH: OnceLock<Program> = OnceLock::new();

/// A program, and the words before the first of the command's own.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) words: Vec<OsString>,
}

/// Says that the command is a part of another program, which runs it when started like this. Without this call, and at a second one,
/// nothing changes: the command is this process's executable.
pub fn starts_with(program: PathBuf, words: Vec<OsString>) {
    STARTS_WITH.get_or_init(|| Program { path: program, words });
}

/// What to start.
pub(crate) fn program() -> Result<Program> {
    match STARTS_WITH.get() {
        Some(program) => Ok(program.clone()),
        None => {
            let path = std::env::current_exe().context("cannot find this program's own executable")?;
            Ok(Program { path, words: Vec::new() })
        }
    }
}
