//! What is encoded.

use crate::Result;
use crate::error::bail;
use anyhow::Context;
use negscale_data::{Image, ImageStore};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Items in their order.
pub enum Source<'a> {
    /// Pictures.
    Pictures(&'a dyn ImageStore),
    /// Texts.
    Texts(&'a [String]),
}

impl Source<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Pictures(store) => store.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// sha256 of an item as it is stored.
    pub(super) fn digest(&self, item: usize) -> negscale_data::Result<[u8; 32]> {
        Ok(match self {
            Self::Pictures(store) => {
                let mut hash = Sha256::new();
                if let Some(shape) = store.shape() {
                    let sizes = [shape.width, shape.height, shape.channels];
                    sizes.iter().for_each(|&size| hash.update((size as u64).to_le_bytes()));
                }
                hash.update(store.bytes(item)?);
                hash.finalize().into()
            }
            Self::Texts(texts) => Sha256::digest(&texts[item]).into(),
        })
    }
}

/// A picture in three colours, as encoders take it.
pub(super) fn in_colour(image: Image) -> (Vec<u8>, [usize; 2]) {
    let Image { shape, pixels } = image;
    let sides = [shape.width, shape.height];
    match shape.channels {
        3 => (pixels, sides),
        _ => (pixels.into_iter().flat_map(|value| [value; 3]).collect(), sides),
    }
}

/// The texts of a file: a column of a table (.csv, .tsv), or the lines of a .txt file.
///
/// # Errors
/// Says what is missing.
pub fn texts(path: &Path, column: Option<&str>) -> Result<Vec<String>> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let reading = || format!("cannot read {}", path.display());
    if ending == "txt" {
        let text = std::fs::read_to_string(path).with_context(reading)?;
        return Ok(text.lines().map(str::to_owned).collect());
    }
    if ending != "csv" && ending != "tsv" {
        bail!("{}: texts are read from .csv, .tsv and .txt files", path.display());
    }
    let Some(column) = column else {
        bail!("{}: say which column holds the texts with --text-column", path.display())
    };
    let delimiter = if ending == "tsv" { b'\t' } else { b',' };
    let mut table = csv::ReaderBuilder::new().delimiter(delimiter).from_path(path).with_context(reading)?;
    let header = table.headers().with_context(reading)?.clone();
    let Some(at) = header.iter().position(|name| name == column) else {
        let names: Vec<&str> = header.iter().collect();
        bail!("{} has no column `{column}`; its columns are {}", path.display(), names.join(", "))
    };
    let rows =
        table.records().map(|row| Ok(row.with_context(reading)?.get(at).unwrap_or_default().to_owned()));
    rows.collect()
}
