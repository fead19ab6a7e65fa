//! How a run is told to stop: by signals, or by the end of its input.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A signal that ended the run in good order.
#[derive(Debug, thiserror::Error)]
#[error("stopped by signal {0}; run the same command again to go on")]
pub struct Stopped(pub usize);

/// SIGINT and SIGTERM ask for an end in good order; another one, not right after the first, ends at once.
pub(crate) struct Signals {
    number: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
}

/// Within this time after the first, signals are the same one: `timeout` sends it to the process and to its group.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let (number, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let listened = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
        let mut incoming = listened.context("cannot listen to signals")?;
        let signals = Self { number: number.clone(), asked: asked.clone() };
        let listen = move || {
            let mut first = None;
            for signal in incoming.forever() {
                match first {
                    None => {
                        first = Some(Instant::now());
                        number.store(signal as usize, Relaxed);
                        asked.store(true, Relaxed);
                    }
                    Some(at) if at.elapsed() < SAME_SIGNAL => {}
                    Some(_) => std::process::exit(128 + signal),
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen).context("cannot start a thread")?;
        Ok(signals)
    }

    /// The end of standard input asks for an end in good order as well, as SIGTERM does.
    pub(crate) fn listen_to_input(&self) {
        let (number, asked) = (self.number.clone(), self.asked.clone());
        std::thread::spawn(move || {
            // An input that cannot be read is at its end as well.
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
            number.store(signal_hook::consts::SIGTERM as usize, Relaxed);
            asked.store(true, Relaxed);
        });
    }

    /// Set once there was one.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }

    /// Whether there was one.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The error that tells of the signal, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        match self.number.load(Relaxed) {
            0 => Ok(()),
            number => Err(Stopped(number).into()),
        }
    }
}
