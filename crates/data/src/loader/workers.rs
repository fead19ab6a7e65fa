//! Threads that make batches ahead of the consumer, within a bound.
//!
//! A worker takes the next batch number only while that number is less than `prefetch` ahead of the consumer; so at most
//! `prefetch` batches are being made or wait, beside those the consumer holds. Batches are handed out by number whatever the
//! order in which they get ready.

use super::batch::{Batch, Buffers, Held, Part, Pool};
use super::cache::{Moment, Source};
use super::order::{Planned, Schedule};
use crate::views::{Scratch, View};
use crate::{Error, Result};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What all workers of an epoch share.
pub(super) struct Work {
    pub source: Arc<Source>,
    pub labels: Arc<[u32]>,
    pub dataset: String,
    pub views: Vec<View>,
    pub unlabelled_views: Option<Vec<View>>,
    pub seed: u64,
    pub epoch: u64,
    pub schedule: Schedule,
    pub pool: Arc<Pool>,
    pub prefetch: usize,
}

#[derive(Default)]
struct State {
    /// Next batch to be made.
    next: usize,
    /// Next batch to be handed out.
    consumed: usize,
    ready: HashMap<usize, Result<Held>>,
    closed: bool,
}

struct Desk {
    state: Mutex<State>,
    /// The consumer waits here for a batch, the workers for room.
    got_ready: Condvar,
    got_room: Condvar,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while making a batch is caught before the lock is taken, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The batches of an epoch, in order. Dropping it stops its threads.
///
/// After an error there are no more batches.
pub struct Batches {
    work: Arc<Work>,
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
}

impl Batches {
    pub(super) fn start(work: Work, first: usize, threads: usize) -> Result<Self> {
        let state = State { next: first, consumed: first, ..State::default() };
        let desk = Desk { state: Mutex::new(state), got_ready: Condvar::new(), got_room: Condvar::new() };
        let mut batches = Self { work: Arc::new(work), desk: Arc::new(desk), threads: Vec::new() };
        let left = batches.work.schedule.len().saturating_sub(first);
        for number in 0..threads.min(batches.work.prefetch).min(left) {
            let (work, desk) = (batches.work.clone(), batches.desk.clone());
            let thread = std::thread::Builder::new().name(format!("loader-{number}"));
            // On failure the threads already started end with `batches`.
            batches
                .threads
                .push(thread.spawn(move || labour(&work, &desk)).map_err(|e| Error::io("loader thread", e))?);
        }
        Ok(batches)
    }

    /// Batches of the whole epoch, those handed out included.
    pub fn total(&self) -> usize {
        self.work.schedule.len()
    }

    fn close(&self) {
        self.desk.lock().closed = true;
        self.desk.got_room.notify_all();
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut state = self.desk.lock();
        let number = state.consumed;
        if state.closed || number >= self.work.schedule.len() {
            return None;
        }
        let made = loop {
            match state.ready.remove(&number) {
                Some(made) => break made,
                None => state = self.desk.got_ready.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        state.consumed += 1;
        drop(state);
        match &made {
            Ok(_) => self.desk.got_room.notify_one(),
            Err(_) => self.close(),
        }
        Some(made.map(|held| Batch { epoch: self.work.epoch, number, held }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let state = self.desk.lock();
        let left = if state.closed { 0 } else { self.work.schedule.len().saturating_sub(state.consumed) };
        (usize::from(left > 0), Some(left))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.close();
        for thread in self.threads.drain(..) {
            // A worker catches panics itself; there is nothing to learn here.
            let _ = thread.join();
        }
    }
}

/// A worker's life.
fn labour(work: &Work, desk: &Desk) {
    let mut scratch = Scratch::new();
    loop {
        let mut state = desk.lock();
        while !state.closed
            && state.next < work.schedule.len()
            && state.next >= state.consumed.saturating_add(work.prefetch)
        {
            state = desk.got_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed || state.next >= work.schedule.len() {
            // Others may wait for room that will not come.
            drop(state);
            desk.got_room.notify_all();
            return;
        }
        let number = state.next;
        state.next += 1;
        drop(state);
        let made = catch_unwind(AssertUnwindSafe(|| work.make(number, &mut scratch, desk)));
        let made = made.unwrap_or_else(|_| Err(work.broken(number)));
        desk.lock().ready.insert(number, made);
        desk.got_ready.notify_one();
    }
}

impl Work {
    fn make(&self, number: usize, scratch: &mut Scratch, desk: &Desk) -> Result<Held> {
        let mut held = self.pool.take();
        let Buffers { first, second } = &mut held.buffers;
        let mut parts = self.schedule.batch(number);
        if let Some(planned) = parts.next() {
            self.fill(first, planned, &self.views, scratch, desk)?;
        }
        match parts.next() {
            Some(planned) => {
                let views = self.unlabelled_views.as_ref().unwrap_or(&self.views);
                self.fill(second.get_or_insert_default(), planned, views, scratch, desk)?;
            }
            None => *second = None,
        }
        Ok(held)
    }

    fn fill(
        &self,
        part: &mut Part,
        planned: &Planned,
        views: &[View],
        scratch: &mut Scratch,
        desk: &Desk,
    ) -> Result<()> {
        let width = self.source.width();
        part.samples.clone_from(&planned.samples);
        part.given.clear();
        part.given.extend(planned.samples.iter().map(|&sample| self.labels[sample as usize]));
        part.views.resize_with(views.len(), Vec::new);
        part.views.iter_mut().for_each(|view| view.resize(planned.samples.len() * width, 0.0));
        for (row, (&sample, &again)) in planned.samples.iter().zip(&planned.again).enumerate() {
            // Large pictures take long: somebody who has stopped listening should not wait for the whole batch.
            if row % 16 == 0 && desk.lock().closed {
                return Ok(());
            }
            let moment = Moment { seed: self.seed, epoch: self.epoch, again: again as u64 };
            let out = part.views.iter_mut().map(|view| &mut view[row * width..(row + 1) * width]);
            self.source.show(sample, views, moment, scratch, out).map_err(|error| Error::Item {
                dataset: self.dataset.clone(),
                item: sample as usize,
                origin: self.source.origin(sample as usize),
                source: Box::new(error),
            })?;
        }
        Ok(())
    }

    /// The error for a panic inside a store.
    fn broken(&self, number: usize) -> Error {
        let samples: Vec<u32> = self.schedule.batch(number).flat_map(|part| part.samples.clone()).collect();
        let (least, most) = (samples.iter().min(), samples.iter().max());
        let place =
            format!("batch {number} (items between {} and {})", least.unwrap_or(&0), most.unwrap_or(&0));
        Error::Defect { dataset: self.dataset.clone(), place }
    }
}
