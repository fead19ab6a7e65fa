//! Instance-dependent noise (Xia et al., "Part-dependent Label Noise", NeurIPS 2020).
//!
//! Item i with row x_i of S numbers and true class y_i, rate tau, C classes:
//!
//! 1. q_i ~ Normal(tau, 0.1^2) truncated to [0, 1];
//! 2. W_k in R^(S x C) with standard normal entries, one for each class k (or one for all);
//! 3. a = x_i^T W_(y_i), a_(y_i) = -inf, s = softmax(a);
//! 4. the label stays with probability 1 - q_i, else it is drawn from s.
//!
//! The mean of q is tau away from the borders; truncation lifts 0.2 to 0.2055, and 0 to 0.08.
//!
//! # How it is computed
//! Step 4 is drawn as "does it change?" and then "to what?", so that only items that change are loaded and multiplied. W is made
//! for one class at a time, column c from the stream (seed, class, c), so memory is bounded and order does not matter. Sums run
//! over S in order, in f64, with the same instructions on every machine: neither threads nor vector units change a label.

use super::choice;
use super::input::InputRows;
use super::spec::{NoiseInput, NoiseMatrices, Rate};
use crate::draw::{Draw, Purpose};
use crate::{Dataset, Result};
use rayon::prelude::*;

/// Standard deviation of q.
const SPREAD: f64 = 0.1;
/// Numbers a matrix may have: 1 GiB.
const MATRIX_LIMIT: usize = 1 << 28;
/// Columns, and items, that are multiplied at once: their sums stay in registers.
const TILE: usize = 4;
/// Items that a thread loads at a time.
const CHUNK: usize = 32;

/// q_i of items 0..n: how likely each label is to change.
pub fn flip_probabilities(rate: Rate, seed: u64, n: usize) -> Vec<f64> {
    (0..n).into_par_iter().map(|i| flip_probability(rate, &mut choice::of_sample(seed, i))).collect()
}

fn flip_probability(rate: Rate, draw: &mut Draw) -> f64 {
    loop {
        let q = rate.get() + SPREAD * draw.normal();
        if (0.0..=1.0).contains(&q) {
            return q;
        }
    }
}

/// A label that changes: whose, and the uniform number that picks its new class.
#[derive(Clone, Copy)]
struct Flip {
    sample: usize,
    pick: f64,
}

pub(super) fn draw_labels(
    dataset: &Dataset,
    clean: &[u32],
    rate: Rate,
    input: NoiseInput,
    matrices: NoiseMatrices,
    seed: u64,
) -> Result<Vec<u32>> {
    let mut labels = clean.to_vec();
    if clean.is_empty() {
        return Ok(labels);
    }
    let throw = |sample| {
        let mut draw = choice::of_sample(seed, sample);
        let q = flip_probability(rate, &mut draw);
        draw.chance(q).then(|| Flip { sample, pick: draw.unit() })
    };
    let classes = dataset.classes().len();
    let mut flips = vec![Vec::new(); classes];
    let thrown: Vec<Flip> = (0..clean.len()).into_par_iter().filter_map(throw).collect();
    thrown.into_iter().for_each(|flip| flips[clean[flip.sample] as usize].push(flip));

    let rows = InputRows::new(dataset, input, MATRIX_LIMIT / classes.next_multiple_of(TILE))?;
    let shared = (matrices == NoiseMatrices::Shared).then(|| Matrix::draw(seed, 0, rows.len(), classes));
    for (class, flips) in flips.iter().enumerate().filter(|(_, flips)| !flips.is_empty()) {
        let own;
        let matrix = match &shared {
            Some(matrix) => matrix,
            None => {
                own = Matrix::draw(seed, class, rows.len(), classes);
                &own
            }
        };
        let chunks: Vec<Vec<u32>> = flips
            .par_chunks(CHUNK)
            .map(|chunk| targets(&rows, matrix, class, chunk))
            .collect::<Result<_>>()?;
        for (flip, &target) in flips.iter().zip(chunks.iter().flatten()) {
            labels[flip.sample] = target;
        }
    }
    Ok(labels)
}

/// New classes of some items whose true class is `class`.
fn targets(rows: &InputRows, matrix: &Matrix, class: usize, flips: &[Flip]) -> Result<Vec<u32>> {
    let len = rows.len();
    // Padded with zero rows to a whole number of tiles.
    let mut inputs = vec![0.0; flips.len().next_multiple_of(TILE) * len];
    for (flip, row) in flips.iter().zip(inputs.chunks_exact_mut(len)) {
        rows.read(flip.sample, row)?;
    }
    let mut scores = vec![0.0; flips.len().next_multiple_of(TILE) * matrix.columns];
    let tiles = inputs.chunks_exact(TILE * len).zip(scores.chunks_exact_mut(TILE * matrix.columns));
    tiles.for_each(|(inputs, scores)| matrix.multiply(inputs, scores));
    let pairs = flips.iter().zip(scores.chunks_exact(matrix.columns));
    Ok(pairs.map(|(flip, scores)| pick(scores, class, flip.pick)).collect())
}

/// The class, other than `class`, that `at` in [0, 1) falls on when each has the share softmax(scores).
fn pick(scores: &[f64], class: usize, at: f64) -> u32 {
    let others = || scores.iter().enumerate().filter(|&(c, _)| c != class);
    let most = others().fold(f64::NEG_INFINITY, |most, (_, &a)| most.max(a));
    let sum: f64 = others().map(|(_, a)| (a - most).exp()).sum();
    let mut left = at * sum;
    let mut last = class;
    for (c, a) in others() {
        let weight = (a - most).exp();
        if weight > 0.0 {
            last = c;
            if left < weight {
                break;
            }
            left -= weight;
        }
    }
    last as u32
}

/// W of one class, cut into tiles of columns; within a tile row by row.
struct Matrix {
    rows: usize,
    columns: usize,
    tiles: Vec<f32>,
}

impl Matrix {
    fn draw(seed: u64, class: usize, rows: usize, columns: usize) -> Self {
        let mut tiles = vec![0.0; rows * columns.next_multiple_of(TILE)];
        tiles.par_chunks_mut(rows * TILE).enumerate().for_each(|(tile, values)| {
            for lane in 0..TILE.min(columns - tile * TILE) {
                let column = tile * TILE + lane;
                let mut draw = Draw::new(seed, Purpose::NoiseMatrix, class as u64, column as u64);
                values[lane..].iter_mut().step_by(TILE).for_each(|value| *value = draw.normal() as f32);
            }
        });
        Self { rows, columns, tiles }
    }

    /// Scores of a tile of inputs: `scores[i][c]` = sum over s of `inputs[i][s]` W[s][c].
    fn multiply(&self, inputs: &[f64], scores: &mut [f64]) {
        let row = |i: usize| &inputs[i * self.rows..(i + 1) * self.rows];
        let inputs: [&[f64]; TILE] = std::array::from_fn(row);
        for (tile, weights) in self.tiles.chunks_exact(self.rows * TILE).enumerate() {
            let mut sums = [[0.0f64; TILE]; TILE];
            for (s, weights) in weights.as_chunks::<TILE>().0.iter().enumerate() {
                let weights = weights.map(f64::from);
                for i in 0..TILE {
                    let x = inputs[i][s];
                    for lane in 0..TILE {
                        sums[i][lane] += x * weights[lane];
                    }
                }
            }
            let width = TILE.min(self.columns - tile * TILE);
            for (i, sums) in sums.iter().enumerate() {
                let at = i * self.columns + tile * TILE;
                scores[at..at + width].copy_from_slice(&sums[..width]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiled_products_equal_the_literal_sum() {
        for (rows, columns) in [(1, 1), (7, 5), (33, 10)] {
            let matrix = Matrix::draw(5, 2, rows, columns);
            let weight = |s: usize, c: usize| {
                let mut draw = Draw::new(5, Purpose::NoiseMatrix, 2, c as u64);
                (0..=s).map(|_| draw.normal() as f32).last().unwrap()
            };
            let inputs: Vec<f64> = (0..TILE * rows).map(|at| (at as f64).sin()).collect();
            let mut scores = vec![f64::NAN; TILE * columns];
            matrix.multiply(&inputs, &mut scores);
            for i in 0..TILE {
                for c in 0..columns {
                    let sum: f64 = (0..rows).map(|s| inputs[i * rows + s] * f64::from(weight(s, c))).sum();
                    assert!((scores[i * columns + c] - sum).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_pick_follows_the_softmax_and_never_keeps_the_class() {
        let scores: Vec<f64> = [0.1f64, 0.2, 0.3, 0.4].iter().map(|p| p.ln()).collect();
        let n = 9000;
        let mut counts = [0; 4];
        (0..n).for_each(|at| counts[pick(&scores, 0, at as f64 / n as f64) as usize] += 1);
        assert_eq!(counts[0], 0);
        for c in 1..4 {
            let expected = n as f64 * (c + 1) as f64 / 9.0;
            assert!((f64::from(counts[c]) - expected).abs() <= 1.0, "{counts:?}");
        }
        let far = [0.0, 3000.0, -3000.0];
        assert_eq!([pick(&far, 0, 0.999), pick(&far, 1, 0.0), pick(&far, 1, 1.0 - 1e-16)], [1, 0, 0]);
        assert_eq!(pick(&[0.0, 0.0], 1, 0.5), 0);
    }
}
