//! An audit of rows larger than memory, in parts: [`fit`] models to a sample, [`score`] shards, on one machine or many, and [`merge`] what
//! they found. [`whole`] does all three one after another.
//!
//! The folder holds `audit.safetensors` (the models and all that was decided), `fit.json` (the same for people), `shards/`, and after the merge
//! `audit.csv`, `top.csv`, `corrected.csv`, `audit.json` and `report.html`. Whoever scores a shard holds the folder only for as long as it takes to
//! enter the names of its two files, so that many can work at once.

mod fit;
mod merge;
mod page;
mod score;
mod source;

pub use fit::{FitOptions, Fitted, fit};
pub use merge::{FILES, Merged, merge};
pub use negscale_audit::shards::{ScoredShard, ShardNumber, Work};
pub use score::{Session, score};

use crate::error::bail;
use crate::folder::open_own;
use crate::{Result, Stop};
use negscale_atomic_file::OwnFolder;
use negscale_audit::crossfit::AuditModel;
use negscale_data::own::OwnOptions;
use negscale_data::stream::RowStream;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The models.
const MODEL: &str = "audit.safetensors";
/// Subfolder of what was scored.
const SHARDS: &str = "shards";
/// How long to wait for a folder that another process holds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a shard's rows, as numbers of four bytes, where nobody says how many shards there should be.
const SHARD_BYTES: u64 = 1 << 30;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows of the sample are read.
    Read,
    /// Models are fitted.
    Fit,
    /// A shard is scored.
    Score(ShardNumber),
    /// Lists and tables are written.
    Merge,
}

/// Is told what is being done, and how much of it is done, from 0 to 1.
pub type Tell<'a> = &'a (dyn Fn(Step, f64) + Sync);

/// What a model's file remembers of the rows and of how it was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Remembered {
    /// Where the rows are, as it was said.
    data: PathBuf,
    options: OwnOptions,
    name: String,
    /// Whether the merge needs what stands beside the rows: ids of their own, true labels or sources.
    #[serde(alias = "has_ids")]
    is_looked_at: bool,
    fingerprint: String,
    rows: u64,
    /// Rows that were wanted in the sample.
    sample: u64,
    seed: u64,
}

impl Remembered {
    fn of(model: &AuditModel) -> Result<Self> {
        Ok(serde_json::from_value(model.about().settings.clone())?)
    }
}

/// Fits, scores all shards and merges them. What was done before is kept if it was made of the same rows by the same settings.
///
/// # Errors
/// As those three.
pub fn whole(
    data: &Path,
    own: &OwnOptions,
    options: &FitOptions,
    out: &Path,
    tell: Tell,
    stop: &Stop,
) -> Result<Merged> {
    let begun = Instant::now();
    let Fitted { stream, .. } = fit(data, own, options, out, tell, stop)?;
    let bytes = stream.rows().saturating_mul(4 * stream.dim() as u64);
    let shards = u32::try_from(bytes.div_ceil(SHARD_BYTES)).unwrap_or(u32::MAX).max(1);
    let session = Session::with(out, stream)?;
    for number in 1..=shards {
        session.score(ShardNumber::new(number, shards)?, tell, stop)?;
    }
    drop(session);
    let mut merged = merge(out, None, tell, stop)?;
    merged.results["seconds"] = begun.elapsed().as_secs_f64().into();
    Ok(merged)
}

/// The rows of an audit in parts, opened again to look at some of them.
#[derive(Debug)]
pub struct Reopened {
    /// What tells these rows and labels from any others.
    pub fingerprint: String,
    /// The rows, which are still those that were audited.
    pub rows: RowStream,
}

/// Opens the rows of an audit in parts again, where they were.
///
/// # Errors
/// They are no longer there or have changed, or the folder holds no models.
pub fn reopen(out: &Path) -> Result<Reopened> {
    let remembered = Remembered::of(&load(out)?)?;
    let rows = source::open_again(&remembered, None)?;
    Ok(Reopened { fingerprint: remembered.fingerprint, rows })
}

/// Whether a folder holds an audit in parts.
#[must_use]
pub fn is_in_parts(out: &Path) -> bool {
    out.join(MODEL).is_file()
}

/// Reads the models of a folder.
fn load(out: &Path) -> Result<AuditModel> {
    let path = out.join(MODEL);
    if !path.exists() {
        bail!(
            "{}: there are no models to score with; fit them first: negscale audit fit DATA --out {}",
            path.display(),
            out.display()
        );
    }
    Ok(AuditModel::load(&path)?)
}

/// Enters names of files that are about to be written, waiting for others that do the same.
fn claim<'a>(out: &Path, names: impl IntoIterator<Item = &'a str> + Clone) -> Result<()> {
    let begun = Instant::now();
    loop {
        match OwnFolder::open(out) {
            Ok(own) => return Ok(own.claim(names)?),
            Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {}
            Err(_) => return open_own(out).and_then(|own| Ok(own.claim(names)?)),
        }
    }
}
