//! Row-by-row loops over matrices with a row per sample, on all cores when the batch is large.

use rayon::prelude::*;

/// Compiles a function twice, for every CPU and for those with AVX2, and calls the right one. Closures inside a function
/// are compiled like the function, which is why this is a macro and not a call with a closure. No operation is reordered or
/// fused, so both give the same bits.
macro_rules! for_this_cpu {
    ($(#[$attribute:meta])* $visible:vis fn $name:ident<T: Real>($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visible fn $name<T: Real>($($argument: $type),*) $(-> $result)? {
            fn plain<T: Real>($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide<T: Real>($($argument: $type),*) $(-> $result)? $body
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2, as was just found out.
                    return unsafe { wide($($argument),*) };
                }
            }
            plain($($argument),*)
        }
    };
}
pub(crate) use for_this_cpu;

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
