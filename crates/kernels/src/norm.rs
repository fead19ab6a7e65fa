//! Batch norm on slices: `y = activation(scale * (x - mean) / sqrt(variance + epsilon) + shift + skip)`.
//!
//! With `inv = 1 / sqrt(variance + epsilon)`, `dy'` the gradient through the activation, `n` values per channel,
//! `S1 = sum(dy')` and `S2 = sum(dy' * (x - mean))`:
//!
//! - gradient of `shift` is `S1`, of `scale` is `inv * S2`, of `skip` is `dy'`;
//! - with statistics of the batch `dx = scale * inv * (dy' - S1 / n - (x - mean) * inv^2 * S2 / n)`;
//! - with fixed statistics `dx = scale * inv * dy'`.
//!
//! Memory is the limit, so each pass does all it can: statistics in one pass (a piece is looked at twice while it is in
//! the cache), normalisation with skip and activation in another.

use std::mem::MaybeUninit;

use burn::backend::flex::FlexTensor;

use crate::Activation;
use crate::rows::{ChannelRows, add_rows, overwrite, rewrite, slice, visit};
use crate::slope::{self, Slope, with_slope};

/// Per-channel parameters, repeated over the period of the rows: `(x - mean) * factor + shift`.
pub(crate) struct Affine {
    rows: ChannelRows,
    mean: Vec<f32>,
    factor: Vec<f32>,
    shift: Vec<f32>,
}

impl Affine {
    pub fn new(scale: &[f32], shift: &[f32], mean: &[f32], variance: &[f32], epsilon: f64) -> Self {
        let rows = ChannelRows::new(scale.len());
        let factor = scale.iter().zip(variance).map(|(&s, &v)| (f64::from(s) * inverse(v, epsilon)) as f32);
        Self {
            rows,
            mean: rows.repeat(mean.iter().copied()),
            factor: rows.repeat(factor),
            shift: rows.repeat(shift.iter().copied()),
        }
    }
}

/// `1 / sqrt(variance + epsilon)`.
fn inverse(variance: f32, epsilon: f64) -> f64 {
    1.0 / (f64::from(variance) + epsilon).sqrt()
}

/// Mean and variance (divided by the count) of each channel.
pub(crate) fn measure(x: &[f32], channels: usize) -> (Vec<f32>, Vec<f32>) {
    let rows = ChannelRows::new(channels);
    let parts = visit(x.len(), rows.piece, |start, end| {
        let part = &x[start..end];
        let count = (part.len() / rows.channels) as f64;
        let rough: Vec<f32> =
            rows.fold(&add_rows(part, rows.period)).iter().map(|s| (s / count) as f32).collect();
        let (sums, squares) = add_squares(part, &rows.repeat(rough.iter().copied()));
        let (sums, squares) = (rows.fold(&sums), rows.fold(&squares));
        // The rough mean is rounded: the sums of differences correct both moments.
        let mean: Vec<f64> = rough.iter().zip(&sums).map(|(&m, s)| f64::from(m) + s / count).collect();
        let spread: Vec<f64> = squares.iter().zip(&sums).map(|(q, s)| q - s * s / count).collect();
        (count, mean, spread)
    });
    // Pieces are joined by the rule of Chan, Golub and LeVeque, in their order.
    let (mut n, mut mean, mut spread) = (0.0, vec![0.0; channels], vec![0.0; channels]);
    for (count, part_mean, part_spread) in parts {
        let total = n + count;
        for c in 0..channels {
            let gap: f64 = part_mean[c] - mean[c];
            mean[c] += gap * count / total;
            spread[c] += part_spread[c] + gap * gap * n * count / total;
        }
        n = total;
    }
    let variance = spread.iter().map(|s| (s.max(0.0) / n) as f32).collect();
    (mean.iter().map(|&m| m as f32).collect(), variance)
}

/// Normalises, adds `skip`, activates. Over `x`'s own buffer if nobody else holds it.
pub(crate) fn normalise(
    x: FlexTensor,
    affine: &Affine,
    skip: Option<&FlexTensor>,
    act: Activation,
) -> FlexTensor {
    let skip = skip.map(slice);
    let work = |start: usize, part: &mut [f32]| match skip {
        None => with_slope!(act, slope => shift_rows(part, affine, slope)),
        Some(skip) => {
            let skip = &skip[start..start + part.len()];
            with_slope!(act, slope => shift_rows_add(part, skip, affine, slope));
        }
    };
    let apart = |start: usize, from: &[f32], to: &mut [MaybeUninit<f32>]| match skip {
        None => with_slope!(act, slope => shift_rows_apart(from, to, affine, slope)),
        Some(skip) => {
            let skip = &skip[start..start + to.len()];
            with_slope!(act, slope => shift_rows_add_apart(from, to, skip, affine, slope));
        }
    };
    // SAFETY: both functions write every value.
    unsafe { rewrite(x, affine.rows.piece, work, apart) }.0
}

/// What the backward pass knows of the forward pass.
pub(crate) struct Past<'a> {
    /// The input. Not needed for fixed statistics if there is an output or no activation and no gradient of `scale`.
    pub x: Option<&'a FlexTensor>,
    /// The output, where a skip hides the sign of what was activated.
    pub out: Option<&'a FlexTensor>,
    pub scale: &'a [f32],
    pub shift: &'a [f32],
    pub mean: &'a [f32],
    pub variance: &'a [f32],
    pub epsilon: f64,
    pub act: Activation,
    /// Whether mean and variance were given instead of those of the batch.
    pub fixed: bool,
}

/// Gradients of `x`, `scale`, `shift` and `skip`, as far as wanted (in this order).
#[derive(Default)]
pub(crate) struct Gradients {
    pub x: Option<FlexTensor>,
    pub scale: Option<Vec<f32>>,
    pub shift: Option<Vec<f32>>,
    pub skip: Option<FlexTensor>,
}

/// The backward pass. `dy` is overwritten where nobody else holds it.
pub(crate) fn differentiate(dy: FlexTensor, past: &Past<'_>, wants: [bool; 4]) -> Gradients {
    let [wants_x, wants_scale, wants_shift, wants_skip] = wants;
    let channels = past.scale.len();
    let affine = Affine::new(past.scale, past.shift, past.mean, past.variance, past.epsilon);
    let rows = affine.rows;
    let x = past.x.map(slice);
    // Once the gradient went through the activation by the output's sign, no activation is left for the passes over x.
    let left = if past.out.is_some() { Activation::None } else { past.act };
    let sums_wanted = wants_scale || wants_shift || (wants_x && !past.fixed);

    let sum_up = |start: usize, dy: &[f32]| -> Option<[Vec<f64>; 2]> {
        if !sums_wanted {
            return None;
        }
        let end = start + dy.len();
        Some(match x {
            Some(x) => {
                let (s1, s2) = with_slope!(left, slope => add_gradients(dy, &x[start..end], &affine, slope));
                [rows.fold(&s1), rows.fold(&s2)]
            }
            None => [rows.fold(&add_rows(dy, rows.period)), vec![0.0; channels]],
        })
    };
    let (dy, parts) = match past.out.map(slice) {
        Some(out) => overwrite(dy, rows.piece, |start, part| {
            slope::pass(part, &out[start..start + part.len()], past.act);
            sum_up(start, part)
        }),
        None => {
            let dy = crate::rows::contiguous(dy);
            let values = slice(&dy);
            let parts = visit(values.len(), rows.piece, |start, end| sum_up(start, &values[start..end]));
            (dy, parts)
        }
    };
    let (mut s1, mut s2) = (vec![0.0; channels], vec![0.0; channels]);
    for [p1, p2] in parts.iter().flatten() {
        for c in 0..channels {
            s1[c] += p1[c];
            s2[c] += p2[c];
        }
    }
    let inverses: Vec<f64> = past.variance.iter().map(|&v| inverse(v, past.epsilon)).collect();
    let mut gradients = Gradients::default();
    if wants_scale {
        gradients.scale = Some(s2.iter().zip(&inverses).map(|(s, inv)| (s * inv) as f32).collect());
    }
    if wants_shift {
        gradients.shift = Some(s1.iter().map(|&s| s as f32).collect());
    }
    if wants_skip {
        // Without an output the activation was none, or there is no skip: dy is its gradient as it is.
        gradients.skip = Some(dy.clone());
    }
    if wants_x {
        let n = (dy.layout().num_elements() / rows.channels) as f64;
        let line = Line::new(&affine, past.fixed, n, [&s1, &s2], &inverses);
        let work = |start: usize, part: &mut [f32]| match x {
            Some(x) if !past.fixed || left != Activation::None => {
                let x = &x[start..start + part.len()];
                with_slope!(left, slope => spread_gradient(part, x, &affine, &line, slope));
            }
            _ => scale_rows(part, &affine.factor),
        };
        gradients.x = Some(overwrite(dy, rows.piece, work).0);
    }
    gradients
}

/// `dx = factor * dy' + tilt * (x - mean) + offset`, per channel, repeated over the period.
struct Line {
    tilt: Vec<f32>,
    offset: Vec<f32>,
}

impl Line {
    fn new(affine: &Affine, fixed: bool, n: f64, [s1, s2]: [&[f64]; 2], inverses: &[f64]) -> Self {
        let part = if fixed { 0.0 } else { -1.0 / n };
        let factor = || affine.factor.iter().map(|&f| f64::from(f) * part);
        let tilt = factor().zip(s2).zip(inverses).map(|((f, s), inv)| (f * s * inv * inv) as f32);
        let offset = factor().zip(s1).map(|(f, s)| (f * s) as f32);
        Self { tilt: affine.rows.repeat(tilt), offset: affine.rows.repeat(offset) }
    }
}

negscale_cpu::for_this_cpu! {
    /// Sums of `x - centre` and of its squares, per position of the period.
    fn add_squares(values: &[f32], centre: &[f32]) -> (Vec<f64>, Vec<f64>) {
        let period = centre.len();
        let mut totals = (vec![0.0f64; period], vec![0.0f64; period]);
        let mut sums = (vec![0.0f32; period], vec![0.0f32; period]);
        for group in values.chunks(32 * period) {
            sums.0.fill(0.0);
            sums.1.fill(0.0);
            for row in group.chunks(period) {
                for (((&v, &c), s), q) in row.iter().zip(centre).zip(&mut sums.0).zip(&mut sums.1) {
                    let gap = v - c;
                    *s += gap;
                    *q += gap * gap;
                }
            }
            for p in 0..period {
                totals.0[p] += f64::from(sums.0[p]);
                totals.1[p] += f64::from(sums.1[p]);
            }
        }
        totals
    }
}

negscale_cpu::for_this_cpu! {
    fn shift_rows<A: Slope>(values: &mut [f32], affine: &Affine, slope: A) {
        for row in values.chunks_mut(affine.rows.period) {
            for (((v, &m), &f), &s) in row.iter_mut().zip(&affine.mean).zip(&affine.factor).zip(&affine.shift) {
                *v = slope.apply((*v - m) * f + s);
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    fn shift_rows_add<A: Slope>(values: &mut [f32], skip: &[f32], affine: &Affine, slope: A) {
        let period = affine.rows.period;
        for (row, skip) in values.chunks_mut(period).zip(skip.chunks(period)) {
            let parameters = affine.mean.iter().zip(&affine.factor).zip(&affine.shift);
            for ((v, &k), ((&m, &f), &s)) in row.iter_mut().zip(skip).zip(parameters) {
                *v = slope.apply((*v - m) * f + s + k);
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// As [`shift_rows`], into a new buffer of the same length.
    fn shift_rows_apart<A: Slope>(values: &[f32], to: &mut [MaybeUninit<f32>], affine: &Affine, slope: A) {
        let period = affine.rows.period;
        for (row, to) in values.chunks(period).zip(to.chunks_mut(period)) {
            let parameters = affine.mean.iter().zip(&affine.factor).zip(&affine.shift);
            for ((&v, to), ((&m, &f), &s)) in row.iter().zip(to).zip(parameters) {
                to.write(slope.apply((v - m) * f + s));
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// As [`shift_rows_add`], into a new buffer of the same length.
    fn shift_rows_add_apart<A: Slope>(values: &[f32], to: &mut [MaybeUninit<f32>], skip: &[f32], affine: &Affine, slope: A) {
        let period = affine.rows.period;
        for ((row, to), skip) in values.chunks(period).zip(to.chunks_mut(period)).zip(skip.chunks(period)) {
            let parameters = affine.mean.iter().zip(&affine.factor).zip(&affine.shift);
            for (((&v, to), &k), ((&m, &f), &s)) in row.iter().zip(to).zip(skip).zip(parameters) {
                to.write(slope.apply((v - m) * f + s + k));
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    /// Sums of `dy'` and of `dy' * (x - mean)`, per position of the period.
    fn add_gradients<A: Slope>(dy: &[f32], x: &[f32], affine: &Affine, slope: A) -> (Vec<f64>, Vec<f64>) {
        let period = affine.rows.period;
        let mut totals = (vec![0.0f64; period], vec![0.0f64; period]);
        let mut sums = (vec![0.0f32; period], vec![0.0f32; period]);
        for (dy, x) in dy.chunks(32 * period).zip(x.chunks(32 * period)) {
            sums.0.fill(0.0);
            sums.1.fill(0.0);
            for (dy, x) in dy.chunks(period).zip(x.chunks(period)) {
                let parameters = affine.mean.iter().zip(&affine.factor).zip(&affine.shift);
                let sums = sums.0.iter_mut().zip(&mut sums.1);
                for (((&dy, &x), ((&m, &f), &s)), (s1, s2)) in dy.iter().zip(x).zip(parameters).zip(sums) {
                    // The same expression as forward, so that the sign is the same to the last bit.
                    let passed = slope.pass(dy, (x - m) * f + s);
                    *s1 += passed;
                    *s2 += passed * (x - m);
                }
            }
            for p in 0..period {
                totals.0[p] += f64::from(sums.0[p]);
                totals.1[p] += f64::from(sums.1[p]);
            }
        }
        totals
    }
}

negscale_cpu::for_this_cpu! {
    fn spread_gradient<A: Slope>(dy: &mut [f32], x: &[f32], affine: &Affine, line: &Line, slope: A) {
        let period = affine.rows.period;
        for (dy, x) in dy.chunks_mut(period).zip(x.chunks(period)) {
            let parameters = affine.mean.iter().zip(&affine.factor).zip(&affine.shift);
            let line = line.tilt.iter().zip(&line.offset);
            for (((dy, &x), ((&m, &f), &s)), (&tilt, &offset)) in dy.iter_mut().zip(x).zip(parameters).zip(line) {
                let passed = slope.pass(*dy, (x - m) * f + s);
                *dy = passed * f + ((x - m) * tilt + offset);
            }
        }
    }
}

negscale_cpu::for_this_cpu! {
    fn scale_rows(values: &mut [f32], factor: &[f32]) {
        for row in values.chunks_mut(factor.len()) {
            for (v, &f) in row.iter_mut().zip(factor) {
                *v *= f;
            }
        }
    }
}
