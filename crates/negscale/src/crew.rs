//! Several threads for the many short steps of one evaluation.
//!
//! A step takes tens of microseconds, waking a sleeping thread as long. So helpers are called once per evaluation and then
//! wait awake for the next step; whoever is there takes the next piece of a step. The caller never waits for a helper that
//! has not come, only for one in the middle of a piece: with a busy pool it does all the work itself, as fast as alone.
//! What a piece is depends on sizes alone, never on the number of threads, and so do the results.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Multiplications that are worth a helper.
const WORTH_A_HELPER: usize = 1 << 21;

/// What a step does with a piece, by number.
type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// Where the caller posts a step, and helpers look for it.
#[derive(Default)]
struct Board {
    /// The step, as a pointer to a pointer that lives as long as the step is open.
    step: AtomicPtr<&'static Work<'static>>,
    pieces: AtomicUsize,
    next: AtomicUsize,
    /// Whether helpers may read `step`.
    open: AtomicBool,
    /// Helpers that may be reading it.
    inside: AtomicUsize,
    /// No more steps will come.
    over: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The caller and its helpers.
pub(crate) struct Crew {
    board: Option<Arc<Board>>,
}

impl Crew {
    /// Calls as many helpers as so many multiplications are worth.
    pub(crate) fn for_work(multiplications: usize) -> Self {
        let threads = rayon::current_num_threads();
        let helpers = (multiplications / WORTH_A_HELPER).min(threads - 1);
        if helpers == 0 {
            return Self { board: None };
        }
        let board = Arc::new(Board::default());
        for _ in 0..helpers {
            let board = Arc::clone(&board);
            rayon::spawn(move || board.help());
        }
        Self { board: Some(board) }
    }

    /// Calls `work` once for every number below `pieces`, on whichever thread is free.
    pub(crate) fn each(&self, pieces: usize, work: impl Fn(usize) + Sync) {
        let Some(board) = self.board.as_deref().filter(|_| pieces > 1) else {
            return (0..pieces).for_each(work);
        };
        let work: &Work = &work;
        let step = Opened::new(board, &work, pieces);
        board.take(work);
        drop(step);
        if let Some(panic) = board.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(panic);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if let Some(board) = &self.board {
            board.over.store(true, SeqCst);
        }
    }
}

/// An open step. Closes when dropped, after which no helper looks at it any more.
struct Opened<'a>(&'a Board);

impl<'a> Opened<'a> {
    fn new<'w>(board: &'a Board, work: &'a &'w Work<'w>, pieces: usize) -> Self {
        board.pieces.store(pieces, SeqCst);
        board.next.store(0, SeqCst);
        board.step.store(std::ptr::from_ref(work).cast_mut().cast(), SeqCst);
        board.open.store(true, SeqCst);
        Self(board)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.open.store(false, SeqCst);
        let mut patience = Patience::default();
        while self.0.inside.load(SeqCst) > 0 {
            patience.wait();
        }
    }
}

impl Board {
    /// Does pieces until none is left.
    fn take(&self, work: &Work) {
        let pieces = self.pieces.load(SeqCst);
        loop {
            let piece = self.next.fetch_add(1, SeqCst);
            if piece >= pieces {
                return;
            }
            work(piece);
        }
    }

    /// A helper's day.
    fn help(&self) {
        let mut patience = Patience::default();
        while !self.over.load(SeqCst) {
            let worked = self.open.load(SeqCst) && self.join();
            patience = if worked { Patience::default() } else { patience };
            patience.wait();
        }
    }

    /// Takes part in the open step; false if there was nothing to do.
    fn join(&self) -> bool {
        self.inside.fetch_add(1, SeqCst);
        let busy = self.open.load(SeqCst) && self.next.load(SeqCst) < self.pieces.load(SeqCst);
        if busy {
            // SAFETY: `inside` was raised before `open` was seen to be true. Closing a step lowers `open` first and then
            // waits until `inside` is 0, so the step was open when this was read, and its work outlives this call.
            let work = unsafe { *self.step.load(SeqCst) };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take(work))) {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
        }
        self.inside.fetch_sub(1, SeqCst);
        busy
    }
}

/// Waiting awake, at first without letting go of the processor.
#[derive(Default)]
struct Patience {
    rounds: u32,
}

impl Patience {
    fn wait(&mut self) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(64) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// From where to where the piece number `at` of 0..n goes, if pieces are `size` long.
pub(crate) fn piece_of(at: usize, size: usize, n: usize) -> [usize; 2] {
    [at * size, (at * size + size).min(n)]
}

/// A slice of which several threads write different parts.
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Shared` stands for a mutable slice of values that may go to other threads, and hands out parts of it only by
// a function whose caller promises that no two parts overlap.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Where the value number `at` is, of `count` values that can be reached from there.
    pub(crate) fn pointer(&self, at: usize, count: usize) -> *mut T {
        assert!(at <= self.len && count <= self.len - at, "{at} + {count} of {}", self.len);
        // SAFETY: inside the slice or at its end.
        unsafe { self.start.add(at) }
    }

    /// `count` values from number `at` on.
    ///
    /// # Safety
    /// As long as the result lives, nobody else may reach any of these values.
    #[allow(clippy::mut_from_ref)] // that is what the promise is about
    pub(crate) unsafe fn part(&self, at: usize, count: usize) -> &'a mut [T] {
        // SAFETY: `pointer` has checked that they are inside the slice; that nobody else has them is promised.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(at, count), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::current;

    /// Enough for a helper on every thread.
    const PLENTY: usize = usize::MAX;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    fn counted(crew: &Crew, pieces: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        crew.each(pieces, |piece| {
            counts[piece].fetch_add(1, SeqCst);
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_piece_is_done_once_before_the_step_ends() {
        for threads in 1..5 {
            pool(threads).install(|| {
                for _ in 0..200 {
                    let crew = Crew::for_work(PLENTY);
                    for pieces in [0, 1, 2, 3, 17, 100] {
                        assert_eq!(counted(&crew, pieces), vec![1; pieces]);
                    }
                }
            });
        }
    }

    #[test]
    fn helpers_take_part() {
        pool(2).install(|| {
            let crew = Crew::for_work(PLENTY);
            let caller = current().id();
            // The caller holds its piece until the helper has had one.
            let helped = AtomicBool::new(false);
            crew.each(2, |_| {
                if current().id() != caller {
                    helped.store(true, SeqCst);
                }
                while !helped.load(SeqCst) {
                    std::thread::yield_now();
                }
            });
        });
    }

    #[test]
    fn a_pool_that_is_busy_holds_nobody_up() {
        let pool = pool(2);
        let (done, busy) = (AtomicBool::new(false), AtomicBool::new(false));
        pool.scope(|scope| {
            // Holds the other thread until the steps are over.
            scope.spawn(|_| {
                busy.store(true, SeqCst);
                while !done.load(SeqCst) {
                    std::thread::yield_now();
                }
            });
            while !busy.load(SeqCst) {
                std::thread::yield_now();
            }
            for _ in 0..100 {
                assert_eq!(counted(&Crew::for_work(PLENTY), 50), vec![1; 50]);
            }
            done.store(true, SeqCst);
        });
    }

    #[test]
    fn little_work_is_done_alone() {
        pool(4).install(|| {
            assert!(Crew::for_work(WORTH_A_HELPER - 1).board.is_none());
            assert!(Crew::for_work(WORTH_A_HELPER).board.is_some());
        });
        pool(1).install(|| assert!(Crew::for_work(PLENTY).board.is_none()));
    }

    #[test]
    fn a_panic_reaches_the_caller_whoever_meets_it_and_the_crew_goes_on() {
        pool(3).install(|| {
            let crew = Crew::for_work(PLENTY);
            for bad in 0..30 {
                let work = || crew.each(30, |piece| assert_ne!(piece, bad, "bad piece"));
                assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "{bad}");
                assert_eq!(counted(&crew, 30), vec![1; 30]);
            }
        });
    }

    #[test]
    #[should_panic(expected = "3 + 3 of 5")]
    fn no_part_reaches_beyond_its_slice() {
        let mut values = [0; 5];
        Shared::new(&mut values).pointer(3, 3);
    }
}
