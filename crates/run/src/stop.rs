//! How a run is asked to stop cleanly: the state is saved, and the same run resumes later.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// A request to stop, shared between those who ask and those who work.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asks to stop; `signal` is the number of the signal that did, such as 15 for SIGTERM.
    pub fn ask(&self, signal: usize) {
        self.signal.store(signal, Relaxed);
        self.asked.store(true, Relaxed);
    }

    /// Set once somebody has asked.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }

    /// Whether somebody has asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The error that names the signal, if somebody has asked.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() { Err(Error::Stopped(self.signal.load(Relaxed))) } else { Ok(()) }
    }
}
