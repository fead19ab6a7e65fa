//! An allocator that can tell how much memory a piece of work needed at its peak.

use libmimalloc_sys::{mi_option_set_default, mi_option_t, mi_option_use_numa_nodes};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// mimalloc, counting while [`peak_bytes`] runs. Otherwise it costs one relaxed load per call.
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

/// Has freed memory kept for its next use: every step of training asks for the same large blocks, and the system would clear their pages
/// anew (decision 009). The variable `MIMALLOC_PURGE_DELAY` comes before this.
pub fn keep_freed_memory() {
    /// `mi_option_purge_delay` of mimalloc.h, which the crate leaves out.
    const PURGE_DELAY: mi_option_t = mi_option_use_numa_nodes - 1;
    // SAFETY: sets a number; nothing else of ours sets one at the same time.
    unsafe { mi_option_set_default(PURGE_DELAY, -1) };
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
