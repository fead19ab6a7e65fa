//! `negscale report`: several runs side by side.

use anyhow::Result;
use negscale_report::Comparison;
use std::path::PathBuf;

/// Compare runs on one page: mean and standard deviation over seeds, the plug-in's gain, curves and further plots.
///
/// Runs that differ only in their seeds form a group. A folder next to the page holds the tables as CSV, Markdown and LaTeX.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run folders, or folders that contain run folders.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE.html", default_value = "comparison.html")]
    out: PathBuf,
    /// Also write every plot as an SVG file.
    #[arg(long)]
    plots: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { runs, out, plots } = arguments;
    if out.file_name().is_none() || out.is_dir() {
        anyhow::bail!("--out {} is a folder; name a file in it, such as comparison.html", out.display());
    }
    let comparison = Comparison::read(&runs)?;
    for note in comparison.notes() {
        eprintln!("note: {note}");
    }
    let mut written = comparison.write(&out)?;
    if plots {
        written.push(comparison.write_plots(&out)?);
    }
    for (_, table) in comparison.tables()?.into_iter().filter(|(name, _)| *name != "runs") {
        say!("{}", table.to_text());
    }
    for path in written {
        say!("written: {}", path.display());
    }
    Ok(())
}
