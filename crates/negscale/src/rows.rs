//! Row-by-row loops over matrices with a row per sample.

use crate::threads::Threads;
use rayon::prelude::*;

/// Rows of a piece of work.
const PIECE: usize = 16;

/// What a loop finds in one row: a sum and a count over the pairs of that sample.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row {
    pub(crate) sum: f64,
    pub(crate) count: usize,
}

/// Sum and count over unordered pairs, when every pair was seen from both of its ends.
pub(crate) fn pairs_of(rows: &[Row]) -> (f64, usize) {
    (rows.iter().map(|r| r.sum).sum::<f64>() / 2.0, rows.iter().map(|r| r.count).sum::<usize>() / 2)
}

/// Calls `visit(i, row i, value i)` for every row of a matrix with rows of `width`. A row is always handled by one
/// call, so the result does not depend on the number of threads.
#[inline(always)]
pub(crate) fn for_rows<T: Send, V: Send>(
    threads: Threads,
    matrix: &mut [T],
    values: &mut [V],
    width: usize,
    visit: impl Fn(usize, &mut [T], &mut V) + Send + Sync,
) {
    if width == 0 {
        return;
    }
    let pieces = matrix.par_chunks_mut(PIECE * width).zip(values.par_chunks_mut(PIECE)).enumerate();
    threads.each(pieces, |(piece, (rows, values))| {
        for (i, (row, value)) in rows.chunks_exact_mut(width).zip(values).enumerate() {
            visit(piece * PIECE + i, row, value);
        }
    });
}
