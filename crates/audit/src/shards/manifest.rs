//! What a shard was made of, and what was counted in it.

use super::{Counts, ShardNumber};
use crate::{Error, Result};
use negscale_atomic_file::write_bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Version of the files.
const FORMAT: u32 = 1;

/// By what scores were made. Shards belong together if model and version are the same; the same to the last bit they are only where the
/// instructions are the same too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Hash of the model's file ([`hash_file`]).
    pub model: String,
    /// Version of the program.
    pub version: String,
    /// Instructions of the CPU that have a part in numbers.
    pub instructions: String,
}

/// `shard-K-of-N.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Number of the shard, from 1.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Its rows.
    pub rows: Range<u64>,
    /// How many rows there are in all shards.
    pub total: u64,
    /// Numbers of a row.
    pub dim: usize,
    /// Rows of a block.
    pub block: u64,
    /// By what it was made.
    #[serde(flatten)]
    pub made_by: MadeBy,
    /// Hash of the labels of all rows, not only of this shard's.
    pub labels: String,
    /// Hash of what was read: ids, labels and numbers of the shard's rows.
    pub input: String,
    /// Hash of the file of scores.
    pub scores: String,
    /// What was counted.
    pub counts: Counts,
}

/// What of a manifest is known before any row is read.
pub(super) struct Plan<'a> {
    pub shard: ShardNumber,
    pub rows: Range<u64>,
    pub total: u64,
    pub dim: usize,
    pub block: u64,
    pub classes: usize,
    pub made_by: &'a MadeBy,
    pub labels: String,
}

/// The two files of a shard.
pub(super) fn paths(folder: &Path, shard: u32, shards: u32) -> (PathBuf, PathBuf) {
    let name = |extension: &str| folder.join(format!("shard-{shard}-of-{shards}.{extension}"));
    (name("scores"), name("json"))
}

pub(super) fn hex(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of a file, such as that of a model.
///
/// # Errors
/// If it cannot be read.
pub fn hash_file(path: &Path) -> Result<String> {
    let hash = || -> io::Result<String> {
        let (mut file, mut hash, mut bytes) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut bytes)? {
                0 => return Ok(hex(hash.finalize())),
                count => hash.update(&bytes[..count]),
            }
        }
    };
    hash().map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Hash of labels.
pub(super) fn hash_labels(labels: &[u32]) -> String {
    let mut hash = Sha256::new();
    let mut bytes = Vec::with_capacity(1 << 16);
    for labels in labels.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
        hash.update(&bytes);
    }
    hex(hash.finalize())
}

impl Manifest {
    pub(super) fn new(plan: &Plan, input: String, scores: String, counts: Counts) -> Self {
        let Plan { shard, total, dim, block, .. } = *plan;
        Self {
            format: FORMAT,
            shard: shard.number(),
            shards: shard.of(),
            rows: plan.rows.clone(),
            total,
            dim,
            block,
            made_by: plan.made_by.clone(),
            labels: plan.labels.clone(),
            input,
            scores,
            counts,
        }
    }

    /// Reads one; none if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::File { path: path.to_owned(), source }),
        };
        let wrong = |problem: String| Error::Shard { path: path.to_owned(), problem };
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| {
            wrong(format!("not a manifest of a shard, or damaged ({error}): score the shard again"))
        })?;
        let Range { start, end } = manifest.rows;
        let is_sound = manifest.format == FORMAT && start <= end && end <= manifest.total;
        let classes = manifest.counts.classes().len();
        if !is_sound || !manifest.counts.is_sound(end - start, classes) {
            let problem =
                "its numbers contradict one another, or another version wrote it: score the shard again";
            return Err(wrong(problem.into()));
        }
        Ok(Some(manifest))
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        write_bytes(path, &text).map_err(failed)
    }

    /// What is not as planned, as far as that can be told without reading rows.
    pub(super) fn difference(&self, plan: &Plan) -> Option<&'static str> {
        let made_by = plan.made_by;
        let checks = [
            (self.made_by.model == made_by.model, "it was scored by another model"),
            (self.made_by.version == made_by.version, "another version of the program scored it"),
            (self.made_by.instructions == made_by.instructions, "a CPU with other instructions scored it"),
            (self.counts.classes().len() == plan.classes, "it has another number of classes"),
            (self.total == plan.total && self.dim == plan.dim, "the data has other sizes now"),
            (self.labels == plan.labels, "the labels are others now"),
            (self.rows == plan.rows && self.block == plan.block, "it has other rows"),
        ];
        checks.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
    }
}
