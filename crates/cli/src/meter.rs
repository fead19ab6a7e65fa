//! An allocator that can measure the peak memory of a piece of work.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// mimalloc, which keeps large blocks from step to step (decision 009), counting while `peak_bytes` runs. Otherwise it costs one relaxed load per call.
pub struct Meter;

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(change: isize) {
    if COUNTING.load(Relaxed) {
        let live = LIVE.fetch_add(change, Relaxed) + change;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to mimalloc, whose contract is the same.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from this one, hence from the one below, with this layout.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`, and the caller keeps the contract of `realloc`.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

/// Largest number of bytes live at one time during `work`, beyond those live before it.
pub fn peak_bytes<R>(work: impl FnOnce() -> R) -> (R, usize) {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let result = work();
    COUNTING.store(false, Relaxed);
    (result, PEAK.load(Relaxed).max(0) as usize)
}
