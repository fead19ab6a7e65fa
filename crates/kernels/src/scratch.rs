//! Work space that kernels borrow and give back, so that a training step does not ask the operating system for the same
//! memory again and again.

use std::sync::Mutex;

/// At most this many buffers wait for their next use; more would be memory nobody needs.
const KEPT: usize = 8;

static WAITING: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// A borrowed buffer; given back when dropped. Its contents are whatever the last user left there.
pub(crate) struct Scratch {
    buffer: Vec<f32>,
    length: usize,
}

impl Scratch {
    /// A buffer of at least `length` numbers: the smallest one waiting that is large enough, else a new one.
    pub(crate) fn take(length: usize) -> Self {
        let mut waiting = WAITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fitting =
            (0..waiting.len()).filter(|&i| waiting[i].len() >= length).min_by_key(|&i| waiting[i].len());
        // A buffer that is far too large stays for whoever needs it.
        let buffer = match fitting {
            Some(i) if waiting[i].len() <= 4 * length.max(1 << 16) => waiting.swap_remove(i),
            _ => {
                drop(waiting);
                vec![0.0; length]
            }
        };
        Self { buffer, length }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut f32 {
        self.buffer.as_mut_ptr()
    }

    pub(crate) fn as_ptr(&self) -> *const f32 {
        self.buffer.as_ptr()
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.buffer[..self.length]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.push(std::mem::take(&mut self.buffer));
        if waiting.len() > KEPT {
            // The smallest is the cheapest to make anew.
            if let Some(smallest) = (0..waiting.len()).min_by_key(|&i| waiting[i].len()) {
                waiting.swap_remove(smallest);
            }
        }
    }
}

/// A pointer that threads may share: each writes to places of its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared(*mut f32);

// SAFETY: the kernels give every place to exactly one piece of work.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(pointer: *mut f32) -> Self {
        Self(pointer)
    }

    pub(crate) fn get(self) -> *mut f32 {
        self.0
    }
}

/// A vector of `length` numbers that `write` fills through the pointer.
///
/// # Safety
/// `write` must write every number.
pub(crate) unsafe fn filled(length: usize, write: impl FnOnce(*mut f32)) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(length);
    write(numbers.as_mut_ptr());
    // SAFETY: there is room for `length` numbers, and the caller vouches that all were written.
    unsafe { numbers.set_len(length) };
    numbers
}
