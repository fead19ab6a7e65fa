//! Threads that make batches ahead of those who use them, within a bound.
//!
//! They start when an epoch needs them and stay until the last loader that shares them, and the last of its epochs, is gone: an epoch
//! or a scan costs no threads of its own. Several epochs may be under way at a time, such as a scan between two batches of
//! training. A free thread makes the next batch of the epoch that is the least ahead of its consumer, and none that is
//! `prefetch` ahead; so an epoch has at most `prefetch` batches that are being made or wait, beside those the consumer holds, and
//! none keeps another from going on. Batches are handed out by number whatever the order in which they get ready.

use super::batch::Batch;
use super::epoch::Epoch;
use crate::views::Scratch;
use crate::{Error, Result};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// An epoch under way.
struct UnderWay {
    id: u64,
    epoch: Arc<Epoch>,
    prefetch: usize,
    /// Next batch to be made.
    next: usize,
    /// Next batch to be handed out.
    consumed: usize,
    /// Batches that are being made.
    making: usize,
    ready: HashMap<usize, Result<Batch>>,
}

impl UnderWay {
    /// Batches made or being made that the consumer has not got yet.
    fn ahead(&self) -> usize {
        self.next - self.consumed
    }

    fn has_work(&self) -> bool {
        !self.is_left() && self.next < self.epoch.schedule.len() && self.ahead() < self.prefetch
    }

    fn is_left(&self) -> bool {
        self.epoch.left.load(Relaxed)
    }

    /// Batches that have not been handed out.
    fn left_over(&self) -> usize {
        if self.is_left() { 0 } else { self.epoch.schedule.len().saturating_sub(self.consumed) }
    }
}

#[derive(Default)]
struct State {
    epochs: Vec<UnderWay>,
    last_id: u64,
    closed: bool,
}

impl State {
    fn epoch(&mut self, id: u64) -> Option<&mut UnderWay> {
        self.epochs.iter_mut().find(|epoch| epoch.id == id)
    }

    /// The next batch to be made, if any: of which epoch, and its number.
    fn take_work(&mut self) -> Option<(u64, Arc<Epoch>, usize)> {
        let chosen =
            self.epochs.iter_mut().filter(|epoch| epoch.has_work()).min_by_key(|epoch| epoch.ahead())?;
        let number = chosen.next;
        chosen.next += 1;
        chosen.making += 1;
        Some((chosen.id, chosen.epoch.clone(), number))
    }
}

#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    /// Consumers wait here for a batch, threads for work.
    got_ready: Condvar,
    got_work: Condvar,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while making a batch is caught before the lock is taken, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, for_what: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        for_what.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads, at most so many. Dropping them ends and joins them.
pub(super) struct Workers {
    desk: Arc<Desk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    most: usize,
}

impl Workers {
    /// None yet.
    pub fn new(most: usize) -> Self {
        Self { desk: Arc::default(), threads: Mutex::default(), most }
    }

    /// Starts threads until there are so many, or as many as are allowed.
    fn start(&self, wanted: usize) -> Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for number in threads.len()..wanted.min(self.most) {
            let desk = self.desk.clone();
            let thread = std::thread::Builder::new().name(format!("loader-{number}"));
            threads.push(thread.spawn(move || labour(&desk)).map_err(|e| Error::io("loader thread", e))?);
        }
        Ok(())
    }

    /// The batches of an epoch from number `first` on.
    pub fn batches(self: &Arc<Self>, epoch: Epoch, first: usize, prefetch: usize) -> Result<Batches> {
        self.start(prefetch.min(epoch.schedule.len().saturating_sub(first)))?;
        let epoch = Arc::new(epoch);
        let mut state = self.desk.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.epochs.push(UnderWay {
            id,
            epoch: epoch.clone(),
            prefetch,
            next: first,
            consumed: first,
            making: 0,
            ready: HashMap::new(),
        });
        drop(state);
        self.desk.got_work.notify_all();
        Ok(Batches { id, epoch, workers: self.clone() })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.desk.lock().closed = true;
        self.desk.got_work.notify_all();
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A thread catches panics itself; there is nothing to learn here.
            let _ = thread.join();
        }
    }
}

/// A thread's life.
fn labour(desk: &Desk) {
    let mut scratch = Scratch::new();
    let mut state = desk.lock();
    while !state.closed {
        let Some((id, epoch, number)) = state.take_work() else {
            state = desk.wait(&desk.got_work, state);
            continue;
        };
        drop(state);
        let made = catch_unwind(AssertUnwindSafe(|| epoch.make(number, &mut scratch)));
        let made = made.unwrap_or_else(|_| Err(epoch.broken(number)));
        // Before the batch is handed in: whoever leaves the epoch then has the store for himself.
        drop(epoch);
        state = desk.lock();
        // An epoch stays on the desk while one of its batches is being made.
        if let Some(epoch) = state.epoch(id) {
            epoch.making -= 1;
            epoch.ready.insert(number, made);
        }
        desk.got_ready.notify_all();
    }
}

/// The batches of an epoch, in order. When it is dropped, nothing more is read for it.
///
/// After an error there are no more batches.
pub struct Batches {
    id: u64,
    epoch: Arc<Epoch>,
    workers: Arc<Workers>,
}

impl Batches {
    /// Batches of the whole epoch, those handed out included.
    pub fn total(&self) -> usize {
        self.epoch.schedule.len()
    }

    fn leave(&self) {
        self.epoch.left.store(true, Relaxed);
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let desk = &self.workers.desk;
        let mut state = desk.lock();
        let made = loop {
            let epoch = state.epoch(self.id).filter(|epoch| epoch.left_over() > 0)?;
            if let Some(made) = epoch.ready.remove(&epoch.consumed) {
                epoch.consumed += 1;
                break made;
            }
            state = desk.wait(&desk.got_ready, state);
        };
        drop(state);
        match &made {
            Ok(_) => desk.got_work.notify_one(),
            Err(_) => self.leave(),
        }
        Some(made)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.workers.desk.lock().epoch(self.id).map_or(0, |epoch| epoch.left_over());
        (usize::from(left > 0), Some(left))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.leave();
        let desk = &self.workers.desk;
        let mut state = desk.lock();
        while state.epoch(self.id).is_some_and(|epoch| epoch.making > 0) {
            state = desk.wait(&desk.got_ready, state);
        }
        let at = state.epochs.iter().position(|epoch| epoch.id == self.id);
        let gone = at.map(|at| state.epochs.swap_remove(at));
        // Its batches are freed without the lock.
        drop(state);
        drop(gone);
    }
}
