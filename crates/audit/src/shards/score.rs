//! Scoring the rows of a shard.

use super::counts::MOST_ROWS;
use super::manifest::{Manifest, Plan, hash_file, hash_labels, hex, paths};
use super::record::{self, Record};
use super::{Counts, MadeBy, RowScore, RowScorer, RowSource, ShardNumber, block_rows, shard_range};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Blocks for each thread that are read at once.
pub const WAVE: usize = 2;

/// Whether a shard had to be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Its files were there already and fit rows, labels and model.
    Kept,
    /// It was scored, for this reason.
    Scored(&'static str),
}

/// A shard whose files are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredShard {
    /// What is said of it.
    pub manifest: Manifest,
    /// What there was to do.
    pub work: Work,
}

/// Scores one shard into a folder, unless its files are there and made of the same: then rows are read and hashed, which takes a small part
/// of the time, and kept as they are.
///
/// # Errors
/// If rows cannot be read, the scorer fails or says what no score can be, or the folder cannot be written to. Files that were there stay as
/// they were.
pub fn score_shard(
    source: &(impl RowSource + ?Sized),
    scorer: &(impl RowScorer + ?Sized),
    shard: ShardNumber,
    made_by: &MadeBy,
    folder: &Path,
) -> Result<ScoredShard> {
    let plan = plan(source, scorer, shard, made_by)?;
    let (scores, manifest) = paths(folder, shard.number(), shard.of());
    // A damaged manifest is as good as none.
    let why = match Manifest::read(&manifest) {
        Ok(None) => "it was not there",
        Err(_) => "its manifest was damaged",
        Ok(Some(found)) => match found.difference(&plan) {
            Some(difference) => difference,
            None if hash_file(&scores).ok().as_ref() != Some(&found.scores) => {
                "its scores were missing or damaged"
            }
            None if hash_input(source, &plan)? != found.input => "the rows are others now",
            None => return Ok(ScoredShard { manifest: found, work: Work::Kept }),
        },
    };
    let made = write_scores(source, scorer, &plan, &scores)?;
    made.write(&manifest)?;
    Ok(ScoredShard { manifest: made, work: Work::Scored(why) })
}

fn plan<'a>(
    source: &(impl RowSource + ?Sized),
    scorer: &(impl RowScorer + ?Sized),
    shard: ShardNumber,
    made_by: &'a MadeBy,
) -> Result<Plan<'a>> {
    let (total, dim, given, classes) = (source.rows(), source.dim(), source.given(), scorer.classes());
    let wrong = |what, problem| Err(Error::Samples { what, problem });
    if given.len() as u64 != total || dim == 0 {
        return wrong("labels", format!("{} labels for {total} rows of {dim} numbers", given.len()));
    }
    if total > MOST_ROWS {
        return wrong("rows", format!("there are {total}: at most {MOST_ROWS} are counted; split the data"));
    }
    if let Some(row) = given.iter().position(|&label| label as usize >= classes) {
        let problem = format!("that of row {row} is {}, but the model knows {classes} classes", given[row]);
        return wrong("labels", problem);
    }
    let block = block_rows(dim);
    let rows = shard_range(total, block, shard);
    Ok(Plan { shard, rows, total, dim, block, classes, made_by, labels: hash_labels(given) })
}

/// Some rows that are scored together.
struct Block<'a> {
    first: u64,
    ids: Vec<u64>,
    given: &'a [u32],
    rows: &'a [f32],
}

impl Block<'_> {
    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut bytes = Vec::with_capacity(1 << 14);
        for ids in self.ids.chunks(1 << 11) {
            bytes.clear();
            bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            hash.update(&bytes);
        }
        for given in self.given.chunks(1 << 12) {
            bytes.clear();
            bytes.extend(given.iter().flat_map(|label| label.to_le_bytes()));
            hash.update(&bytes);
        }
        for numbers in self.rows.chunks(1 << 12) {
            bytes.clear();
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            hash.update(&bytes);
        }
        hash.finalize().into()
    }
}

/// Calls `each` with every block of a shard, on all threads, and `take` with what it returns, in order. While some blocks are worked
/// on, the next are read.
fn for_blocks<T: Send>(
    source: &(impl RowSource + ?Sized),
    plan: &Plan,
    each: impl Fn(Block) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let Plan { dim, block, .. } = *plan;
    let wave = block * (WAVE * rayon::current_num_threads()) as u64;
    let after = |start: u64| start..start.saturating_add(wave).min(plan.rows.end);
    let read = |rows: Range<u64>, into: &mut Vec<f32>| {
        let count = (rows.end - rows.start) as usize * dim;
        if count == 0 {
            return Ok(());
        }
        source.read_rows(rows.clone(), into)?;
        let problem = || format!("{} numbers came for the rows {rows:?} of {dim}", into.len());
        if into.len() == count { Ok(()) } else { Err(Error::Rows { problem: problem() }) }
    };
    let (mut now, mut next) = (Vec::new(), Vec::new());
    let mut rows = after(plan.rows.start);
    read(rows.clone(), &mut now)?;
    while !rows.is_empty() {
        let following = after(rows.end);
        let work = |(at, numbers): (usize, &[f32])| {
            let first = rows.start + at as u64 * block;
            let end = first + (numbers.len() / dim) as u64;
            let ids = (first..end).map(|row| source.id(row)).collect();
            each(Block { first, ids, given: &source.given()[first as usize..end as usize], rows: numbers })
        };
        let (done, read) = rayon::join(
            || now.par_chunks(block as usize * dim).enumerate().with_max_len(1).map(work).collect::<Vec<_>>(),
            || read(following.clone(), &mut next),
        );
        // The first error in the order of rows, whichever thread was quicker.
        for done in done {
            take(done?)?;
        }
        read?;
        std::mem::swap(&mut now, &mut next);
        rows = following;
    }
    Ok(())
}

fn hash_input(source: &(impl RowSource + ?Sized), plan: &Plan) -> Result<String> {
    let mut hash = Sha256::new();
    for_blocks(
        source,
        plan,
        |block| Ok(block.hash()),
        |block| {
            hash.update(block);
            Ok(())
        },
    )?;
    Ok(hex(hash.finalize()))
}

fn score_block(scorer: &(impl RowScorer + ?Sized), block: &Block) -> Result<Vec<Record>> {
    let mut scores: Vec<RowScore> = Vec::with_capacity(block.given.len());
    scorer.score(block.rows, &block.ids, block.given, &mut scores)?;
    let wrong = |problem| Err(Error::Samples { what: "scores", problem });
    if scores.len() != block.given.len() {
        return wrong(format!(
            "{} for the {} rows from row {} on",
            scores.len(),
            block.given.len(),
            block.first
        ));
    }
    let mut records = Vec::with_capacity(scores.len());
    for (row, (score, &given)) in (block.first..).zip(scores.into_iter().zip(block.given)) {
        // Minus zero is zero.
        let (score, probability) =
            (RowScore { score: score.score + 0.0, ..score }, score.suggested_probability + 0.0);
        let record = Record { given, score: RowScore { suggested_probability: probability, ..score } };
        if !record.is_sound(scorer.classes()) {
            return wrong(format!(
                "that of row {row} is {score:?}: numbers must be from 0 to 1, and classes below {}",
                scorer.classes()
            ));
        }
        records.push(record);
    }
    Ok(records)
}

fn write_scores(
    source: &(impl RowSource + ?Sized),
    scorer: &(impl RowScorer + ?Sized),
    plan: &Plan,
    to: &Path,
) -> Result<Manifest> {
    let (mut input, mut output, mut counts) = (Sha256::new(), Sha256::new(), Counts::new(plan.classes));
    let mut failed = None;
    let written = write_atomic(to, |file| {
        let header = record::header(plan.rows.end - plan.rows.start);
        output.update(&header);
        file.write_all(&header)?;
        let mut bytes = Vec::new();
        let file_error = |source| Error::File { path: to.to_owned(), source };
        let done = for_blocks(
            source,
            plan,
            |block| Ok((block.hash(), score_block(scorer, &block)?)),
            |(hash, records)| {
                input.update(hash);
                bytes.clear();
                for record in &records {
                    counts.count(record);
                    record.write(&mut bytes);
                }
                output.update(&bytes);
                file.write_all(&bytes).map_err(file_error)
            },
        );
        // Whatever it is, the part must go; what it was is told below.
        done.map_err(|error| {
            failed = Some(error);
            io::Error::other("")
        })
    });
    match (failed, written) {
        (Some(error), _) => Err(error),
        (None, Err(source)) => Err(Error::File { path: to.to_owned(), source }),
        (None, Ok(())) => Ok(Manifest::new(plan, hex(input.finalize()), hex(output.finalize()), counts)),
    }
}
