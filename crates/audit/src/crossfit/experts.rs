//! Several predictions for each row, by models and by its neighbours, pooled into one.

use super::{FoldModels, Rows, Targets, pool};
use crate::neighbours::{GoOn, NeighbourSettings, nearest_while};
use crate::{Predictions, Result};
use rayon::prelude::*;

/// Rows up to which all pairs are looked at for neighbours; beyond, most neighbours are enough.
const EXACT_VOTES: usize = 10_000;
const RECALL: f64 = 0.9;
/// Rows that are predicted at a time.
const CHUNK: usize = 1024;

/// Several predictions for each row.
pub(super) struct Experts<'a> {
    pub rows: &'a Rows<'a>,
    pub models: &'a [FoldModels],
    pub fold_of: &'a [usize],
    pub near: Option<&'a [Weighted]>,
    pub targets: &'a Targets,
}

impl Experts<'_> {
    /// Logarithms of what each expert says of some rows, all of one fold: an array of rows x C each.
    fn ask(&self, fold: usize, members: &[u32]) -> Vec<Vec<f32>> {
        let mut said = self.models[fold].ask(self.rows, members, self.targets.classes());
        if let Some(near) = self.near {
            said.push(votes(near, members, self.targets));
        }
        said
    }

    /// Members of each fold among the rows of a step, in pieces.
    fn pieces(&self, every: usize) -> Vec<(usize, Vec<u32>)> {
        let mut by_fold = vec![Vec::new(); self.models.len()];
        (0..self.rows.len()).step_by(every).for_each(|row| by_fold[self.fold_of[row]].push(row as u32));
        let cut = |(fold, members): (usize, Vec<u32>)| {
            members.chunks(CHUNK).map(|piece| (fold, piece.to_vec())).collect::<Vec<_>>()
        };
        by_fold.into_iter().enumerate().flat_map(cut).collect()
    }

    /// Weights that make the targets of rows likeliest; of many rows, a part.
    pub fn weights(&self) -> Vec<f64> {
        let pieces = self.pieces(self.rows.len().div_ceil(pool::MOST_ROWS).max(1));
        let said: Vec<Vec<Vec<f32>>> =
            pieces.par_iter().map(|(fold, members)| self.ask(*fold, members)).collect();
        let count = said.first().map_or(0, Vec::len);
        let all: Vec<Vec<f32>> = (0..count)
            .map(|expert| said.iter().flat_map(|said| said[expert].iter().copied()).collect())
            .collect();
        let members: Vec<u32> = pieces.into_iter().flat_map(|(_, members)| members).collect();
        let views: Vec<&[f32]> = all.iter().map(Vec::as_slice).collect();
        pool::weights(&views, self.targets, &members)
    }

    pub fn predictions(&self, weights: &[f64], given: &[u32]) -> Predictions {
        let classes = self.targets.classes();
        let mut predictions = Predictions::empty(given, classes);
        let pieces = self.pieces(1);
        // So many at a time, that all that is said of them fits into little memory.
        for pieces in pieces.chunks(4 * rayon::current_num_threads()) {
            let pooled: Vec<Vec<f32>> = pieces
                .par_iter()
                .map(|(fold, members)| {
                    let said = self.ask(*fold, members);
                    let views: Vec<&[f32]> = said.iter().map(Vec::as_slice).collect();
                    let mut pooled = vec![0.0; members.len() * classes];
                    for (row, out) in pooled.chunks_exact_mut(classes).enumerate() {
                        pool::pooled(&views, weights, row * classes..(row + 1) * classes, out);
                    }
                    pooled
                })
                .collect();
            for ((_, members), pooled) in pieces.iter().zip(pooled) {
                for (&member, row) in members.iter().zip(pooled.chunks_exact(classes)) {
                    predictions.set(member as usize, row);
                }
            }
        }
        predictions
    }
}

/// Other rows, and how much each counts.
pub(super) type Weighted = Vec<(u32, f32)>;

/// For each row others that are near, nearest first, and how much each counts: $\exp(-(d/m)^2)$ with $m$ the median of its distances.
pub(super) fn near(rows: &Rows, count: usize, go_on: GoOn) -> Result<Option<Vec<Weighted>>> {
    if count == 0 || rows.len() < 2 {
        return Ok(None);
    }
    let near = nearest_while(
        rows,
        &NeighbourSettings {
            count,
            exact_up_to: EXACT_VOTES,
            recall: RECALL,
            ..NeighbourSettings::default()
        },
        go_on,
    )?;
    let weighted = |row| {
        let distances = near.distances(row);
        let scale = distances.get(distances.len() / 2).map_or(1.0, |median| median.max(1e-9));
        near.of(row).map(|(other, distance)| (other, (-(distance / scale).powi(2)).exp())).collect()
    };
    Ok(Some((0..rows.len()).map(weighted).collect()))
}

/// Logarithms of weighted votes of near rows, each voting as it is taught; half a vote is spread over all classes.
fn votes(near: &[Weighted], members: &[u32], targets: &Targets) -> Vec<f32> {
    let classes = targets.classes();
    let mut all = vec![0.5 / classes as f32; members.len() * classes];
    for (row, &member) in all.chunks_exact_mut(classes).zip(members) {
        for &(other, weight) in &near[member as usize] {
            targets.row(other as usize).iter().for_each(|&(class, t)| row[class as usize] += weight * t);
        }
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|v| *v = (*v / sum).ln());
    }
    all
}
