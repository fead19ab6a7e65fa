//! Class trees by name or file.

use crate::error::bail;
use crate::{Result, recipe};
use anyhow::Context;
use negscale::Taxonomy;
use negscale::taxonomy::WordNetOptions;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

/// A class tree by its built-in name, or from a table, indented text, or (with a file of synset ids) WordNet's `data.noun`;
/// `permuted:SEED:TREE` is any of these with its classes permuted.
pub fn load_tree(name: &str, synsets: Option<&Path>) -> Result<Taxonomy> {
    match recipe::permuted(name)? {
        Some((_, "auto")) => {
            bail!("which tree? Without data, write permuted:SEED:TREE, such as permuted:3:cifar10")
        }
        Some((seed, tree)) => return Ok(load_tree(tree, synsets)?.permuted(seed)?),
        None => {}
    }
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
