//! The `negscale` command as a library: what its binary runs, and the command in the Python package. One file per verb; exit codes:
//! 0 success, 1 a finding, 2 an error.

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
mod audit_cluster;
mod audit_parts;
mod bench;
mod cluster;
mod config;
mod data;
mod doctor;
mod embed;
mod eval;
mod meter;
mod methods;
mod noise;
mod paragraph;
mod predict;
mod program;
mod report;
mod review;
mod settings;
mod shell;
mod source;
mod sweep;
mod train;
mod tree;

pub use meter::Meter;
pub use program::starts_with;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;

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
    Review(review::Arguments),
    #[command(subcommand)]
    Sweep(sweep::Sweep),
    Tree(tree::Arguments),
    #[command(subcommand)]
    Data(data::Data),
    Noise(noise::Arguments),
    Eval(eval::Arguments),
    Predict(predict::Arguments),
    Embed(embed::Arguments),
    Analyse(Box<analyse::Arguments>),
    Report(report::Arguments),
    Methods(methods::Arguments),
    Doctor(doctor::Arguments),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Bench(bench::Bench),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// Runs the command with these arguments, of which the first is its name, and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let outcome = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run(arguments.verb),
        // Also help that was asked for. Where it cannot be printed, nobody is left to tell.
        Err(said) => {
            drop(said.print());
            return said.exit_code() as u8;
        }
    };
    // Of a last line without an end, which would stay behind where this is a part of another program.
    let outcome = outcome.and_then(|()| Ok(std::io::stdout().flush()?));
    match outcome {
        Ok(()) => 0,
        // Whoever read our output has seen enough (`negscale ... | head`).
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) if error.is::<audit::TooMany>() => {
            eprintln!("{error}");
            1
        }
        Err(error) => match error.downcast_ref() {
            Some(negscale_run::Error::Stopped(signal)) => {
                eprintln!("{error}");
                128u8.saturating_add(*signal as u8)
            }
            _ => {
                eprintln!("error: {error:#}");
                2
            }
        },
    }
}

fn run(verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::Train(arguments) => train::run(*arguments),
        Verb::Audit(arguments) => audit::run(*arguments),
        Verb::Review(arguments) => review::run(arguments),
        Verb::Sweep(what) => sweep::run(what),
        Verb::Tree(arguments) => tree::run(arguments),
        Verb::Data(what) => data::run(what),
        Verb::Noise(arguments) => noise::run(arguments),
        Verb::Eval(arguments) => eval::run(arguments),
        Verb::Predict(arguments) => predict::run(arguments),
        Verb::Embed(arguments) => embed::run(arguments),
        Verb::Analyse(arguments) => analyse::run(*arguments),
        Verb::Report(arguments) => report::run(arguments),
        Verb::Methods(arguments) => methods::run(arguments),
        Verb::Doctor(arguments) => doctor::run(arguments),
        Verb::Config(what) => config::run(what),
        Verb::Bench(which) => bench::run(which),
        Verb::Completions(arguments) => shell::completions(&arguments),
        Verb::Man(arguments) => shell::man(&arguments),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        || error.downcast_ref().is_some_and(negscale_run::Error::is_closed_pipe)
}
