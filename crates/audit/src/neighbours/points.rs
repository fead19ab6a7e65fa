//! Rows as they are searched: prepared for products, each once however many copies there are.

use super::Metric;
use crate::crossfit::{Rows, draw};
use rayon::prelude::*;

/// What rows on both sides of a search have in common.
pub(super) struct Frame {
    metric: Metric,
    centre: Vec<f64>,
    /// A power of two by which Euclidean rows are multiplied, so that no product overflows.
    scale: f64,
    /// Whether rows have a number more, which is 1 for a row without direction and 0 for all others.
    has_extra: bool,
}

impl Frame {
    pub(super) fn new(rows: &Rows, others: &Rows, metric: Metric) -> Self {
        let centre = match metric {
            Metric::Cosine { centred: false } => vec![0.0; others.dim()],
            _ => mean(others),
        };
        let mut frame = Self { metric, centre, scale: 1.0, has_extra: false };
        match metric {
            Metric::Cosine { .. } => {
                let lacks = |rows: &Rows| {
                    (0..rows.len()).into_par_iter().any(|row| frame.length(rows.row(row)).is_none())
                };
                frame.has_extra = lacks(rows) || lacks(others);
            }
            Metric::Euclidean => {
                let size = |rows: &Rows| {
                    rows.values().par_iter().map(|x| f64::from(x.abs())).reduce(|| 0.0, f64::max)
                };
                // The centre lies among the values: twice the greatest bounds each difference.
                let most = 2.0 * size(rows).max(size(others));
                if most > 0.0 {
                    frame.scale = (-most.log2().ceil()).exp2();
                }
            }
        }
        frame
    }

    /// Numbers of a prepared row.
    fn dim(&self) -> usize {
        self.centre.len() + usize::from(self.has_extra)
    }

    fn differences<'a>(&'a self, row: &'a [f32]) -> impl Iterator<Item = f64> + 'a {
        row.iter().zip(&self.centre).map(|(&x, centre)| f64::from(x) - centre)
    }

    /// The length of a row from the centre; none if it is no more than what rounding leaves.
    fn length(&self, row: &[f32]) -> Option<f64> {
        let square: f64 = self.differences(row).map(|x| x * x).sum();
        let whole: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        (square > 1e-13 * whole).then(|| square.sqrt())
    }

    fn prepare(&self, row: &[f32], into: &mut [f32]) {
        match self.metric {
            Metric::Euclidean => {
                into.iter_mut().zip(self.differences(row)).for_each(|(to, x)| *to = (x * self.scale) as f32);
            }
            Metric::Cosine { .. } => {
                let length = self.length(row);
                if self.has_extra {
                    into[row.len()] = if length.is_none() { 1.0 } else { 0.0 };
                }
                match length {
                    // Adding zero makes -0 and 0 one number.
                    Some(length) => {
                        let parts = into.iter_mut().zip(self.differences(row));
                        parts.for_each(|(to, x)| *to = (x / length) as f32 + 0.0);
                    }
                    None => into[..row.len()].fill(0.0),
                }
            }
        }
    }
}

/// Columns' means, in blocks of rows that do not depend on threads.
fn mean(rows: &Rows) -> Vec<f64> {
    let dim = rows.dim();
    let add = |mut sum: Vec<f64>, part: Vec<f64>| {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        sum
    };
    let blocks: Vec<Vec<f64>> = rows
        .values()
        .par_chunks(1024 * dim)
        .map(|block| {
            let mut sum = vec![0.0; dim];
            for row in block.chunks_exact(dim) {
                sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            sum
        })
        .collect();
    let sum = blocks.into_iter().fold(vec![0.0; dim], add);
    sum.into_iter().map(|x| x / rows.len().max(1) as f64).collect()
}

/// Different rows, in the order in which they first occur.
pub(super) struct Points<'a> {
    values: Vec<f32>,
    dim: usize,
    /// Squared lengths of the prepared rows.
    squares: Vec<f64>,
    /// Euclidean distances are those of the rows as given.
    given: Option<Rows<'a>>,
    scale: f64,
    point_of: Vec<u32>,
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl<'a> Points<'a> {
    pub(super) fn new(rows: &Rows<'a>, frame: &Frame) -> Self {
        let (count, dim) = (rows.len(), frame.dim());
        let mut values = vec![0.0f32; count * dim];
        values.par_chunks_mut(dim).enumerate().for_each(|(row, into)| frame.prepare(rows.row(row), into));
        let given = (frame.metric == Metric::Euclidean).then_some(*rows);
        // Copies are told by what distances are made of.
        let told = given.unwrap_or_else(|| Rows::whole(&values, dim));
        let (first, point_of) = without_copies(&told);
        for (point, &row) in first.iter().enumerate() {
            values.copy_within(row as usize * dim..(row as usize + 1) * dim, point * dim);
        }
        values.truncate(first.len() * dim);
        let square = |row: &[f32]| row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let squares = values.par_chunks(dim).map(square).collect();
        let mut starts = vec![0u32; first.len() + 1];
        point_of.iter().for_each(|&point| starts[point as usize + 1] += 1);
        (0..first.len()).for_each(|at| starts[at + 1] += starts[at]);
        let (mut members, mut next) = (vec![0; count], starts.clone());
        for (row, &point) in point_of.iter().enumerate() {
            members[next[point as usize] as usize] = row as u32;
            next[point as usize] += 1;
        }
        Self { values, dim, squares, given, scale: frame.scale, point_of, starts, members }
    }

    /// How many different rows.
    pub(super) fn len(&self) -> usize {
        self.squares.len()
    }

    /// How many rows with all copies.
    pub(super) fn rows(&self) -> usize {
        self.point_of.len()
    }

    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn point_of(&self, row: usize) -> usize {
        self.point_of[row] as usize
    }

    /// The rows that are this point, ascending.
    pub(super) fn members(&self, point: usize) -> &[u32] {
        &self.members[self.starts[point] as usize..self.starts[point + 1] as usize]
    }

    /// The prepared row.
    pub(super) fn row(&self, point: usize) -> &[f32] {
        &self.values[point * self.dim..(point + 1) * self.dim]
    }

    /// Prepared rows, one after the other.
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn square(&self, point: usize) -> f64 {
        self.squares[point]
    }

    pub(super) fn gather(&self, points: &[u32], into: &mut Vec<f32>) {
        into.clear();
        points.iter().for_each(|&point| into.extend_from_slice(self.row(point as usize)));
    }

    /// What the distances of this point are made of.
    fn source(&self, point: usize) -> &[f32] {
        match &self.given {
            Some(rows) => rows.row(self.members(point)[0] as usize),
            None => self.row(point),
        }
    }

    /// The square of a distance in the units of prepared rows.
    pub(super) fn squared(&self, distance: f32) -> f64 {
        let distance = f64::from(distance);
        if self.given.is_some() { (distance * self.scale).powi(2) } else { 2.0 * distance }
    }

    /// The distance to a point of another set, and its square in the units of prepared rows.
    pub(super) fn distance(&self, point: usize, others: &Points, other: usize) -> (f32, f64) {
        let square = squared_difference(self.source(point), others.source(other));
        match self.given {
            Some(_) => ((square.sqrt() as f32).min(f32::MAX), square * self.scale * self.scale),
            None => ((0.5 * square) as f32, square),
        }
    }
}

/// $|a - b|^2$, in an order that is the same for all.
fn squared_difference(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a, b) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.0.iter().zip(b.0) {
        for lane in 0..8 {
            let d = f64::from(a[lane]) - f64::from(b[lane]);
            lanes[lane] += d * d;
        }
    }
    for (lane, (&a, &b)) in a.1.iter().zip(b.1).enumerate() {
        let d = f64::from(a) - f64::from(b);
        lanes[lane] += d * d;
    }
    lanes.iter().sum()
}

/// The first of each kind of row, ascending, and for each row the number of its kind.
fn without_copies(rows: &Rows) -> (Vec<u32>, Vec<u32>) {
    let code = |row: usize| {
        let bits = rows.row(row).iter().map(|x| u64::from((x + 0.0).to_bits()));
        (bits.fold(0, draw::mix), row as u32)
    };
    let mut codes: Vec<(u64, u32)> = (0..rows.len()).into_par_iter().map(code).collect();
    codes.par_sort_unstable();
    let mut first_of = vec![0u32; rows.len()];
    for run in codes.chunk_by(|a, b| a.0 == b.0) {
        // More than one only if different rows have the same code.
        let mut kinds: Vec<u32> = Vec::new();
        for &(_, row) in run {
            let same = |&&kind: &&u32| rows.row(kind as usize) == rows.row(row as usize);
            let kind = kinds.iter().find(same).copied().unwrap_or_else(|| {
                kinds.push(row);
                row
            });
            first_of[row as usize] = kind;
        }
    }
    let mut first = Vec::new();
    let mut number = vec![0u32; rows.len()];
    for row in 0..rows.len() {
        if first_of[row] as usize == row {
            number[row] = first.len() as u32;
            first.push(row as u32);
        } else {
            number[row] = number[first_of[row] as usize];
        }
    }
    (first, number)
}
