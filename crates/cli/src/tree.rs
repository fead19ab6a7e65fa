//! `negscale tree`: shows, converts and draws a class tree.

use anyhow::{Context, Result};
use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use negscale_run::load_tree;
use std::fs;
use std::path::PathBuf;

/// Show a class tree: which classes are related, which are not.
///
/// TREE is a built-in name, a .tsv table (node, parent, depth, class_index), or indented text; permuted:SEED:TREE is that tree
/// with its classes permuted.
#[derive(clap::Args)]
pub struct Arguments {
    /// Built-in name or file [default: list the built-in trees].
    tree: Option<String>,
    /// Classes up to this distance are related.
    #[arg(long, default_value_t = 3)]
    eta_min: u32,
    /// Classes beyond this distance are unrelated.
    #[arg(long, default_value_t = 5)]
    eta_max: u32,
    /// Read TREE as WordNet's `data.noun`; classes are the synset ids in this file, one per line.
    #[arg(long, value_name = "IDS")]
    wordnet: Option<PathBuf>,
    /// Draw the tree to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the tree as a table to this file.
    #[arg(long, value_name = "FILE")]
    tsv: Option<PathBuf>,
    /// Print the distances between all classes.
    #[arg(long)]
    distances: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Some(name) = &arguments.tree else {
        say!("Built-in class trees; `negscale tree NAME` shows one:");
        for name in Taxonomy::builtin_names() {
            say!("  {name:<22} {} classes", Taxonomy::builtin(name)?.classes());
        }
        return Ok(());
    };
    let tree = load_tree(name, arguments.wordnet.as_deref())?;
    say_part!("{}", tree.summary(Thresholds::new(arguments.eta_min, arguments.eta_max)?));
    if arguments.distances {
        print_distances(&tree)?;
    }
    for (file, content) in
        [(&arguments.svg, Taxonomy::to_svg as fn(&_) -> _), (&arguments.tsv, Taxonomy::to_tsv)]
    {
        if let Some(file) = file {
            fs::write(file, content(&tree)).with_context(|| format!("cannot write {}", file.display()))?;
            say!("written: {}", file.display());
        }
    }
    Ok(())
}

fn print_distances(tree: &Taxonomy) -> Result<()> {
    let distances = tree.distances();
    let width = tree.class_names().map(|name| name.chars().count()).max().unwrap_or(0);
    say!();
    for (class, name) in tree.class_names().enumerate() {
        let row: Vec<String> = distances.row(class).iter().map(|d| format!("{d:>2}")).collect();
        say!("{name:>width$}  {}", row.join(" "));
    }
    Ok(())
}
