//! Items to rows of numbers by an encoder: pictures in all forms that the loader knows, or texts.
//!
//! Rows are made in shards, each a file that is complete or absent, and joined at the end; whoever is stopped goes on with the first shard that
//! is missing. A shard carries a key, sha256 over the encoder, its weights, the CPU instructions and the shard's own items, so that one of
//! other data or settings is never taken: it is made again.

mod encoders;
mod file;
mod shards;
mod source;

pub use encoders::{ENCODERS, Kind, Known, Loaded, known};
pub use file::Format;
pub use negscale_encoders::OnnxSettings;
pub use shards::{SHARD, Shards};
pub use source::{Source, texts};

use crate::folder::open_own;
use crate::{Result, Stop};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// What was embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedded {
    /// Rows.
    pub rows: usize,
    /// Numbers in a row.
    pub width: usize,
    /// Rows that an earlier call had made.
    pub resumed: usize,
}

/// Where the shards of a file are until it is whole.
#[must_use]
pub fn parts(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".parts");
    name.into()
}

/// Writes the rows of all items to `out`, in a format by its ending, and tells `progress` how many there are. Stopped or killed at any
/// moment, the same call goes on where it was and leaves the same bytes. `together` items are read and encoded at a time (0: as many as suit
/// the threads); no bit depends on it.
///
/// # Errors
/// Another ending than `.npy` and `.safetensors`, items that cannot be read (all are named; the rows of the others are kept for the next
/// call), a full disk, or [`Error::Stopped`](crate::Error::Stopped).
pub fn embed(
    source: &Source,
    encoder: &Loaded,
    out: &Path,
    together: usize,
    progress: &mut dyn FnMut(usize),
    stop: &Stop,
) -> Result<Embedded> {
    let format = Format::of(out)?;
    let place = parts(out);
    let own = open_own(&place)?;
    own.remove_parts()?;
    let file = |name: &str| Ok(own.file(name)?);
    let shards = Shards::new(source, encoder, together);
    let resumed = shards.fill(&file, progress, stop)?;
    let (rows, width) = (source.len(), encoder.width());
    let mut failed = None;
    let written = negscale_atomic_file::write_atomic(out, |to| {
        format.begin(to, rows, width, encoder)?;
        shards.each(&file, &mut |bytes| std::io::Write::write_all(to, bytes)).map_err(|error| {
            failed = Some(error);
            std::io::Error::other("stopped")
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written.with_context(|| format!("cannot write {}", out.display()))?;
    own.dissolve().with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(Embedded { rows, width, resumed })
}
