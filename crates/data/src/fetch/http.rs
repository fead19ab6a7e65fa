//! Downloads that survive a broken line.
//!
//! Bytes go to `<file>.part`. When the connection breaks, the next attempt (of this run or of a later one) asks for the rest
//! with a `Range` request. A server that does not know ranges sends the whole again, and the part starts afresh. Only a whole
//! file with the right checksum gets its final name.

use super::Progress;
use super::place::written;
use super::recipe::Remote;
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait, and how often to try again.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Attempts in a row that may bring nothing new.
    pub attempts: u32,
    /// For making a connection.
    pub connect: Duration,
    /// For an answer, and for the next bytes of it.
    pub idle: Duration,
    /// Before the second attempt; doubled before each further one.
    pub pause: Duration,
    /// For a program such as npm to finish.
    pub program: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            attempts: 4,
            connect: seconds(15),
            idle: seconds(60),
            pause: seconds(1),
            program: seconds(3600),
        }
    }
}

/// However often attempts bring something new, there is an end to them.
const ATTEMPTS_IN_ALL: u32 = 100;

/// Why an attempt ended.
enum Broken {
    /// Another attempt may help.
    Again(String),
    /// Nothing but the user can help.
    Never(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Broken::Never(error)
    }
}

/// Downloads a file into a folder and returns its path.
pub fn download(
    remote: &Remote,
    folder: &Path,
    patience: &Patience,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let whole = folder.join(remote.file);
    if whole.is_file() && remote.sum.is_some_and(|sum| sum.check(&whole).is_ok()) {
        return Ok(whole);
    }
    let part = folder.join(format!("{}.part", remote.file));
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_resolve(Some(patience.connect))
        .timeout_connect(Some(patience.connect))
        .timeout_recv_response(Some(patience.idle))
        .timeout_per_read(Some(patience.idle))
        .user_agent(concat!("negscale/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let (mut in_vain, mut most, mut afresh) = (0, length(&part)?, false);
    for _ in 0..ATTEMPTS_IN_ALL {
        let resumed = length(&part)? > 0;
        match attempt(&agent, remote, &part, progress) {
            Ok(()) => match remote.sum.map_or(Ok(()), |sum| sum.check(&part)) {
                Ok(()) => {
                    std::fs::rename(&part, &whole).map_err(|e| written(&whole, e))?;
                    return Ok(whole);
                }
                Err(wrong) => {
                    remove(&part)?;
                    // an old part may stem from an older file of that name: once more from the start, then give up
                    if !resumed || afresh {
                        return Err(wrong);
                    }
                    (afresh, most) = (true, 0);
                }
            },
            Err(Broken::Never(error)) => return Err(error),
            Err(Broken::Again(reason)) => {
                in_vain = if length(&part)? > most { 1 } else { in_vain + 1 };
                most = most.max(length(&part)?);
                if in_vain >= patience.attempts {
                    return Err(failed(remote, format!("{reason} (after {in_vain} attempts)")));
                }
                std::thread::sleep(patience.pause * 2u32.saturating_pow(in_vain - 1));
            }
        }
    }
    Err(failed(remote, format!("the connection was lost {ATTEMPTS_IN_ALL} times")))
}

fn attempt(
    agent: &ureq::Agent,
    remote: &Remote,
    part: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Broken> {
    let have = length(part)?;
    let mut request = agent.get(remote.url);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let response = request.call().map_err(|error| judge(remote, error))?;
    let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.trim().to_owned());
    let range = header("content-range").and_then(|text| content_range(&text));
    let coming: Option<u64> = header("content-length").and_then(|text| text.parse().ok());
    let (start, total) = match response.status().as_u16() {
        200 => (0, coming),
        206 => match range {
            Some((Some(start), total)) if start == have => {
                (have, total.or(coming.map(|n| n.saturating_add(have))))
            }
            _ => {
                remove(part)?;
                return Err(Broken::Again("the server sent another range than requested".into()));
            }
        },
        // nothing lies beyond what is here: it is whole, or it is not part of this file
        416 if have > 0 => match range {
            Some((None, Some(total))) if total == have => return Ok(()),
            _ => {
                remove(part)?;
                return Err(Broken::Again(
                    "the server does not have the rest of the partial download".into(),
                ));
            }
        },
        status @ (408 | 429 | 500..=599) => {
            return Err(Broken::Again(format!("the server answered {status}")));
        }
        status => return Err(Broken::Never(failed(remote, format!("the server answered {status}")))),
    };
    if let Some(total) = total.filter(|&total| total > remote.at_most) {
        return Err(Broken::Never(too_large(remote, total)));
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(start > 0)
        .write(true)
        .truncate(start == 0)
        .open(part)
        .map_err(|e| written(part, e))?;
    let done = receive(response.into_body().into_reader(), &mut file, remote, part, (start, total), progress);
    // before a broken connection is reported: what has come is to be found by the next attempt
    let kept = file.sync_all().map_err(|e| written(part, e));
    let done = done?;
    kept?;
    match total {
        Some(total) if done < total => {
            Err(Broken::Again(format!("the connection ended after {done} of {total} bytes")))
        }
        _ => Ok(()),
    }
}

fn receive(
    mut body: impl Read,
    file: &mut File,
    remote: &Remote,
    part: &Path,
    (start, total): (u64, Option<u64>),
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, Broken> {
    let (mut done, mut block) = (start, vec![0; 1 << 16]);
    loop {
        progress(Progress { step: remote.file, done, total });
        let n = match body.read(&mut block) {
            Ok(0) => return Ok(done),
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Broken::Again(format!("the connection was lost after {done} bytes: {e}"))),
        };
        done += n as u64;
        if done > remote.at_most {
            remove(part)?;
            return Err(Broken::Never(too_large(remote, done)));
        }
        file.write_all(&block[..n]).map_err(|e| written(part, e))?;
    }
}

/// Whether another attempt may help.
fn judge(remote: &Remote, error: ureq::Error) -> Broken {
    let text = error.to_string();
    match error {
        // off the internet names are not found: go on to the next source without waiting (the system's error has no kind)
        ureq::Error::Io(_) if text.contains("lookup address") => Broken::Never(unknown_host(remote)),
        ureq::Error::HostNotFound => Broken::Never(unknown_host(remote)),
        ureq::Error::Io(_)
        | ureq::Error::Timeout(_)
        | ureq::Error::ConnectionFailed
        | ureq::Error::Protocol(_) => Broken::Again(text),
        _ => Broken::Never(failed(remote, text)),
    }
}

fn unknown_host(remote: &Remote) -> Error {
    failed(remote, "the server's name cannot be looked up: is there an internet connection?")
}

/// `bytes 5-9/10` is (5, 10), `bytes */10` is (none, 10).
fn content_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes")?.trim().split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}

fn length(path: &Path) -> Result<u64> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(Error::io(path, e)),
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, e)),
        _ => Ok(()),
    }
}

fn failed(remote: &Remote, problem: impl Into<String>) -> Error {
    Error::Fetch { what: remote.url.into(), problem: problem.into() }
}

fn too_large(remote: &Remote, bytes: u64) -> Error {
    failed(remote, format!("{bytes} bytes or more, but at most {} are expected", remote.at_most))
}
