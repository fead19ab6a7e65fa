//! Programs that fetch for us: npm, pip, apt-get, dpkg-deb.

use super::Progress;
use super::place::create;
use crate::{Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Fetches an npm package (`name@version`) and returns the archive.
pub(super) fn npm(
    package: &str,
    folder: &Path,
    limit: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    run(program, &["pack", package, "--loglevel=error"], folder, limit, progress)?;
    only(folder, "tgz", package)
}

/// Fetches a wheel (`name==version`) and returns it. Source packages, which pip would run code of, are refused.
pub(super) fn pip(
    package: &str,
    folder: &Path,
    limit: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let program = if cfg!(windows) { "python" } else { "python3" };
    let words = ["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"];
    let words = [&words[..], &["--disable-pip-version-check", "--dest", ".", package]].concat();
    run(program, &words, folder, limit, progress)?;
    only(folder, "whl", package)
}

/// Fetches a Debian package and unpacks it into `tree` below the folder, which is returned.
pub(super) fn debian(
    package: &str,
    folder: &Path,
    limit: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    run("apt-get", &["download", package], folder, limit, progress)?;
    let archive = only(folder, "deb", package)?;
    let tree = folder.join("tree");
    create(&tree)?;
    let (archive, to) = (archive.to_string_lossy(), tree.to_string_lossy());
    run("dpkg-deb", &["-x", &archive, &to], folder, limit, progress)?;
    Ok(tree)
}

/// The one file with that ending.
fn only(folder: &Path, ending: &str, package: &str) -> Result<PathBuf> {
    let all = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let all: Vec<PathBuf> =
        all.map(|entry| Ok(entry.map_err(|e| Error::io(folder, e))?.path())).collect::<Result<_>>()?;
    let mut found: Vec<PathBuf> =
        all.into_iter().filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        (last, _) => {
            let count = if last.is_some() { "several" } else { "no" };
            Err(Error::Fetch { what: package.into(), problem: format!("{count} .{ending} file came") })
        }
    }
}

/// Runs a program to its end, or ends it after `limit`. What it says is part of the error.
fn run(
    program: &str,
    arguments: &[&str],
    folder: &Path,
    limit: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let failed = |problem: String| Error::Fetch { what: format!("it by {program}"), problem };
    // to a file, since a pipe that nobody reads would stop a talkative program
    let said = folder.join(format!("{program}.said"));
    let open = || File::create(&said).map_err(|e| super::place::written(&said, e));
    let mut child = match Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(open()?))
        .spawn()
    {
        Ok(child) => child,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(failed(format!("{program} is not installed on this computer")));
        }
        Err(e) => return Err(failed(e.to_string())),
    };
    let (start, step) = (
        Instant::now(),
        match arguments {
            ["-m", module, verb, ..] => format!("{module} {verb}"),
            _ => format!("{program} {}", arguments.first().unwrap_or(&"")),
        },
    );
    loop {
        progress(Progress::busy(&step));
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(format!("{status}: {}", last_words(&said)))),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(100)),
            Ok(None) => {
                let ended = child.kill().and_then(|()| child.wait());
                let but = ended.err().map(|e| format!(", and cannot be stopped: {e}"));
                let seconds = limit.as_secs();
                return Err(failed(format!("not done after {seconds} seconds{}", but.unwrap_or_default())));
            }
            Err(e) => return Err(failed(e.to_string())),
        }
    }
}

/// The last few lines a program wrote, on one line.
fn last_words(path: &Path) -> String {
    let bytes = match tail(path) {
        Ok(bytes) => bytes,
        Err(e) => return format!("its output, in {}, cannot be read: {e}", path.display()),
    };
    let text = String::from_utf8_lossy(&bytes);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ")
}

/// The end of a file.
fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    const ENOUGH: u64 = 600;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH)))?;
    let mut bytes = Vec::new();
    file.take(ENOUGH).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_installed_is_said_plainly() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_secs(1);
        let error = run("no-such-program", &[], folder.path(), limit, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("not installed"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn the_last_words_of_a_failing_program_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_secs(60);
        let script = ["-c", "echo no such package >&2; exit 3"];
        let error = run("sh", &script, folder.path(), limit, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("no such package") && error.contains('3'), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_never_ends_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(50);
        let error = run("sleep", &["600"], folder.path(), limit, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("not done"), "{error}");
    }
}
