//! Nearest neighbours by cosine, exactly, and what their labels say of a sample.
//!
//! Rows $z_i$ have length 1 ([`super::rows::normalise`]), so the cosine of two is their product. Of all samples, the sample asked
//! for included, the $K$ of largest cosine are taken, of equals the one of smaller index. They vote with their labels $y_j$,
//! and the votes are balanced by the share $\pi_c$ that a class has among all labels:
//!
//! $$ v_i(c) \propto \frac{1}{\pi_c} \frac{|\{ j \in \mathrm{NN}_K(i) : y_j = c \}|}{K}, \qquad \sum_c v_i(c) = 1. $$
//!
//! **Adaptive K** (ANNE). Dense regions need few neighbours, sparse ones many. With radii $r = 0.99, 0.98, \dots$ the first is
//! taken beyond which at least $k_{\min}$ samples lie, $K_i = |\{ j : \cos(z_i, z_j) > r \}|$, kept within [5, ceiling]. Only the
//! ceiling's number of nearest samples is needed for that: counts above it are cut down to it anyway.
//!
//! **Cost.** N products of N rows; never an N x N matrix: a block of queries meets the samples tile by tile and remembers
//! candidates only. Blocks have one size, filled up with zeros, so a query's neighbours depend neither on who else is asked for
//! nor on the number of threads.

use super::rows::{check_labels, count, largest};
use crate::{Error, Result};
use negscale_product::rows_with_rows;
use rayon::prelude::*;

const WHAT: &str = "nearest neighbours";
/// Queries at a time: enough to reuse a tile, few enough that their products with a tile stay in the cache.
const BLOCK: usize = 256;
/// Most samples that a block meets at a time.
const TILE: usize = 1024;
/// The fewest neighbours that an adaptive vote asks.
pub const FEWEST: usize = 5;

/// A sample near another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Which sample.
    pub index: u32,
    /// Its cosine.
    pub similarity: f32,
}

impl Neighbour {
    /// Nearest first, of equals the smaller index.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.index.cmp(&other.index))
    }
}

/// What neighbours say of every query.
#[derive(Debug, Clone, PartialEq)]
pub struct Votes {
    /// Number of classes C.
    pub classes: usize,
    /// $v$: queries x C, row after row; rows sum to 1.
    pub values: Vec<f64>,
    /// $K$ of every query.
    pub neighbours: Vec<usize>,
}

impl Votes {
    /// The vote on a query.
    pub fn row(&self, query: usize) -> &[f64] {
        &self.values[query * self.classes..(query + 1) * self.classes]
    }

    /// Whether each query's own label has at least the share `theta` of the winner's vote; 1: whether it wins.
    pub fn agree(&self, labels: &[u32], theta: f64) -> Result<Vec<bool>> {
        check_labels(WHAT, labels, self.neighbours.len(), self.classes)?;
        let agrees = |(query, &label): (usize, &u32)| {
            let row = self.row(query);
            row[label as usize] >= theta * row[largest(row)]
        };
        Ok(labels.iter().enumerate().map(agrees).collect())
    }
}

/// Labels that vote.
#[derive(Debug, Clone, Copy)]
pub struct Voters<'a> {
    /// A label for every sample.
    pub labels: &'a [u32],
    /// Number of classes C.
    pub classes: usize,
}

/// The `k` samples nearest to each of the `queries`, nearest first; all samples if there are fewer.
pub fn nearest(z: &[f32], dim: usize, queries: &[usize], k: usize) -> Result<Vec<Vec<Neighbour>>> {
    Search::among(z, z, dim, k)?.each(queries, |_, near| near.to_vec())
}

/// The vote of the `k` samples nearest to each of the `queries`.
pub fn vote(z: &[f32], dim: usize, voters: Voters, queries: &[usize], k: usize) -> Result<Votes> {
    Search::among(z, z, dim, k)?.vote(voters, queries, |_, near| near.len())
}

/// The vote of a number of neighbours that adapts to each of the `queries`; `fewest[q]` is $k_{\min}$ of `queries[q]`.
pub fn adaptive_vote(
    z: &[f32],
    dim: usize,
    voters: Voters,
    queries: &[usize],
    fewest: &[usize],
    ceiling: usize,
) -> Result<Votes> {
    let range =
        |setting, value: usize, wanted| Err(Error::Range { setting, value: value.to_string(), wanted });
    if ceiling < FEWEST {
        return range("ceiling", ceiling, "must be at least 5");
    }
    if let Some(&bad) = fewest.iter().find(|&&k| k == 0 || k > ceiling) {
        return range("fewest", bad, "must be at least 1 and at most the ceiling");
    }
    if fewest.len() != queries.len() {
        let problem =
            format!("{} smallest numbers of neighbours for {} queries", fewest.len(), queries.len());
        return Err(Error::Samples { what: WHAT, problem });
    }
    Search::among(z, z, dim, ceiling)?.vote(voters, queries, |query, near| adapt(near, fewest[query]))
}

/// $K_i$ from the nearest samples, nearest first.
fn adapt(near: &[Neighbour], fewest: usize) -> usize {
    let beyond = |percent: i32| {
        let radius = f64::from(percent) / 100.0;
        near.partition_point(|n| f64::from(n.similarity) > radius)
    };
    // No cosine is below -1, so neither is a radius: then everyone known is asked.
    let k = (-100..100).rev().map(beyond).find(|&k| k >= fewest).unwrap_or(near.len());
    k.max(FEWEST).min(near.len())
}

/// A search among `bank` for rows of `from`.
pub(super) struct Search<'a> {
    bank: &'a [f32],
    from: &'a [f32],
    dim: usize,
    k: usize,
}

impl<'a> Search<'a> {
    pub(super) fn among(bank: &'a [f32], from: &'a [f32], dim: usize, k: usize) -> Result<Self> {
        let samples = count(WHAT, from, dim)?;
        if !std::ptr::eq(bank, from) {
            count(WHAT, bank, dim)?;
        }
        let size = bank.len() / dim;
        let problem = if k == 0 {
            return Err(Error::Range { setting: "k", value: "0".to_owned(), wanted: "must be at least 1" });
        } else if samples == 0 || size == 0 {
            "there are no samples: at least one is needed".to_owned()
        } else if u32::try_from(size).is_err() {
            format!("{size} samples are more than can be numbered: search among some of them")
        } else {
            return Ok(Self { bank, from, dim, k: k.min(size) });
        };
        Err(Error::Samples { what: WHAT, problem })
    }

    /// What `finish` makes of each query's place and neighbours, nearest first.
    pub(super) fn each<R: Send>(
        &self,
        queries: &[usize],
        finish: impl Fn(usize, &[Neighbour]) -> R + Sync,
    ) -> Result<Vec<R>> {
        let samples = self.from.len() / self.dim;
        if let Some(query) = queries.iter().find(|&&query| query >= samples) {
            let problem = format!("sample {query} is asked for: there are {samples}");
            return Err(Error::Samples { what: WHAT, problem });
        }
        let blocks = queries.par_chunks(BLOCK).enumerate();
        let parts: Vec<Vec<R>> = blocks
            .map(|(at, block)| {
                let near = self.block(block);
                near.iter().enumerate().map(|(i, near)| finish(at * BLOCK + i, near)).collect()
            })
            .collect();
        Ok(parts.into_iter().flatten().collect())
    }

    /// Neighbours of a block of queries.
    fn block(&self, queries: &[usize]) -> Vec<Vec<Neighbour>> {
        let Self { dim, k, .. } = *self;
        let mut rows = vec![0.0; BLOCK * dim];
        for (row, &query) in rows.chunks_exact_mut(dim).zip(queries) {
            row.copy_from_slice(&self.from[query * dim..(query + 1) * dim]);
        }
        let mut found = vec![Nearest::new(k); queries.len()];
        // Tiles of nearly equal size: a last one of few rows would be multiplied, and rounded, in another way.
        let size = self.bank.len() / dim;
        let tile = size.div_ceil(size.div_ceil(TILE));
        let mut products = vec![0.0; BLOCK * tile];
        for (at, bank) in self.bank.chunks(tile * dim).enumerate() {
            let size = bank.len() / dim;
            rows_with_rows(&rows, bank, dim, &mut products[..BLOCK * size]);
            for (found, products) in found.iter_mut().zip(products.chunks_exact(size)) {
                found.offer((at * tile) as u32, products);
            }
        }
        found.into_iter().map(Nearest::finish).collect()
    }

    /// Balanced votes, with the number of voters chosen by `choose` from a query's place and neighbours.
    pub(super) fn vote(
        &self,
        voters: Voters,
        queries: &[usize],
        choose: impl Fn(usize, &[Neighbour]) -> usize + Sync,
    ) -> Result<Votes> {
        let Voters { labels, classes } = voters;
        check_labels(WHAT, labels, self.bank.len() / self.dim, classes)?;
        let mut sizes = vec![0usize; classes];
        labels.iter().for_each(|&label| sizes[label as usize] += 1);
        let votes = self.each(queries, |query, near| {
            let k = choose(query, near);
            let mut row = vec![0.0; classes];
            near[..k].iter().for_each(|n| row[labels[n.index as usize] as usize] += 1.0);
            // Shares of all samples and of neighbours differ from the counts by factors that go away with the sum.
            row.iter_mut().zip(&sizes).filter(|(v, _)| **v > 0.0).for_each(|(v, &size)| *v /= size as f64);
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|v| *v /= sum);
            (row, k)
        })?;
        let neighbours = votes.iter().map(|(_, k)| *k).collect();
        Ok(Votes { classes, values: votes.into_iter().flat_map(|(row, _)| row).collect(), neighbours })
    }
}

/// The k nearest of the samples offered so far, among at most 2k candidates.
#[derive(Clone)]
struct Nearest {
    k: usize,
    candidates: Vec<Neighbour>,
    /// Nothing at or below this is among the k nearest.
    limit: f32,
}

impl Nearest {
    fn new(k: usize) -> Self {
        Self { k, candidates: Vec::new(), limit: f32::NEG_INFINITY }
    }

    /// Offers samples `first..`; each call's come after those of the call before, so among equals the earlier ones stay.
    fn offer(&mut self, first: u32, similarities: &[f32]) {
        const RUN: usize = 32;
        for (run, values) in similarities.chunks(RUN).enumerate() {
            // Hardly any run has a candidate: this look at all of it, which vectorises, is most of the work.
            if values.iter().fold(false, |any, &x| any | (x > self.limit)) {
                let first = first + (run * RUN) as u32;
                for (index, &similarity) in (first..).zip(values) {
                    if similarity > self.limit {
                        // Adding 0 turns -0 into 0, which it equals.
                        self.candidates.push(Neighbour { index, similarity: similarity + 0.0 });
                    }
                }
                if self.candidates.len() >= 2 * self.k + RUN {
                    self.cut();
                }
            }
        }
    }

    /// Leaves the k nearest of at least as many.
    fn cut(&mut self) {
        self.candidates.select_nth_unstable_by(self.k - 1, Neighbour::order);
        self.candidates.truncate(self.k);
        self.limit = self.candidates[self.k - 1].similarity;
    }

    fn finish(mut self) -> Vec<Neighbour> {
        if self.candidates.len() > self.k {
            self.cut();
        }
        self.candidates.sort_unstable_by(Neighbour::order);
        self.candidates
    }
}
