//! The `negscale` command; everything is in the library beside it.

use std::process::ExitCode;

/// Counts memory while a benchmark asks it to.
#[global_allocator]
static METER: negscale_cli::Meter = negscale_cli::Meter;

fn main() -> ExitCode {
    ExitCode::from(negscale_cli::main(std::env::args_os()))
}
