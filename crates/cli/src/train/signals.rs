//! How a run is told to stop: by signals, or by the end of its input.

use anyhow::{Context, Result};
use negscale_run::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::time::{Duration, Instant};

/// SIGINT and SIGTERM ask for a clean stop; another one, not right after the first, ends the process at once.
pub(crate) struct Signals(Stop);

/// Within this time after the first, signals are the same one: `timeout` sends it to the process and to its group.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let stop = Stop::default();
        let listened = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
        let mut incoming = listened.context("cannot listen for signals")?;
        let signals = Self(stop.clone());
        let listen = move || {
            let mut first = None;
            for signal in incoming.forever() {
                match first {
                    None => {
                        first = Some(Instant::now());
                        stop.ask(signal as usize);
                    }
                    Some(at) if at.elapsed() < SAME_SIGNAL => {}
                    Some(_) => std::process::exit(128 + signal),
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen).context("cannot start a thread")?;
        Ok(signals)
    }

    /// The end of standard input asks for a clean stop as well, as SIGTERM does.
    pub(crate) fn listen_to_input(&self) {
        let stop = self.0.clone();
        std::thread::spawn(move || {
            // An input that cannot be read is at its end as well.
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
            stop.ask(SIGTERM as usize);
        });
    }

    /// What is set once there was one.
    pub(crate) fn stop(&self) -> &Stop {
        &self.0
    }
}
