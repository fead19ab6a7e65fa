//! How long calls are made: without the GIL, with panics caught, after a fork, and so that Ctrl-C ends them.

use crate::errors::fault;
use negscale_run::Stop;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a long call asks Python whether Ctrl-C was pressed.
const POLL: Duration = Duration::from_millis(50);

/// The number of SIGINT, for whoever reports what a run was stopped by.
const SIGINT: usize = 2;

/// What the main thread of a program usually has; threads have a quarter of it otherwise.
const STACK: usize = 8 << 20;

/// How many forks lie between this process and the one that loaded this module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Threads of a forked child, and its forks.
static OF_CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Does work that may use rayon. A forked child has none of its parent's threads, though rayon believes that they are there: it
/// would wait for them for ever. So a child gets threads of its own.
pub(crate) fn on_threads<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let forks = FORKS.load(Relaxed);
    if forks == 0 {
        return work();
    }
    let mut there = OF_CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match &*there {
        Some((of, pool)) if *of == forks => Some(pool.clone()),
        // The pool of a parent that was a child itself has no threads either.
        _ => ThreadPoolBuilder::new().build().ok().map(Arc::new),
    };
    if let Some(pool) = &pool
        && let Some((_, old)) = there.replace((forks, pool.clone()))
        && !Arc::ptr_eq(&old, pool)
    {
        std::mem::forget(old);
    }
    drop(there);
    match pool {
        Some(pool) => pool.install(work),
        // No thread to be had: rayon on a single one would need one as well, so this is as far as it goes.
        None => work(),
    }
}

/// Does work of some length without the GIL. A panic becomes an exception.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| catch_unwind(AssertUnwindSafe(|| on_threads(work)))).map_err(|panic| fault(&*panic))
}

/// Does long work on a thread of its own, while this one hears what it sends and asks Python for signals. Ctrl-C, or an exception
/// of `hear`, asks the work to stop, waits for it, and is what the call ends with.
pub(crate) fn interruptible<M: Send, R: Send>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce(Sender<M>) -> R + Send,
    mut hear: impl FnMut(Python<'_>, M) -> PyResult<()>,
) -> PyResult<R> {
    let (sender, messages) = channel();
    // Shared with closures that run without the GIL.
    let messages = Mutex::new(messages);
    let next = || messages.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL);
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("negscale".into()).stack_size(STACK);
        let worker = builder.spawn_scoped(scope, || on_threads(|| work(sender)))?;
        let mut exception = None;
        loop {
            let heard = py.detach(next);
            if matches!(heard, Err(RecvTimeoutError::Disconnected)) {
                break;
            }
            if exception.is_some() {
                continue;
            }
            let said = heard.map_or(Ok(()), |message| hear(py, message));
            if let Err(problem) = said.and_then(|()| py.check_signals()) {
                stop.ask(SIGINT);
                exception = Some(problem);
            }
        }
        let done = py.detach(|| worker.join()).map_err(|panic| fault(&*panic));
        match exception {
            Some(exception) => Err(exception),
            None => done,
        }
    })
}

/// Panics, so that a test can see what becomes of it.
#[pyfunction]
fn provoke_panic(py: Python<'_>, message: String) -> PyResult<()> {
    #[expect(clippy::panic, reason = "that is what it is for")]
    detached(py, || panic!("{message}"))
}

/// Python calls it in every child that it forks.
#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Relaxed);
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    // Not on Windows, where nothing forks.
    if let Some(at_fork) = os.getattr_opt("register_at_fork")? {
        let after = [("after_in_child", wrap_pyfunction!(forked, module)?)].into_py_dict(py)?;
        at_fork.call((), Some(&after))?;
    }
    module.add_function(wrap_pyfunction!(provoke_panic, module)?)
}
