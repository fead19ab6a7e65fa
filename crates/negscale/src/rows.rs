//! Row-by-row loops over matrices with a row per sample, on all cores when the batch is large.

use rayon::prelude::*;

/// From this batch size on, sharing rows among threads saves more than waking them costs.
const SHARED_FROM: usize = 384;

/// Runs `work` for a batch of `b` samples: a large batch inside the thread pool, so that the many parallel steps of one
/// evaluation change threads once, and not once each.
pub(crate) fn in_pool<R: Send>(b: usize, work: impl FnOnce() -> R + Send) -> R {
    if b < SHARED_FROM { work() } else { rayon::scope(|_| work()) }
}

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
pub(crate) fn for_rows<T: Send, V: Send>(
    matrix: &mut [T],
    values: &mut [V],
    width: usize,
    visit: impl Fn(usize, &mut [T], &mut V) + Sync,
) {
    if width == 0 {
        return;
    }
    if matrix.len() / width < SHARED_FROM {
        for (i, (row, value)) in matrix.chunks_mut(width).zip(values).enumerate() {
            visit(i, row, value);
        }
    } else {
        let shared = matrix.par_chunks_mut(width).zip(values).with_min_len(16).enumerate();
        shared.for_each(|(i, (row, value))| visit(i, row, value));
    }
}
