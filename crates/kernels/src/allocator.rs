//! An allocator that keeps large blocks for their next use.
//!
//! Every step of training asks for the same large buffers and gives them back. The system's allocator returns such blocks to the
//! operating system, which then clears every page again before it hands it out: a sixth of a step's time, measured. A program
//! says once that it wants to keep them:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: negscale_kernels::Allocator = negscale_kernels::Allocator;
//! # fn main() { assert_eq!(vec![0u8; 1 << 20].len(), 1 << 20); }
//! ```
//!
//! **Memory.** Blocks in use and blocks kept together never exceed the largest amount that was in use at one time by more than
//! 32 MiB: before a new block is made, blocks that have waited longest go back to the system. Small blocks are left to
//! the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;

/// Blocks from this size on are kept.
const LARGE: usize = 1 << 18;
/// What may be kept beyond the largest amount in use, in bytes.
const MARGIN: usize = 32 << 20;
/// Blocks that can be kept.
const SLOTS: usize = 256;

/// The system's allocator, with reuse of large blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

#[derive(Clone, Copy)]
struct Block {
    address: usize,
    size: usize,
    /// When it was given back.
    since: u64,
}

struct Kept {
    blocks: [Block; SLOTS],
    count: usize,
    bytes: usize,
    in_use: usize,
    most: usize,
    clock: u64,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    blocks: [Block { address: 0, size: 0, since: 0 }; SLOTS],
    count: 0,
    bytes: 0,
    in_use: 0,
    most: 0,
    clock: 0,
});

impl Kept {
    fn remove(&mut self, i: usize) -> Block {
        let block = self.blocks[i];
        self.count -= 1;
        self.blocks[i] = self.blocks[self.count];
        self.bytes -= block.size;
        block
    }

    fn oldest(&self) -> Option<usize> {
        (0..self.count).min_by_key(|&i| self.blocks[i].since)
    }

    fn count_in(&mut self, size: usize) {
        self.in_use += size;
        self.most = self.most.max(self.in_use);
    }

    /// A kept block of this size.
    fn find(&mut self, size: usize) -> Option<usize> {
        // The one given back last is the likeliest to be in the cache.
        let found =
            (0..self.count).filter(|&i| self.blocks[i].size == size).max_by_key(|&i| self.blocks[i].since);
        found.map(|i| self.remove(i).address)
    }
}

/// Sizes are rounded up to one of eight steps per power of two, so that similar sizes share blocks.
fn rounded(size: usize) -> usize {
    let step = (size.next_power_of_two() >> 4).max(1);
    size.next_multiple_of(step)
}

/// The layout that a large block of this size really has.
fn real(layout: Layout) -> Option<Layout> {
    if layout.size() < LARGE || layout.align() > 64 {
        return None;
    }
    Layout::from_size_align(rounded(layout.size()), 64).ok()
}

fn lock() -> std::sync::MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn release(block: Block) {
    if let Ok(layout) = Layout::from_size_align(block.size, 64) {
        // SAFETY: the block came from the system's allocator with this layout, and nobody has its address any more.
        unsafe { System.dealloc(block.address as *mut u8, layout) };
    }
}

/// A kept block, or room made for a new one.
fn reuse(size: usize) -> Option<*mut u8> {
    let mut kept = lock();
    if let Some(address) = kept.find(size) {
        kept.count_in(size);
        return Some(address as *mut u8);
    }
    let wanted = kept.in_use.saturating_add(size);
    let most = kept.most.max(wanted);
    while wanted.saturating_add(kept.bytes) > most.saturating_add(MARGIN) {
        let Some(oldest) = kept.oldest() else { break };
        release(kept.remove(oldest));
    }
    None
}

/// Counts a new block, unless the system had none: a wish that failed must not raise the largest amount in use.
fn made(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        lock().count_in(size);
    }
    block
}

// SAFETY: small blocks are the system's. A large block has the system's block of the rounded size, from `alloc` to `dealloc` with one owner
// at a time: it is either in use or in the list, which a lock guards.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(real) = real(layout) else {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { System.alloc(layout) };
        };
        reuse(real.size()).unwrap_or_else(|| {
            // SAFETY: the size is not zero.
            made(unsafe { System.alloc(real) }, real.size())
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(real) = real(layout) else {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        };
        if let Some(block) = reuse(real.size()) {
            // SAFETY: the block has at least this size.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        // SAFETY: the size is not zero. Fresh pages are zero already, so this costs nothing.
        made(unsafe { System.alloc_zeroed(real) }, real.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(real) = real(layout) else {
            // SAFETY: a small block came from the system's allocator with this layout.
            return unsafe { System.dealloc(pointer, layout) };
        };
        let mut kept = lock();
        kept.in_use -= real.size();
        kept.clock += 1;
        if kept.count == SLOTS
            && let Some(oldest) = kept.oldest()
        {
            release(kept.remove(oldest));
        }
        let (count, since) = (kept.count, kept.clock);
        kept.blocks[count] = Block { address: pointer as usize, size: real.size(), since };
        kept.count += 1;
        kept.bytes += real.size();
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
            return std::ptr::null_mut();
        };
        match (real(layout), real(wanted)) {
            // SAFETY: a small block stays small: the system's own.
            (None, None) => unsafe { System.realloc(pointer, layout, size) },
            (Some(old), Some(new)) if old == new => pointer,
            // SAFETY: both blocks are valid for the smaller of the two sizes.
            _ => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    std::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                    self.dealloc(pointer, layout);
                }
                moved
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_by_at_most_an_eighth() {
        for size in (LARGE..1 << 22).step_by(4999) {
            let real = rounded(size);
            assert!(real >= size && real <= size + size / 8 + 1, "{size} {real}");
            assert_eq!(rounded(real), real);
        }
    }

    /// One test for all, because the list is one for the process.
    #[test]
    fn blocks_are_reused_grown_in_place_and_given_back_when_memory_would_grow() {
        let layout = |size| Layout::from_size_align(size, 4).unwrap();
        // SAFETY: every block is used with its own layout, inside its size, until it is given back.
        unsafe {
            let first = Allocator.alloc(layout(LARGE + 1000));
            first.write_bytes(7, LARGE + 1000);
            let grown = Allocator.realloc(first, layout(LARGE + 1000), LARGE + 2000);
            assert_eq!(first, grown, "the rounded size has room");
            Allocator.dealloc(grown, layout(LARGE + 2000));
            let again = Allocator.alloc_zeroed(layout(LARGE + 500));
            assert_eq!(first, again, "the same block serves a similar size");
            assert!((0..LARGE + 500).all(|i| *again.add(i) == 0), "and is clean where it must be");
            let small = Allocator.realloc(again, layout(LARGE + 500), 100);
            assert!((0..100).all(|i| *small.add(i) == 0));
            Allocator.dealloc(small, layout(100));

            // A wish that no system grants leaves no trace.
            let most = lock().most;
            assert!(Allocator.alloc(layout(isize::MAX as usize / 4)).is_null());
            assert_eq!(lock().most, most);

            // One at a time, of many sizes: what is kept stays bounded.
            for i in 1..40 {
                let size = i * (8 << 20);
                let block = Allocator.alloc(layout(size));
                block.write(1);
                Allocator.dealloc(block, layout(size));
                let kept = lock();
                assert!(kept.bytes + kept.in_use <= kept.most + MARGIN, "{} {}", kept.bytes, kept.most);
            }
            assert_eq!(lock().in_use, 0);
        }
    }
}
