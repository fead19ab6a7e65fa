//! Which Parquet files of a folder belong together, by Hugging Face's way of naming them.

use super::TESTS;
use crate::{Error, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Shards of the training split, and of every part that it could be judged by, the best first.
pub(super) type Shards = (Vec<PathBuf>, Vec<Vec<PathBuf>>);

/// The shards in a folder or in its `data`, if there are any; `train-...` and `test-...` by their names.
pub(super) fn find(root: &Path) -> Result<Option<Shards>> {
    for folder in [root.to_owned(), root.join("data")] {
        if !folder.is_dir() {
            continue;
        }
        let list = std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        let mut all = Vec::new();
        for entry in list {
            let path = entry.map_err(|e| Error::io(&folder, e))?.path();
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if path.extension().is_some_and(|e| e == "parquet") && !hidden {
                all.push(path);
            }
        }
        all.sort_unstable();
        let of = |split: &str| -> Vec<PathBuf> {
            let begins = |path: &&PathBuf| {
                let stem = path.file_stem().map_or(Cow::Borrowed(""), |stem| stem.to_string_lossy());
                stem.strip_prefix(split).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
            };
            all.iter().filter(begins).cloned().collect()
        };
        let train = of("train");
        if !train.is_empty() {
            let tests: Vec<_> =
                TESTS.iter().map(|split| of(split)).filter(|shards| !shards.is_empty()).collect();
            for shards in std::iter::once(&train).chain(&tests) {
                check_complete(&folder, shards)?;
            }
            return Ok(Some((train, tests)));
        }
        if !all.is_empty() {
            check_complete(&folder, &all)?;
            return Ok(Some((all, Vec::new())));
        }
    }
    Ok(None)
}

/// `x-00001-of-00003` says how many shards there should be.
fn check_complete(folder: &Path, shards: &[PathBuf]) -> Result<()> {
    for shard in shards {
        // Names that are no text are not Hugging Face's.
        let Some(stem) = shard.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let Some((begin, total)) = stem.rsplit_once("-of-") else { continue };
        let Some((split, _)) = begin.rsplit_once('-') else { continue };
        let digits: String = total.chars().take_while(char::is_ascii_digit).collect();
        let Ok(total) = digits.parse::<usize>() else { continue };
        let alike = |path: &&PathBuf| {
            let rest = path.file_name().and_then(|name| name.to_str()).and_then(|n| n.strip_prefix(split));
            rest.is_some_and(|rest| rest.contains(&format!("-of-{digits}")))
        };
        let there = shards.iter().filter(alike).count();
        if there != total {
            return Err(Error::format(
                folder,
                None,
                format!(
                    "{there} of {total} shards `{split}-...-of-{digits}.parquet` are there: add the others"
                ),
            ));
        }
    }
    Ok(())
}
