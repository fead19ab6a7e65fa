//! Parquet by row groups.

use super::ids::Ids;
use super::{Found, Store};
use crate::own::OwnOptions;
use crate::own::columns::{self, Counting};
use crate::own::groups::GroupReader;
use crate::own::parquet::{Labels, Shard, choose_features, guard};
use crate::own::vectors::Chosen;
use crate::{Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Readers that are kept where they stopped.
const KEPT: usize = 2;
/// So many rows show a column that may only count them.
const COUNTED: usize = 1024;

/// A row group.
struct Group {
    shard: usize,
    number: usize,
    /// Number of its first row among all.
    first: u64,
    rows: u64,
}

/// The rows of all shards.
pub(super) struct Table {
    shards: Vec<Shard>,
    chosen: Vec<Chosen>,
    groups: Vec<Group>,
    rows: u64,
    dim: usize,
    /// Readers with the number of their group, that used last at the end.
    kept: Mutex<Vec<(usize, GroupReader)>>,
}

impl Table {
    /// Opens shards as one table, with the labels that they have.
    pub fn open(paths: &[PathBuf], options: &OwnOptions) -> Result<Found> {
        let shards = paths.iter().map(|path| Shard::open(path)).collect::<Result<Vec<_>>>()?;
        let beside = options.labels.is_some();
        let labels = Labels::read(&shards, beside, !beside, options)?;
        let mut chosen = Vec::with_capacity(shards.len());
        for (shard, label) in shards.iter().zip(&labels.columns) {
            let found = choose_features(shard, label.as_deref(), options)?;
            let none = || {
                Error::format(
                    shard.path(),
                    None,
                    "no column of numbers in it: pictures are not read row by row",
                )
            };
            chosen.push(found.ok_or_else(none)?);
        }
        check_alike(&shards, &chosen)?;
        let (mut groups, mut rows) = (Vec::new(), 0);
        for (at, shard) in shards.iter().enumerate() {
            for (number, group) in shard.row_groups().iter().enumerate() {
                let count = u64::try_from(group.num_rows()).unwrap_or(0);
                groups.push(Group { shard: at, number, first: rows, rows: count });
                rows += count;
            }
        }
        if rows == 0 {
            let path = shards.first().map_or(Path::new(""), |shard| shard.path());
            return Err(Error::format(path, None, "it has no rows"));
        }
        let mut ids = Ids::default();
        for (shard, chosen) in shards.iter().zip(&chosen) {
            if let Some(id) = &chosen.id {
                shard.words(id, |word, _| ids.push(word))?;
            }
        }
        let notes = chosen.first_mut().map_or(Vec::new(), |chosen| std::mem::take(&mut chosen.notes));
        let mut table = Self { shards, chosen, groups, rows, dim: 0, kept: Mutex::default() };
        table.dim = table.find_dim()?;
        table.refuse_counting()?;
        let ids = Some(ids).filter(|ids| !ids.is_empty());
        let Labels { given, truth, side, names, .. } = labels;
        let given = (!beside).then_some(given);
        Ok(Found { store: Store::Table(Box::new(table)), ids, given, truth, side, names, notes })
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How long the first row is.
    fn find_dim(&self) -> Result<usize> {
        let Some(group) = self.groups.iter().find(|group| group.rows > 0) else { return Ok(0) };
        let (shard, chosen) = (&self.shards[group.shard], &self.chosen[group.shard]);
        guard(shard.path(), &format!("row group {}", group.number), || {
            let mut width = None;
            GroupReader::new(shard, group.number, chosen)?.read(shard, 1, &mut width, |_| Ok(()))?;
            Ok(width.unwrap_or(0))
        })
    }

    /// A column that counts in the first rows and has counted on at the last one is no feature.
    fn refuse_counting(&self) -> Result<()> {
        let Some(first) = self.chosen.first().filter(|first| !first.is_list && !first.may_count) else {
            return Ok(());
        };
        let begin = self.rows.min(COUNTED as u64);
        let mut rows = vec![0.0; begin as usize * self.dim];
        self.read(0..begin, &mut rows)?;
        let mut counting = Counting::new(self.dim);
        rows.chunks_exact(self.dim).for_each(|row| counting.add(row));
        if counting.found().is_none() {
            return Ok(());
        }
        let mut last = vec![0.0; self.dim];
        self.read(self.rows - 1..self.rows, &mut last)?;
        let steps = (self.rows - 1) as f32;
        if let Some(at) = (0..self.dim).find(|&at| counting.counts(at) && last[at] == rows[at] + steps) {
            let shard = &self.shards[0];
            let name = shard.schema().column(first.leaves[at]).path().string();
            return Err(Error::format(shard.path(), None, columns::refuse_counting(&format!("`{name}`"))));
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(usize, GroupReader)>> {
        // A panic elsewhere took its reader with it.
        self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The reader of a group that is nearest before a row of it, else a new one.
    fn reader(&self, at: usize, row: usize) -> Result<GroupReader> {
        let mut kept = self.kept();
        let before =
            kept.iter().enumerate().filter(|(_, (group, reader))| *group == at && reader.position() <= row);
        let nearest = before.max_by_key(|(_, (_, reader))| reader.position()).map(|(place, _)| place);
        if let Some(place) = nearest {
            return Ok(kept.remove(place).1);
        }
        drop(kept);
        let group = &self.groups[at];
        GroupReader::new(&self.shards[group.shard], group.number, &self.chosen[group.shard])
    }

    fn keep(&self, at: usize, reader: GroupReader) {
        let mut kept = self.kept();
        if reader.left() > 0 {
            kept.push((at, reader));
        }
        if kept.len() > KEPT {
            kept.remove(0);
        }
    }

    /// Rows of one group, by runs that follow one another, into places that follow one another.
    fn read_group(
        &self,
        at: usize,
        runs: impl Iterator<Item = Range<u64>>,
        places: &mut std::slice::ChunksExactMut<'_, f32>,
    ) -> Result<()> {
        let group = &self.groups[at];
        let shard = &self.shards[group.shard];
        guard(shard.path(), &format!("row group {}", group.number), || {
            let mut reader = None;
            for run in runs {
                let (from, count) = ((run.start - group.first) as usize, (run.end - run.start) as usize);
                let reader = match &mut reader {
                    Some(reader) => reader,
                    none => none.insert(self.reader(at, from)?),
                };
                reader.pass(shard, from - reader.position())?;
                reader.read(shard, count, &mut Some(self.dim), |row| {
                    places.next().into_iter().for_each(|place| place.copy_from_slice(row));
                    Ok(())
                })?;
            }
            reader.into_iter().for_each(|reader| self.keep(at, reader));
            Ok(())
        })
    }

    /// Rows that follow one another.
    pub fn read(&self, rows: Range<u64>, out: &mut [f32]) -> Result<()> {
        let mut places = out.chunks_exact_mut(self.dim);
        for (at, group) in self.groups.iter().enumerate() {
            let (from, to) = (rows.start.max(group.first), rows.end.min(group.first + group.rows));
            if from < to {
                self.read_group(at, std::iter::once(from..to), &mut places)?;
            }
        }
        Ok(())
    }

    /// Rows of rising numbers.
    pub fn read_some(&self, mut rows: &[u64], out: &mut [f32]) -> Result<()> {
        let mut places = out.chunks_exact_mut(self.dim);
        for (at, group) in self.groups.iter().enumerate() {
            let here = rows.partition_point(|&row| row < group.first + group.rows);
            let (now, later) = rows.split_at(here);
            if !now.is_empty() {
                let runs = now.chunk_by(|before, after| before + 1 == *after);
                self.read_group(at, runs.map(|run| run[0]..run[0] + run.len() as u64), &mut places)?;
            }
            rows = later;
        }
        Ok(())
    }
}

impl Table {
    /// Names of columns; none of a column of lists.
    pub fn names(&self) -> Vec<String> {
        let (Some(shard), Some(chosen)) = (self.shards.first(), self.chosen.first()) else {
            return Vec::new();
        };
        let name = |&leaf: &usize| shard.schema().column(leaf).path().string();
        if chosen.is_list { Vec::new() } else { chosen.leaves.iter().map(name).collect() }
    }
}

/// Columns must be the same in all shards: rows are compared with one another.
fn check_alike(shards: &[Shard], chosen: &[Chosen]) -> Result<()> {
    let names = |at: usize| -> Vec<String> {
        chosen[at].leaves.iter().map(|&leaf| shards[at].schema().column(leaf).path().string()).collect()
    };
    for at in 1..shards.len() {
        if chosen[at].is_list != chosen[0].is_list || (!chosen[0].is_list && names(at) != names(0)) {
            let problem = format!(
                "its columns of features are not those of {}: write all shards with the same columns in the same order",
                shards[0].path().display()
            );
            return Err(Error::format(shards[at].path(), "schema".to_string(), problem));
        }
    }
    Ok(())
}
