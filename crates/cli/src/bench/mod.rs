//! `negscale bench`: how fast things are on this machine.

mod analyse;
mod encoder;
mod epoch;
mod host;
mod knn;
mod loader;
mod plugin;
mod step;

use clap::Subcommand;
use negscale_nets::{PRECISIONS, Precision, fast_precision, precision_named};

/// Measure speed on this machine.
#[derive(Subcommand)]
pub enum Bench {
    Plugin(plugin::Arguments),
    Encoder(encoder::Arguments),
    Loader(loader::Arguments),
    Knn(knn::Arguments),
    Step(step::Arguments),
    Host(host::Arguments),
    Analyse(analyse::Arguments),
}

/// The precision that a word asks for.
fn read_precision(word: &str) -> anyhow::Result<Precision> {
    let found = if word == "auto" { Some(fast_precision()) } else { precision_named(word) };
    found.ok_or_else(|| {
        anyhow::anyhow!("--precision {word} is not known: give auto, {}", PRECISIONS.join(" or "))
    })
}

/// Runs one benchmark.
pub fn run(which: Bench) -> anyhow::Result<()> {
    match which {
        Bench::Plugin(arguments) => plugin::run(arguments),
        Bench::Encoder(arguments) => encoder::run(arguments),
        Bench::Loader(arguments) => loader::run(arguments),
        Bench::Knn(arguments) => knn::run(arguments),
        Bench::Step(arguments) => step::run(arguments),
        Bench::Host(arguments) => host::run(arguments),
        Bench::Analyse(arguments) => analyse::run(arguments),
    }
}
