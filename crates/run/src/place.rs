//! Where a run's folder is: its name, and what it must be apart from.

use crate::Result;
use crate::error::bail;
use crate::recipe::{Judge, Recipe};
use anyhow::Context;
use std::path::{Component, Path, PathBuf};

/// Default folder of a run, named after what it is and the fingerprint of its settings.
pub fn default_place(recipe: &Recipe) -> PathBuf {
    let fingerprint = recipe.fingerprint();
    let end = &fingerprint[..fingerprint.len().min(8)];
    Path::new("runs").join(format!("{}-{end}", title(recipe)))
}

/// Data, noise, host and plug-in as the first part of a file name.
pub fn title(recipe: &Recipe) -> String {
    let data = Path::new(&recipe.data.data).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let noise = recipe.data.noise.to_string();
    let parts: Vec<&str> = match recipe.judge {
        Judge::Training => vec![&data, &noise, &recipe.train.host, &recipe.train.plugin],
        Judge::CrossFit => vec![&data, &noise, "audit"],
    };
    let parts: Vec<String> = parts
        .iter()
        .map(|part| {
            let safe = part.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' });
            safe.take(40).collect()
        })
        .collect();
    parts.join("_")
}

/// Refuses a folder for results that is data, lies in data, or holds files that are read.
pub fn keep_apart(place: &Path, inputs: &[PathBuf]) -> Result<()> {
    let out = resolve(place)?;
    for input in inputs {
        // What is not there is told by whoever wants to read it.
        let Ok(read) = input.canonicalize() else { continue };
        let (shown, input) = (place.display(), input.display());
        if out == read || (read.is_dir() && out.starts_with(&read)) {
            bail!(
                "{shown} is inside the data ({input}); results must not be mixed with data: choose an --out elsewhere"
            );
        }
        if read.starts_with(&out) {
            bail!("{shown} contains the input {input}: choose an --out that contains none of the data");
        }
    }
    Ok(())
}

/// A path without links, also of what is not there yet.
fn resolve(place: &Path) -> Result<PathBuf> {
    let whole = std::path::absolute(place).with_context(|| format!("cannot resolve {}", place.display()))?;
    let found = whole.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let (ancestor, found) = found.with_context(|| format!("cannot resolve {}", place.display()))?;
    // What is not there is no link, so that `..` leads back the way it came.
    let rest = whole.strip_prefix(ancestor).into_iter().flat_map(Path::components);
    Ok(rest.fold(found, |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
        path
    }))
}
