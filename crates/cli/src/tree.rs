//! `negscale tree`: shows, converts and draws a class tree.

use anyhow::{Context, Result, bail};
use negscale::Taxonomy;
use negscale::taxonomy::{Thresholds, WordNetOptions};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Show a class tree: which classes are related, which are not.
///
/// TREE is a built-in name, a .tsv table (node, parent, depth, class_index), or indented text.
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
    let tree = load(name, arguments.wordnet.as_deref())?;
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

/// A tree by its name or file.
pub(crate) fn load(name: &str, synsets: Option<&Path>) -> Result<Taxonomy> {
    let path = Path::new(name);
    if let Some(list) = synsets {
        let ids = fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
        let ids: Vec<&str> = ids.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let nouns = File::open(path).with_context(|| format!("cannot read {name}"))?;
        return Ok(Taxonomy::from_wordnet(
            "wordnet",
            BufReader::new(nouns),
            &ids,
            &WordNetOptions::default(),
        )?);
    }
    if !path.exists() {
        if name.contains(['/', '\\', '.']) {
            bail!(
                "there is no file `{name}`, and no built-in tree of that name; `negscale tree` lists the built-in ones"
            );
        }
        return Ok(Taxonomy::builtin(name)?);
    }
    if path.is_dir() {
        bail!("{name} is a folder; give a built-in name, a .tsv table or a text file");
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
    // A table has tabs inside its lines; indentation has them only in front.
    let table = text.lines().any(|line| !line.starts_with('#') && line.trim().contains('\t'));
    Ok(if table {
        Taxonomy::from_tsv(&stem, &text)?
    } else {
        Taxonomy::from_indented(&stem, &text, &[""; 0])?
    })
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
