//! Sums over all pairs of samples from sums over samples, bucket by bucket.
//!
//! With rows $r_i$ and groups $A$, $B$: $\sum r_i^\top r_j = \langle m_A, m_B\rangle$ ([`first`]); with unit features $l_i$, $r_i$ of
//! two networks (or of one, taken twice) and $X_A = \sum_{i \in A} l_i r_i^\top$,
//! $$\sum_{i \in A, j \in B} (l_i^\top l_j)(r_i^\top r_j) = \langle X_A, X_B\rangle_F$$
//! ([`second`]). The $d \times d$ matrices of all groups would take much memory, so they are made tile by tile, each tile for
//! all groups, and only the inner products are kept. All sums are in f64.

use crate::groups::{BUCKETS, Groups};
use crate::units::Units;
use negscale_cpu::for_this_cpu;
use rayon::prelude::*;

/// Rows and columns of a tile.
const SIDE: usize = 32;
/// Numbers of a tile.
const AREA: usize = SIDE * SIDE;
/// Samples that are packed at a time.
const PACKED: usize = 64;
/// Rows and columns of a tile that are summed at a time, in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Sum over unordered pairs of the inner products of rows of `dim` numbers; `read` writes the row of a sample.
pub(crate) fn first(groups: &Groups, dim: usize, read: impl Fn(usize, &mut [f64]) + Sync) -> [f64; BUCKETS] {
    let sum_of = |group: usize| {
        let (mut sum, mut own, mut row) = (vec![0.0; dim], 0.0, vec![0.0; dim]);
        for &sample in groups.members(group) {
            read(sample as usize, &mut row);
            own += row.iter().map(|x| x * x).sum::<f64>();
            sum.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x);
        }
        (sum, own)
    };
    let sums: Vec<(Vec<f64>, f64)> = (0..groups.len()).into_par_iter().map(sum_of).collect();
    let mut buckets = [0.0; BUCKETS];
    for (a, (of_a, own)) in sums.iter().enumerate() {
        buckets[groups.bucket(a, a)] += (dot(of_a, of_a) - own) / 2.0;
        for (b, (of_b, _)) in sums.iter().enumerate().skip(a + 1) {
            buckets[groups.bucket(a, b)] += dot(of_a, of_b);
        }
    }
    buckets
}

/// The same for unit features, for every grouping.
pub(crate) fn first_of_units(groupings: &[&Groups], units: &Units) -> Vec<[f64; BUCKETS]> {
    let read =
        |sample: usize, row: &mut [f64]| row.iter_mut().zip(units.unit(sample)).for_each(|(x, u)| *x = u);
    groupings.iter().map(|groups| first(groups, units.dim(), read)).collect()
}

for_this_cpu! {
    /// Sum of `a[i] * b[i]`.
    pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let mut chains = [0.0; 16];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..16 {
                chains[lane] += a[lane] * b[lane];
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        chains.iter().sum::<f64>() + rest
    }
}

/// Sum over unordered pairs of (l_i . l_j)(r_i . r_j), for every grouping; with `left` and `right` the same, of squared
/// cosines.
pub(crate) fn second(groupings: &[&Groups], left: &Units, right: &Units) -> Vec<[f64; BUCKETS]> {
    let is_symmetric = std::ptr::eq(left, right);
    let left = &Blocks::new(left);
    let other = (!is_symmetric).then(|| Blocks::new(right));
    let right = other.as_ref().unwrap_or(left);
    let tiles: Vec<(usize, usize)> = (0..left.blocks.len())
        .flat_map(|p| (if is_symmetric { p } else { 0 }..right.blocks.len()).map(move |q| (p, q)))
        .collect();
    let parts: Vec<Vec<[f64; BUCKETS]>> = tiles
        .into_par_iter()
        .map_init(Buffers::default, |buffers, (p, q)| {
            buffers.fill(groupings, (left, p), (right, q));
            // Of a symmetric matrix the tiles above the diagonal stand for those below.
            let weight = if is_symmetric && p != q { 2.0 } else { 1.0 };
            let products =
                groupings.iter().zip(&buffers.tiles).map(|(groups, tiles)| products(groups, tiles, weight));
            products.collect()
        })
        .collect();
    let total = |(at, groups): (usize, &&Groups)| {
        let mut buckets = [0.0; BUCKETS];
        for part in &parts {
            buckets.iter_mut().zip(part[at]).for_each(|(sum, x)| *sum += x);
        }
        for group in 0..groups.len() {
            // The terms i = j are squares of 1.
            buckets[groups.bucket(group, group)] -= groups.members(group).len() as f64 / 2.0;
        }
        buckets
    };
    groupings.iter().enumerate().map(total).collect()
}

/// A tile of every group of every grouping, and packed samples.
#[derive(Default)]
struct Buffers {
    tiles: Vec<Vec<f64>>,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Buffers {
    fn fill(&mut self, groupings: &[&Groups], (left, p): (&Blocks, usize), (right, q): (&Blocks, usize)) {
        self.tiles.resize_with(groupings.len(), Vec::new);
        for (at, groups) in groupings.iter().enumerate() {
            let (done, tiles) = self.tiles.split_at_mut(at);
            tiles[0].clear();
            tiles[0].resize(groups.len() * AREA, 0.0);
            for (group, tile) in tiles[0].chunks_exact_mut(AREA).enumerate() {
                // Samples whose label is right form the same groups by either label.
                if let (Some(twin), Some(done)) = (groups.twin(group), done.first()) {
                    tile.copy_from_slice(&done[twin * AREA..][..AREA]);
                    continue;
                }
                for samples in groups.members(group).chunks(PACKED) {
                    left.pack::<ROWS>(&mut self.left, p, samples);
                    right.pack::<COLUMNS>(&mut self.right, q, samples);
                    add_outer(tile, &self.left, &self.right);
                }
            }
        }
    }
}

/// Inner products of the tiles of all pairs of groups, those of a group with itself halved.
fn products(groups: &Groups, tiles: &[f64], weight: f64) -> [f64; BUCKETS] {
    let count = groups.len();
    let tile = |group: usize| &tiles[group.min(count - 1) * AREA..][..AREA];
    let mut buckets = [0.0; BUCKETS];
    for a in (0..count).step_by(2) {
        for b in (a..count).step_by(4) {
            let products = dots([tile(a), tile(a + 1)], [tile(b), tile(b + 1), tile(b + 2), tile(b + 3)]);
            for (x, row) in products.iter().enumerate() {
                for (y, product) in row.iter().enumerate() {
                    let (a, b) = (a + x, b + y);
                    if a <= b && b < count {
                        let share = if a == b { 0.5 } else { 1.0 };
                        buckets[groups.bucket(a, b)] += weight * share * product;
                    }
                }
            }
        }
    }
    buckets
}

/// Features in blocks of `SIDE` columns, zeros beyond the last: what a tile needs lies close together, in the caches.
struct Blocks<'a> {
    units: &'a Units<'a>,
    blocks: Vec<Vec<f32>>,
}

impl<'a> Blocks<'a> {
    fn new(units: &'a Units<'a>) -> Self {
        let block = |at: usize| {
            let columns = at * SIDE..units.dim().min((at + 1) * SIDE);
            let mut block = vec![0.0; units.len() * SIDE];
            for (sample, out) in block.chunks_exact_mut(SIDE).enumerate() {
                out[..columns.len()].copy_from_slice(&units.row(sample)[columns.clone()]);
            }
            block
        };
        Self { units, blocks: (0..units.dim().div_ceil(SIDE)).into_par_iter().map(block).collect() }
    }

    /// Units of some samples: strips of `W` columns, each with all samples in order.
    fn pack<const W: usize>(&self, into: &mut Vec<f64>, block: usize, samples: &[u32]) {
        into.resize(samples.len() * SIDE, 0.0);
        let rows = self.blocks[block].as_chunks::<SIDE>().0;
        let strips = into.as_chunks_mut::<W>().0;
        for (at, &sample) in samples.iter().enumerate() {
            let inverse = self.units.inverse(sample as usize);
            for (strip, values) in rows[sample as usize].as_chunks::<W>().0.iter().enumerate() {
                strips[strip * samples.len() + at] = values.map(|x| f64::from(x) * inverse);
            }
        }
    }
}

for_this_cpu! {
    /// `tile += sum over samples of left right^T`, both packed.
    fn add_outer(tile: &mut [f64], left: &[f64], right: &[f64]) {
        let (left, right) = (left.as_chunks::<ROWS>().0, right.as_chunks::<COLUMNS>().0);
        let samples = left.len() / (SIDE / ROWS);
        for (p, left) in left.chunks_exact(samples).enumerate() {
            for (q, right) in right.chunks_exact(samples).enumerate() {
                let mut sums = [[0.0; COLUMNS]; ROWS];
                for (l, r) in left.iter().zip(right) {
                    for a in 0..ROWS {
                        for b in 0..COLUMNS {
                            sums[a][b] += l[a] * r[b];
                        }
                    }
                }
                for (a, sums) in sums.iter().enumerate() {
                    let row = &mut tile[(p * ROWS + a) * SIDE + q * COLUMNS..][..COLUMNS];
                    row.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
                }
            }
        }
    }
}

for_this_cpu! {
    /// Inner products of two lists with four, of lengths that four divides.
    pub(crate) fn dots(a: [&[f64]; 2], b: [&[f64]; 4]) -> [[f64; 4]; 2] {
        let mut chains = [[[0.0; 4]; 4]; 2];
        let (a, b) = (a.map(|a| a.as_chunks::<4>().0), b.map(|b| b.as_chunks::<4>().0));
        let firsts = a[0].iter().zip(a[1]);
        let others = b[0].iter().zip(b[1]).zip(b[2].iter().zip(b[3]));
        for ((a0, a1), ((b0, b1), (b2, b3))) in firsts.zip(others) {
            for (chains, a) in chains.iter_mut().zip([a0, a1]) {
                for (chain, b) in chains.iter_mut().zip([b0, b1, b2, b3]) {
                    for lane in 0..4 {
                        chain[lane] += a[lane] * b[lane];
                    }
                }
            }
        }
        chains.map(|chains| chains.map(|chain| chain.iter().sum()))
    }
}

/// The d x d matrix of sum over samples of left right^T, row by row, over the samples of all groups.
pub(crate) fn cross(groups: &Groups, left: &Units, right: &Units) -> Vec<f64> {
    let (rows, columns) = (left.dim(), right.dim());
    let (left, right) = (&Blocks::new(left), &Blocks::new(right));
    let blocks = right.blocks.len();
    let tiles: Vec<Vec<f64>> = (0..rows.div_ceil(SIDE) * blocks)
        .into_par_iter()
        .map(|at| {
            let mut buffers = Buffers::default();
            buffers.fill(&[groups], (left, at / blocks), (right, at % blocks));
            let mut sum = vec![0.0; AREA];
            for tile in buffers.tiles[0].chunks_exact(AREA) {
                sum.iter_mut().zip(tile).for_each(|(sum, x)| *sum += x);
            }
            sum
        })
        .collect();
    let at = |row: usize, column: usize| {
        tiles[row / SIDE * blocks + column / SIDE][row % SIDE * SIDE + column % SIDE]
    };
    (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).map(|(r, c)| at(r, c)).collect()
}
