//! `negscale bench`: how fast things are on this machine.

mod plugin;

use clap::Subcommand;

/// Measure speed on this machine.
#[derive(Subcommand)]
pub enum Bench {
    Plugin(plugin::Arguments),
}

/// Runs one benchmark.
pub fn run(which: Bench) -> anyhow::Result<()> {
    match which {
        Bench::Plugin(arguments) => plugin::run(arguments),
    }
}
