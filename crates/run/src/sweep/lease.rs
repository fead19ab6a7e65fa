//! Who works on a run, in files that every machine sees.
//!
//! A lock of the system holds on one machine; on shared folders it may not, and nobody learns from it that a machine has died. So
//! whoever takes a run writes a lease, `.leases/RUN.1` below the runs: host, process, job, and a beat that counts up while it works.
//! A lease whose beat stands still for the lease time is over. To take the run then is to create `RUN.2`, which the file system lets
//! one process do and no other; the one with the highest number has the run. Whoever had it before, and only slept, finds the new
//! lease at its next beat and lets go.
//!
//! Whether a beat stands still is told by the reader's own clock, so that clocks of machines need not agree. A process of the same
//! machine that is gone is known to be gone at once.

use crate::{Result, clock};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Below the folder of the runs.
const FOLDER: &str = ".leases";
/// How long a beat may stand still until the run is anybody's, if nobody says otherwise.
pub const LEASE: Duration = Duration::from_secs(60);
/// Beats in that time.
const BEATS: u32 = 6;
/// A run whose processes vanished this often in one round is not tried again in it: it may be what kills them.
const DEATHS: u32 = 5;

/// How somebody who had a run let go of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// It was stopped.
    Left,
    /// The run failed.
    Failed,
}

/// What a lease says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the machine.
    pub host: String,
    /// Boot and process namespace: within one, `process` and `since` tell whether it lives.
    system: Option<String>,
    /// Number of the process.
    pub process: u32,
    /// When that process started, by its system's count.
    since: Option<u64>,
    /// The job of a cluster that it is, such as `17_3`.
    pub job: Option<String>,
    /// Which call of a sweep it belongs to: what failed in it is not tried again in it.
    round: String,
    beat: u64,
    /// The last beat, in seconds since 1970.
    pub at: u64,
    released: Option<Release>,
}

impl Holder {
    /// This process.
    pub fn this(round: &str, job: Option<String>) -> Self {
        let process = std::process::id();
        let host =
            fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
        let host = host.map_or_else(|| "unknown".into(), |name| name.trim().to_owned());
        let (system, since) = (system(), started(process));
        Self {
            host,
            system,
            process,
            since,
            job,
            round: round.into(),
            beat: 0,
            at: clock::now(),
            released: None,
        }
    }

    /// Whether it is a process of this machine that is no more.
    fn is_gone(&self) -> bool {
        self.system.is_some()
            && self.system == system()
            && self.since.is_some()
            && started(self.process) != self.since
    }

    /// In words.
    pub fn words(&self) -> String {
        let job = self.job.as_ref().map_or_else(String::new, |job| format!(", job {job}"));
        format!("process {} on {}{job}", self.process, self.host)
    }
}

/// The boot and the process namespace, which numbers of processes belong to.
fn system() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), space.display()))
}

/// When a process of this system started; none if there is no such process.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in brackets, which may hold anything.
    let mut rest = text.rsplit_once(") ")?.1.split(' ');
    // A zombie works no more.
    (rest.next()? != "Z").then(|| rest.nth(18)?.parse().ok())?
}

/// Answer to who wants a run.
pub enum Claim {
    /// It is ours, until the lease is dropped, released or lost.
    Ours(Lease),
    /// Another process has it.
    Theirs {
        /// Which; it may not be readable yet.
        holder: Option<Holder>,
        /// Whether its beat was seen to go on.
        is_alive: bool,
    },
    /// It failed in this round, by whomever.
    Failed,
    /// Its processes vanished too often in this round.
    Deadly(u32),
}

/// Another's lease, as it was seen last.
struct Seen {
    number: u32,
    text: String,
    /// Since when it has been so.
    since: Instant,
    /// Whether it was another before.
    is_alive: bool,
}

/// All leases below a folder of runs.
pub struct Leases {
    place: PathBuf,
    time: Duration,
    me: Holder,
    /// Others' leases, by name.
    seen: Mutex<BTreeMap<String, Seen>>,
}

impl Leases {
    /// Below this folder, for this process.
    pub fn new(below: &Path, time: Duration, me: Holder) -> Self {
        Self { place: below.join(FOLDER), time, me, seen: Mutex::default() }
    }

    /// Takes a run, unless it has somebody.
    pub fn claim(&self, name: &str) -> Result<Claim> {
        fs::create_dir_all(&self.place).with_context(|| format!("cannot create {}", self.place.display()))?;
        let mut deaths = 0;
        let mut number = 0;
        let mut last: Option<(String, Option<Holder>)> = None;
        while let Some(text) = self.read(name, number + 1)? {
            number += 1;
            let holder: Option<Holder> = serde_json::from_str(&text).ok();
            let in_round = holder.as_ref().filter(|holder| holder.round == self.me.round);
            deaths += u32::from(in_round.is_some_and(|holder| holder.released.is_none()));
            last = Some((text, holder));
        }
        if let Some((text, holder)) = last {
            let in_round = holder.as_ref().filter(|holder| holder.round == self.me.round);
            let released = holder.as_ref().and_then(|holder| holder.released);
            if released == Some(Release::Failed) && in_round.is_some() {
                return Ok(Claim::Failed);
            }
            if released.is_none()
                && !holder.as_ref().is_some_and(Holder::is_gone)
                && let Some(is_alive) = self.look(name, number, text)
            {
                return Ok(Claim::Theirs { holder, is_alive });
            }
            if released.is_none() && deaths >= DEATHS {
                return Ok(Claim::Deadly(deaths));
            }
        }
        let path = self.path(name, number + 1);
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            // Somebody was quicker.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let holder = self.read(name, number + 1)?.and_then(|text| serde_json::from_str(&text).ok());
                return Ok(Claim::Theirs { holder, is_alive: false });
            }
            // The folder went away with the last lease of somebody else.
            Err(error) if error.kind() == ErrorKind::NotFound => return self.claim(name),
            Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display()))?,
        };
        let holder = Holder { at: clock::now(), ..self.me.clone() };
        put(&mut file, &holder).with_context(|| format!("cannot write {}", path.display()))?;
        let (number, now) = (number + 1, Instant::now());
        let (place, name, time) = (self.place.clone(), name.to_owned(), self.time);
        Ok(Claim::Ours(Lease {
            place,
            name,
            number,
            time,
            file,
            holder,
            told: now,
            beaten: now,
            is_lost: false,
        }))
    }

    /// Whether anybody left a lease of a run.
    pub fn has(&self, name: &str) -> bool {
        self.path(name, 1).exists()
    }

    /// Who has a run now, by what its lease says: for people, who can judge the age of its beat.
    pub fn holder(below: &Path, name: &str) -> Option<Holder> {
        let place = below.join(FOLDER);
        let texts = (1..).map_while(|number| fs::read_to_string(place.join(format!("{name}.{number}"))).ok());
        let holder: Holder = serde_json::from_str(&texts.last()?).ok()?;
        (holder.released.is_none() && !holder.is_gone()).then_some(holder)
    }

    /// Whether a lease was seen to go on; none if it has stood still for so long that it is over.
    fn look(&self, name: &str, number: u32, text: String) -> Option<bool> {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |is_alive, text| Seen { number, text, since: Instant::now(), is_alive };
        match all.get_mut(name) {
            Some(seen) if seen.number == number && seen.text == text => {
                (seen.since.elapsed() < self.time).then_some(seen.is_alive)
            }
            Some(seen) => {
                *seen = fresh(seen.number == number, text);
                Some(seen.is_alive)
            }
            None => {
                all.insert(name.to_owned(), fresh(false, text));
                Some(false)
            }
        }
    }

    fn path(&self, name: &str, number: u32) -> PathBuf {
        path(&self.place, name, number)
    }

    fn read(&self, name: &str, number: u32) -> Result<Option<String>> {
        let path = self.path(name, number);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display()))?,
        }
    }
}

fn path(place: &Path, name: &str, number: u32) -> PathBuf {
    place.join(format!("{name}.{number}"))
}

/// In place and not by renaming: the file is the lease, and readers judge a torn text by its age like any other.
fn put(file: &mut File, holder: &Holder) -> std::io::Result<()> {
    let text = serde_json::to_string(holder)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_data()
}

/// A run that this process has.
pub struct Lease {
    place: PathBuf,
    name: String,
    number: u32,
    time: Duration,
    file: File,
    holder: Holder,
    /// The last beat that was written, and the last that was tried.
    told: Instant,
    beaten: Instant,
    is_lost: bool,
}

impl Lease {
    /// Says that its holder lives, if it is time for that, and whether it still is the holder. Beats that cannot be written for most
    /// of the lease time are a loss: others will think that it is over.
    pub fn beat(&mut self) -> bool {
        if self.is_lost || self.beaten.elapsed() < self.time / BEATS {
            return !self.is_lost;
        }
        self.beaten = Instant::now();
        self.holder.beat += 1;
        self.holder.at = clock::now();
        let has_next = self.path(self.number + 1).exists();
        if !has_next && put(&mut self.file, &self.holder).is_ok() {
            self.told = Instant::now();
        }
        self.is_lost = has_next || self.told.elapsed() > self.time * 2 / 3;
        !self.is_lost
    }

    /// Lets go of the run, which is not done.
    pub fn release(mut self, how: Release) -> Result<()> {
        self.holder.released = Some(how);
        let path = self.path(self.number);
        Ok(put(&mut self.file, &self.holder).with_context(|| format!("cannot write {}", path.display()))?)
    }

    /// The run is done: nobody needs its leases. Removed from the first on, so that whoever counts them meanwhile begins anew and
    /// then sees that the run is done.
    pub fn end(self) {
        for number in 1..=self.number {
            drop(fs::remove_file(self.path(number)));
        }
        // Goes with the last lease, if that was it.
        drop(fs::remove_dir(&self.place));
    }

    fn path(&self, number: u32) -> PathBuf {
        path(&self.place, &self.name, number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
