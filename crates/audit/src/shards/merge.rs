//! Shards put together.

use super::manifest::{Manifest, hex, paths};
use super::record::{self, Record};
use super::{Counts, RowScore, ShardNumber, shard_range};
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Records that are read at once.
const AT_ONCE: u64 = 4096;
/// Missing parts that a message lists.
const LISTED: usize = 10;

/// One of the most suspicious rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopRow {
    /// Number of the row.
    pub row: u64,
    /// Its label.
    pub given: u32,
    /// What is believed about it.
    pub score: RowScore,
}

/// ((bits of the score, inverted; row), given, suggested, bits of its probability, flag): the more suspicious one is less.
type Ordered = ((u32, u64), u32, u32, u32, bool);

/// All shards of an audit, in the order of their rows.
#[derive(Debug, Clone)]
pub struct Shards {
    folder: PathBuf,
    manifests: Vec<Manifest>,
    counts: Counts,
    notes: Vec<String>,
}

impl Shards {
    /// Reads the manifests in a folder and adds up their counts; files of scores are not read yet.
    ///
    /// # Errors
    /// If shards are missing, have rows in common, or were made of other data or by another model than the rest.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut manifests = read_manifests(folder)?;
        let wrong = |problem: String| Error::Shard { path: folder.to_owned(), problem };
        let Some(first) = manifests.first() else {
            return Err(wrong("there is no shard in it: score the shards first".into()));
        };
        for other in &manifests[1..] {
            if let Some(what) = difference(first, other) {
                let problem = format!(
                    "shards {} and {} do not belong together: {what}; score them again with the same model and data, or remove those of one kind",
                    shown(first),
                    shown(other)
                );
                return Err(wrong(problem));
            }
        }
        let instructions = &first.made_by.instructions;
        let odd = manifests.iter().find(|other| other.made_by.instructions != *instructions);
        let notes = odd.map(|odd| {
            format!(
                "shard {} was scored with {instructions}, shard {} with {}: numbers may differ in their last bits",
                shown(first),
                shown(odd),
                odd.made_by.instructions
            )
        });
        let notes = notes.into_iter().collect();
        let mut counts = Counts::new(first.counts.classes().len());
        manifests.sort_by_key(|manifest| {
            (manifest.rows.start, manifest.rows.end, manifest.shards, manifest.shard)
        });
        check_rows(&manifests).map_err(wrong)?;
        manifests.iter().for_each(|manifest| counts.add(&manifest.counts));
        Ok(Self { folder: folder.to_owned(), manifests, counts, notes })
    }

    /// What was counted over all rows.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What a person should know, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The manifests, in the order of rows.
    #[must_use]
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// Calls `each` with every row, in order. That a file of scores is the one of its manifest is known after its last row, so what was
    /// made of its rows must not be used if this fails.
    pub(super) fn visit(&self, mut each: impl FnMut(u64, &Record) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        for manifest in &self.manifests {
            let (path, _) = paths(&self.folder, manifest.shard, manifest.shards);
            let failed = |source| Error::File { path: path.clone(), source };
            let other = || Error::Shard {
                path: path.clone(),
                problem: "not the scores that its manifest tells of, or damaged: score the shard again"
                    .into(),
            };
            let mut file = BufReader::with_capacity(1 << 16, File::open(&path).map_err(failed)?);
            let mut hash = Sha256::new();
            let count = manifest.rows.end - manifest.rows.start;
            let length = record::header(count).len() as u64 + count * record::SIZE as u64;
            if file.get_ref().metadata().map_err(failed)?.len() != length {
                return Err(other());
            }
            bytes.resize(record::header(count).len(), 0);
            file.read_exact(&mut bytes).map_err(failed)?;
            hash.update(&bytes);
            let mut row = manifest.rows.start;
            while row < manifest.rows.end {
                let now = AT_ONCE.min(manifest.rows.end - row) as usize;
                bytes.resize(now * record::SIZE, 0);
                file.read_exact(&mut bytes).map_err(failed)?;
                hash.update(&bytes);
                for bytes in bytes.as_chunks::<{ record::SIZE }>().0 {
                    let record = Record::read(bytes);
                    if !record.is_sound(self.counts.classes().len()) {
                        return Err(other());
                    }
                    each(row, &record)?;
                    row += 1;
                }
            }
            if hex(hash.finalize()) != manifest.scores {
                return Err(other());
            }
        }
        Ok(())
    }

    /// The most suspicious rows, at most so many: by score, among equals by row.
    ///
    /// # Errors
    /// If a file of scores is missing or damaged.
    pub fn top(&self, count: usize) -> Result<Vec<TopRow>> {
        // The last in the order is the first to go. Scores from 0 to 1 are ordered as their bits are.
        let mut heap: BinaryHeap<Ordered> = BinaryHeap::new();
        self.visit(|row, &Record { given, score }| {
            let key = (!score.score.to_bits(), row);
            let is_in = heap.len() < count || heap.peek().is_some_and(|&(last, ..)| key < last);
            if count > 0 && is_in {
                heap.push((key, given, score.suggested, score.suggested_probability.to_bits(), score.flag));
                if heap.len() > count {
                    heap.pop();
                }
            }
            Ok(())
        })?;
        let row = |((score, row), given, suggested, probability, flag): Ordered| {
            let suggested_probability = f32::from_bits(probability);
            TopRow {
                row,
                given,
                score: RowScore { score: f32::from_bits(!score), suggested, suggested_probability, flag },
            }
        };
        Ok(heap.into_sorted_vec().into_iter().map(row).collect())
    }

    /// Removes what killed processes left of files that they were writing. Nobody may be scoring shards of this folder meanwhile.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file not be removed.
    pub fn remove_leftovers(&self) -> Result<()> {
        let failed = |source| Error::File { path: self.folder.clone(), source };
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if name.starts_with(".shard-") && name.ends_with(".part") {
                std::fs::remove_file(&path).map_err(|source| Error::File { path, source })?;
            }
        }
        Ok(())
    }
}

fn shown(manifest: &Manifest) -> String {
    format!("{} of {}", manifest.shard, manifest.shards)
}

/// The numbers in `shard-K-of-N.json`.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let (shard, shards) = name.strip_prefix("shard-")?.strip_suffix(".json")?.split_once("-of-")?;
    Some((shard.parse().ok()?, shards.parse().ok()?))
}

fn read_manifests(folder: &Path) -> Result<Vec<Manifest>> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        found.extend(path.file_name().and_then(|name| name.to_str()).and_then(numbers));
    }
    // However the system lists them.
    found.sort_unstable_by_key(|&(shard, shards)| (shards, shard));
    let mut manifests = Vec::with_capacity(found.len());
    for (shard, shards) in found {
        let (_, path) = paths(folder, shard, shards);
        let Some(manifest) = Manifest::read(&path)? else { continue };
        if (manifest.shard, manifest.shards) != (shard, shards) {
            let problem = format!("it is that of shard {}: give it its name again", shown(&manifest));
            return Err(Error::Shard { path, problem });
        }
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// Why two shards cannot be put together.
fn difference(one: &Manifest, other: &Manifest) -> Option<&'static str> {
    let checks = [
        (one.made_by.model == other.made_by.model, "they were scored by different models"),
        (one.made_by.version == other.made_by.version, "different versions of the program scored them"),
        (one.labels == other.labels, "the labels were not the same"),
        (one.total == other.total && one.dim == other.dim, "the data had other sizes"),
        (one.block == other.block, "their blocks are not equally long"),
        (one.counts.classes().len() == other.counts.classes().len(), "their classes are not equally many"),
    ];
    checks.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
}

/// Whether rows are there once each; manifests are in the order of their rows.
fn check_rows(manifests: &[Manifest]) -> std::result::Result<(), String> {
    let total = manifests.first().map_or(0, |first| first.total);
    let (mut next, mut before, mut missing) = (0, None, Vec::new());
    for manifest in manifests.iter().filter(|manifest| !manifest.rows.is_empty()) {
        if let Some(before) = before.filter(|_| manifest.rows.start < next) {
            return Err(format!(
                "shards {} and {} both have row {}: remove the files of one of them",
                shown(before),
                shown(manifest),
                manifest.rows.start
            ));
        }
        if manifest.rows.start > next {
            missing.push(next..manifest.rows.start);
        }
        (next, before) = (manifest.rows.end, Some(manifest));
    }
    if next < total {
        missing.push(next..total);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let of = manifests[0].shards;
    let (names, one, many) = match manifests.iter().all(|manifest| manifest.shards == of) {
        true => {
            let is_missing = |&number: &u32| {
                let rows =
                    ShardNumber::new(number, of).map(|shard| shard_range(total, manifests[0].block, shard));
                rows.is_ok_and(|rows| missing.iter().any(|gap| gap.start < rows.end && rows.start < gap.end))
            };
            let names: Vec<String> = (1..=of).filter(is_missing).map(|number| number.to_string()).collect();
            (names, format!("shard {{}} of {of} is missing"), format!("shards {{}} of {of} are missing"))
        }
        false => {
            let names: Vec<String> =
                missing.iter().map(|rows| format!("{} to {}", rows.start, rows.end - 1)).collect();
            (names, "rows {} are missing".into(), "rows {} are missing".into())
        }
    };
    let mut list = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        list.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    let text = if names.len() == 1 { one } else { many };
    Err(format!("{}: score what is missing", text.replace("{}", &list)))
}
