//! Channels-last data as rows of channels, cut into pieces of fixed size for the threads, and buffers written in place.
//!
//! The cut is a function of the shape alone, and results of pieces are combined in their order, so that no result depends
//! on the number of threads. Few channels would make rows too short for vector code: the period of a row is therefore a
//! multiple of the channel count, and per-channel values are repeated accordingly.

use std::mem::MaybeUninit;

use burn::backend::flex::FlexTensor;
use burn::backend::{Shape, TensorData};
use rayon::prelude::*;

/// Values in a piece: 64 KiB, so that a second look at a piece finds it in the second-level cache.
const PIECE: usize = 16 * 1024;
/// Below this many values the calling thread does the work: waking another takes about 0.1 ms.
const ALONE: usize = 32 * 1024;

/// How rows of channels are walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChannelRows {
    /// Channels of the data.
    pub channels: usize,
    /// Values after which the pattern of channels begins anew; a multiple of `channels`.
    pub period: usize,
    /// Values in a piece; a multiple of `period`.
    pub piece: usize,
}

impl ChannelRows {
    pub fn new(channels: usize) -> Self {
        let channels = channels.max(1);
        // 8 lanes divide the period, which has at least 128 values, unless one row alone is that long.
        let step = channels << (3 - channels.trailing_zeros().min(3));
        let period = if channels >= 128 { channels } else { step * 128usize.div_ceil(step) };
        Self { channels, period, piece: period * (PIECE / period).max(1) }
    }

    /// A value per channel, repeated over the period.
    pub fn repeat(&self, values: impl Iterator<Item = f32> + Clone) -> Vec<f32> {
        values.cycle().take(self.period).collect()
    }

    /// Sums what belongs to the same channel.
    pub fn fold(&self, sums: &[f64]) -> Vec<f64> {
        let mut folded = vec![0.0; self.channels];
        for row in sums.chunks(self.channels) {
            for (total, v) in folded.iter_mut().zip(row) {
                *total += v;
            }
        }
        folded
    }
}

/// Calls `work` with the start and the end of each piece; the results come in order.
pub(crate) fn visit<R: Send>(len: usize, piece: usize, work: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
    let one = |i: usize| work(i * piece, len.min((i + 1) * piece));
    if len < ALONE {
        (0..len.div_ceil(piece)).map(one).collect()
    } else {
        (0..len.div_ceil(piece)).into_par_iter().map(one).collect()
    }
}

/// A new buffer of `len` values, written piece by piece by `work(start, piece)`.
///
/// # Safety
/// `work` must initialise every value of every piece it is given.
pub(crate) unsafe fn fill<R: Send>(
    len: usize,
    piece: usize,
    work: impl Fn(usize, &mut [MaybeUninit<f32>]) -> R + Sync,
) -> (Vec<f32>, Vec<R>) {
    let piece = piece.max(1);
    let mut values = Vec::with_capacity(len);
    let spare = &mut values.spare_capacity_mut()[..len];
    let results = if len < ALONE {
        spare.chunks_mut(piece).enumerate().map(|(i, part)| work(i * piece, part)).collect()
    } else {
        spare.par_chunks_mut(piece).enumerate().map(|(i, part)| work(i * piece, part)).collect()
    };
    // SAFETY: the capacity is at least `len`, and by this function's contract every piece, hence every value, was written.
    unsafe { values.set_len(len) };
    (values, results)
}

/// Changes a tensor piece by piece with `work(start, values)`: in its own buffer if nobody else holds it, else in a new
/// one, into which each piece is copied just before.
pub(crate) fn overwrite<R: Send>(
    tensor: FlexTensor,
    piece: usize,
    work: impl Fn(usize, &mut [f32]) -> R + Sync,
) -> (FlexTensor, Vec<R>) {
    // SAFETY: each piece is filled by a copy of the same length.
    unsafe {
        rewrite(tensor, piece, &work, |start, from, to: &mut [MaybeUninit<f32>]| {
            work(start, to.write_copy_of_slice(from))
        })
    }
}

/// As [`overwrite`], where `apart(start, values, new)` writes the changed piece into a new buffer.
///
/// # Safety
/// `apart` must initialise every value of every piece it is given.
pub(crate) unsafe fn rewrite<R: Send>(
    tensor: FlexTensor,
    piece: usize,
    work: impl Fn(usize, &mut [f32]) -> R + Sync,
    apart: impl Fn(usize, &[f32], &mut [MaybeUninit<f32>]) -> R + Sync,
) -> (FlexTensor, Vec<R>) {
    let piece = piece.max(1);
    let mut tensor = contiguous(tensor);
    let len = tensor.layout().num_elements();
    let covers_buffer = tensor.layout().start_offset() == 0 && tensor.bytes().len() == len * size_of::<f32>();
    if covers_buffer && let Some(values) = tensor.try_storage_mut::<f32>() {
        #[cfg(test)]
        IN_PLACE.set(IN_PLACE.get() + 1);
        let results = if len < ALONE {
            values.chunks_mut(piece).enumerate().map(|(i, part)| work(i * piece, part)).collect()
        } else {
            values.par_chunks_mut(piece).enumerate().map(|(i, part)| work(i * piece, part)).collect()
        };
        return (tensor, results);
    }
    let source = slice(&tensor);
    // SAFETY: by this function's contract.
    let (values, results) =
        unsafe { fill(len, piece, |start, part| apart(start, &source[start..start + part.len()], part)) };
    (wrap(values, tensor.layout().shape().clone()), results)
}

#[cfg(test)]
thread_local! {
    /// How often this thread changed a tensor in its own buffer.
    pub(crate) static IN_PLACE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The tensor with its values in order. Takes the handle, so that a buffer held once stays held once.
pub(crate) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// The values of a contiguous tensor of f32.
pub(crate) fn slice(tensor: &FlexTensor) -> &[f32] {
    let start = tensor.layout().start_offset();
    &tensor.storage::<f32>()[start..start + tensor.layout().num_elements()]
}

/// A tensor that takes over the buffer.
pub(crate) fn wrap(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

negscale_cpu::for_this_cpu! {
    /// Sum per position of the period. Every 32 rows the f32 sums go into f64 ones, so that rounding errors stay small.
    pub(crate) fn add_rows(values: &[f32], period: usize) -> Vec<f64> {
        let mut totals = vec![0.0f64; period];
        let mut sums = vec![0.0f32; period];
        for group in values.chunks(32 * period) {
            sums.fill(0.0);
            for row in group.chunks(period) {
                for (sum, &v) in sums.iter_mut().zip(row) {
                    *sum += v;
                }
            }
            for (total, &sum) in totals.iter_mut().zip(&sums) {
                *total += f64::from(sum);
            }
        }
        totals
    }
}

/// Sum per channel.
pub(crate) fn add_channels(values: &[f32], channels: usize) -> Vec<f32> {
    let rows = ChannelRows::new(channels);
    let parts =
        visit(values.len(), rows.piece, |start, end| rows.fold(&add_rows(&values[start..end], rows.period)));
    let mut totals = vec![0.0; channels];
    for part in &parts {
        for (total, v) in totals.iter_mut().zip(part) {
            *total += v;
        }
    }
    totals.into_iter().map(|v: f64| v as f32).collect()
}
