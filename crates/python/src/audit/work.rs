//! The work of an audit, on a thread of its own, so that Python hears how far it is and Ctrl-C ends the call within a second.

use crate::calls::on_threads;
use crate::errors::{fault, raise};
use negscale_methods::trainer::Progress;
use negscale_run::{Stop, Watch};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often Python is asked whether Ctrl-C was pressed.
const POLL: Duration = Duration::from_millis(50);
/// How long work that was asked to stop is waited for. A step of an audit of very many classes may take longer: it then ends by itself, and nobody waits.
const GRACE: Duration = Duration::from_millis(700);
/// The number of SIGINT.
const SIGINT: usize = 2;

/// What the work says.
enum Message<T> {
    Done(f64),
    Over(Result<negscale_run::Result<T>, Box<dyn Any + Send>>),
}

/// Sends on how much is done, from 0 to 1.
struct Reporter<T>(Sender<Message<T>>);

impl<T: Send> Watch for Reporter<T> {
    fn progress(&mut self, done: f64) {
        // Nobody listens any more after a stop.
        let _ = self.0.send(Message::Done(done));
    }

    fn batch(&mut self, at: &Progress) {
        let done = at.epoch as f64 + at.done as f64 / at.of.max(1) as f64;
        self.progress((done / at.epochs.max(1) as f64).min(1.0));
    }
}

/// Does the work of an audit. Meanwhile `progress` is called with the share that is done; if it raises, or Ctrl-C is pressed, the work is asked to stop, and that is
/// what the call ends with. Files of a run stay as a stop leaves them.
pub(super) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut dyn Watch, &Stop) -> negscale_run::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (stop, (sender, messages)) = (Stop::default(), channel());
    // Shared with closures that run without the GIL.
    let messages = Mutex::new(messages);
    let next = || messages.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL);
    let asked = stop.clone();
    let all = move || {
        let mut reporter = Reporter(sender.clone());
        let over = catch_unwind(AssertUnwindSafe(|| on_threads(|| work(&mut reporter, &asked))));
        let _ = sender.send(Message::Over(over));
    };
    thread::Builder::new().name("negscale".into()).spawn(all)?;
    let mut shown = 0.0;
    let mut ended: Option<(PyErr, Instant)> = None;
    loop {
        let said = match (py.detach(next), &ended) {
            (Ok(Message::Over(_)), Some(_)) => break,
            (Ok(Message::Over(over)), None) => return over.map_err(|panic| fault(&*panic))?.map_err(raise),
            // Threads that finish at the same time tell so in any order.
            (Ok(Message::Done(done)), None) if done > shown => {
                shown = done;
                progress.map_or(Ok(()), |progress| progress.call1((done,)).map(drop))
            }
            (Err(RecvTimeoutError::Disconnected), _) => {
                return Err(fault(&"the audit ended without an answer"));
            }
            _ => Ok(()),
        };
        match &ended {
            Some((_, until)) if Instant::now() > *until => break,
            Some(_) => {}
            None => {
                if let Err(raised) = said.and_then(|()| py.check_signals()) {
                    stop.ask(SIGINT);
                    ended = Some((raised, Instant::now() + GRACE));
                }
            }
        }
    }
    Err(ended.map_or_else(|| fault(&"the audit ended without an answer"), |(raised, _)| raised))
}
