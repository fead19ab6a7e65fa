//! The threads that share an evaluation: those of the rayon pool, or the caller's alone.
//!
//! Work is cut into pieces by sizes alone, never by the number of threads, so neither do results depend on it.

use rayon::prelude::*;

/// Multiplications that are worth a second thread of the pool that the caller is in.
const WORTH_SHARING: usize = 1 << 21;

/// Multiplications that are worth waking the pool for a caller outside, who sleeps meanwhile: below, that takes longer than it saves. In
/// programs with threads of their own, such as PyTorch, those also wait on the cores for a while.
const WORTH_WAKING: usize = 1 << 26;

/// Who takes the pieces of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Threads {
    /// The caller.
    One,
    /// Whoever is free in the pool.
    All,
}

impl Threads {
    /// As many as so many multiplications are worth.
    pub(crate) fn for_work(multiplications: usize) -> Self {
        let worth = if rayon::current_thread_index().is_some() { WORTH_SHARING } else { WORTH_WAKING };
        if multiplications < worth || rayon::current_num_threads() == 1 { Self::One } else { Self::All }
    }

    /// Runs an evaluation of several steps where these threads are. A caller outside of the pool waits for it once: each step
    /// for itself would put the caller to sleep and wake it again.
    pub(crate) fn run<R: Send>(self, evaluation: impl FnOnce() -> R + Send) -> R {
        match self {
            Self::One => evaluation(),
            Self::All => rayon::scope(|_| evaluation()),
        }
    }

    /// Does a step: `work` once for every piece.
    pub(crate) fn each<P: IndexedParallelIterator>(self, pieces: P, work: impl Fn(P::Item) + Send + Sync) {
        match self {
            Self::One => pieces.with_min_len(usize::MAX).for_each(work),
            // Pieces are few and large: several in one hand could leave the others without work at the end.
            Self::All => pieces.with_max_len(1).for_each(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread::current;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// How often each piece was done.
    fn counted(threads: Threads, pieces: usize, inside: impl Fn() + Sync) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        threads.each(counts.par_iter(), |count| {
            inside();
            count.fetch_add(1, SeqCst);
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_piece_is_done_once_before_the_step_ends() {
        for threads in 1..5 {
            pool(threads).install(|| {
                for pieces in [0, 1, 2, 3, 17, 100] {
                    for threads in [Threads::One, Threads::All] {
                        assert_eq!(counted(threads, pieces, || ()), vec![1; pieces]);
                    }
                }
            });
        }
    }

    #[test]
    fn steps_inside_of_pieces_and_on_several_threads_at_once_do_every_piece_once() {
        let nested = || assert_eq!(counted(Threads::All, 7, || ()), vec![1; 7]);
        let outer = || assert_eq!(counted(Threads::All, 9, nested), vec![1; 9]);
        pool(3).install(|| {
            for _ in 0..200 {
                outer();
            }
        });
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| Threads::All.run(outer)));
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_once_whoever_meets_it() {
        pool(3).install(|| {
            for bad in 0..30 {
                let work = || {
                    Threads::All.each((0..30).into_par_iter(), |piece| assert_ne!(piece, bad, "bad piece"))
                };
                assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "{bad}");
                assert_eq!(counted(Threads::All, 30, || ()), vec![1; 30]);
            }
        });
    }

    #[test]
    fn several_threads_take_part() {
        pool(2).install(|| {
            let caller = current().id();
            // The caller holds its piece until the other thread has had one.
            let helped = AtomicUsize::new(0);
            Threads::All.each((0..2).into_par_iter(), |_| {
                if current().id() != caller {
                    helped.store(1, SeqCst);
                }
                while helped.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
            });
        });
    }

    #[test]
    fn little_work_is_done_by_the_caller() {
        pool(4).install(|| {
            assert_eq!(Threads::for_work(WORTH_SHARING - 1), Threads::One);
            assert_eq!(Threads::for_work(WORTH_SHARING), Threads::All);
        });
        pool(1).install(|| assert_eq!(Threads::for_work(usize::MAX), Threads::One));
        assert_eq!(Threads::for_work(WORTH_WAKING - 1), Threads::One, "outside of the pool");
        let caller = current().id();
        Threads::One
            .run(|| Threads::One.each((0..50).into_par_iter(), |_| assert_eq!(current().id(), caller)));
    }
}
