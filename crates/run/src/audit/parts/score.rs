//! Shards scored by models that were fitted before.

use super::source::{Source, open_again, unless_stopped};
use super::{MODEL, Remembered, SHARDS, Step, Tell, claim, load};
use crate::folder::version;
use crate::{Result, Stop};
use anyhow::Context;
use negscale_audit::crossfit::AuditModel;
use negscale_audit::shards::{
    MadeBy, ScoredShard, ShardNumber, block_rows, hash_file, score_shard, shard_range,
};
use negscale_data::stream::RowStream;
use std::path::{Path, PathBuf};

/// Models and rows, opened to score shards.
#[derive(Debug)]
pub struct Session {
    out: PathBuf,
    model: AuditModel,
    made_by: MadeBy,
    stream: RowStream,
}

impl Session {
    /// Opens the models of a folder, and their rows: where they were, or where `data` says.
    ///
    /// # Errors
    /// If nothing was fitted there, or the rows are not those that the models were fitted to.
    pub fn open(out: &Path, data: Option<&Path>) -> Result<Self> {
        let stream = open_again(&Remembered::of(&load(out)?)?, data)?;
        Self::with(out, stream)
    }

    /// The same with rows that are known to be those of the models.
    pub(super) fn with(out: &Path, stream: RowStream) -> Result<Self> {
        let made_by = MadeBy {
            model: hash_file(&out.join(MODEL))?,
            version: version(),
            instructions: negscale_cpu::instructions(),
        };
        Ok(Self { out: out.to_owned(), model: load(out)?, made_by, stream })
    }

    /// Scores one shard, unless that was done before.
    ///
    /// # Errors
    /// If rows cannot be read, files cannot be written, or `stop` was asked.
    pub fn score(&self, shard: ShardNumber, tell: Tell, stop: &Stop) -> Result<ScoredShard> {
        stop.check()?;
        let folder = self.out.join(SHARDS);
        let names = ["scores", "json"]
            .map(|kind| format!("{SHARDS}/shard-{}-of-{}.{kind}", shard.number(), shard.of()));
        claim(&self.out, names.iter().map(String::as_str))?;
        negscale_atomic_file::create_folders(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let rows = shard_range(self.stream.rows(), block_rows(self.stream.dim()), shard);
        let source = Source { stream: &self.stream, stop, tell: Some((tell, Step::Score(shard), rows)) };
        unless_stopped(score_shard(&source, &self.model, shard, &self.made_by, &folder), stop)
    }
}

/// Scores one shard of the rows that models in a folder were fitted to; `data` says where the rows are, if not where they were.
///
/// # Errors
/// As [`Session::open`] and [`Session::score`].
pub fn score(
    out: &Path,
    data: Option<&Path>,
    shard: ShardNumber,
    tell: Tell,
    stop: &Stop,
) -> Result<ScoredShard> {
    Session::open(out, data)?.score(shard, tell, stop)
}
