//! The `negscale` command; everything is in the library beside it.

use std::error::Error;
use std::process::ExitCode;

/// Counts memory while a benchmark asks it to.
#[global_allocator]
static METER: negscale_cli::Meter = negscale_cli::Meter;

fn main() -> ExitCode {
    // Whoever needs threads first would panic where the system has none left, as with little memory (`ulimit -v`).
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global()
        && let Some(reason) = error.source()
    {
        eprintln!(
            "error: cannot start threads: {reason}: raise the limits on memory (ulimit -v) and processes (ulimit -u)"
        );
        return ExitCode::from(2);
    }
    ExitCode::from(negscale_cli::main(std::env::args_os()))
}
