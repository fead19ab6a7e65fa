//! `negscale bench`: how fast things are on this machine.

mod analyse;
mod host;
mod knn;
mod loader;
mod plugin;
mod step;

use clap::Subcommand;

/// Measure speed on this machine.
#[derive(Subcommand)]
pub enum Bench {
    Plugin(plugin::Arguments),
    Loader(loader::Arguments),
    Knn(knn::Arguments),
    Step(step::Arguments),
    Host(host::Arguments),
    Analyse(analyse::Arguments),
}

/// Runs one benchmark.
pub fn run(which: Bench) -> anyhow::Result<()> {
    match which {
        Bench::Plugin(arguments) => plugin::run(arguments),
        Bench::Loader(arguments) => loader::run(arguments),
        Bench::Knn(arguments) => knn::run(arguments),
        Bench::Step(arguments) => step::run(arguments),
        Bench::Host(arguments) => host::run(arguments),
        Bench::Analyse(arguments) => analyse::run(arguments),
    }
}
