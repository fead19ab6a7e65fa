//! The `negscale` command. One file per verb; exit codes: 0 success, 1 a finding, 2 an error.

/// Prints a line; a reader that has gone away is an error, not a panic.
macro_rules! say {
    ($($text:tt)*) => { { use std::io::Write; writeln!(std::io::stdout(), $($text)*)? } };
}

/// As `say!`, without ending the line.
macro_rules! say_part {
    ($($text:tt)*) => { { use std::io::Write; write!(std::io::stdout(), $($text)*)? } };
}

mod analyse;
mod audit;
mod audit_parts;
mod bench;
mod config;
mod data;
mod eval;
mod meter;
mod methods;
mod noise;
mod paragraph;
mod predict;
mod report;
mod settings;
mod shell;
mod source;
mod sweep;
mod train;
mod tree;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Counts memory while a benchmark asks it to.
#[global_allocator]
static METER: meter::Meter = meter::Meter;

/// Train on data with wrong labels, and find them.
#[derive(Parser)]
#[command(name = "negscale", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Train(Box<train::Arguments>),
    Audit(Box<audit::Arguments>),
    #[command(subcommand)]
    Sweep(sweep::Sweep),
    Tree(tree::Arguments),
    #[command(subcommand)]
    Data(data::Data),
    Noise(noise::Arguments),
    Eval(eval::Arguments),
    Predict(predict::Arguments),
    Analyse(Box<analyse::Arguments>),
    Report(report::Arguments),
    Methods(methods::Arguments),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Bench(bench::Bench),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Train(arguments) => train::run(*arguments),
        Verb::Audit(arguments) => audit::run(*arguments),
        Verb::Sweep(what) => sweep::run(what),
        Verb::Tree(arguments) => tree::run(arguments),
        Verb::Data(what) => data::run(what),
        Verb::Noise(arguments) => noise::run(arguments),
        Verb::Eval(arguments) => eval::run(arguments),
        Verb::Predict(arguments) => predict::run(arguments),
        Verb::Analyse(arguments) => analyse::run(*arguments),
        Verb::Report(arguments) => report::run(arguments),
        Verb::Methods(arguments) => methods::run(arguments),
        Verb::Config(what) => config::run(what),
        Verb::Bench(which) => bench::run(which),
        Verb::Completions(arguments) => shell::completions(&arguments),
        Verb::Man(arguments) => shell::man(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough (`negscale ... | head`).
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<audit::TooMany>() => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
        Err(error) => match error.downcast_ref() {
            Some(negscale_run::Error::Stopped(signal)) => {
                eprintln!("{error}");
                ExitCode::from(128u8.saturating_add(*signal as u8))
            }
            _ => {
                eprintln!("error: {error:#}");
                ExitCode::from(2)
            }
        },
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        || error.downcast_ref().is_some_and(negscale_run::Error::is_closed_pipe)
}
