//! The `negscale` command. One file per verb; exit codes: 0 fine, 1 a finding, 2 an error.

mod bench;
mod data;
mod meter;
mod noise;
mod source;
mod tree;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Counts memory while a benchmark asks it to.
#[global_allocator]
static METER: meter::Meter = meter::Meter;

/// Learning from data whose labels are wrong.
#[derive(Parser)]
#[command(version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Tree(tree::Arguments),
    #[command(subcommand)]
    Data(data::Data),
    Noise(noise::Arguments),
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Tree(arguments) => tree::run(arguments),
        Verb::Data(what) => data::run(what),
        Verb::Noise(arguments) => noise::run(arguments),
        Verb::Bench(which) => bench::run(which),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
