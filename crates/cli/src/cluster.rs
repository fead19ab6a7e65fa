//! Work for a cluster: what to ask of Slurm, and the scripts that it runs.

use crate::program::program;
use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

/// What distributes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// Slurm.
    Slurm,
}

/// Options for a cluster.
#[derive(clap::Args)]
pub struct Cluster {
    /// Let workers on a cluster do the work, and return at once.
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<System>,
    /// With --on: number of workers.
    #[arg(long, value_name = "N", requires = "on", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    /// With --on: time limit of a worker, such as 4h, 90m or 1-12:00:00.
    #[arg(long, value_name = "TIME", requires = "on")]
    time: Option<String>,
    /// With --on, after `--`: words for sbatch, such as --partition=gpu --gres=gpu:1.
    #[arg(last = true, index = 2, value_name = "WORDS")]
    words: Vec<String>,
}

impl Cluster {
    /// Refuses words for a cluster where there is none.
    pub fn check_local(&self) -> Result<()> {
        match self.words.first() {
            Some(word) => bail!("`{word}` after `--` is for a cluster; say which with --on slurm"),
            None => Ok(()),
        }
    }

    /// The script of a job that runs this program.
    pub fn script(&self, job: Job) -> Result<String> {
        let Job { name, log, more, words, end } = job;
        let mut asked = vec![
            format!("--job-name={name}"),
            format!("--chdir={}", env::current_dir()?.display()),
            format!("--output={}", log.display()),
            "--open-mode=append".into(),
            "--requeue".into(),
        ];
        asked.extend(more);
        if let Some(time) = &self.time {
            asked.push(format!("--time={}", minutes(time)?));
        }
        asked.extend(self.words.iter().cloned());
        let program = program()?;
        let command = [program.path.into_os_string()].into_iter().chain(program.words).chain(words);
        let command: Vec<String> = command.map(|word| quote(&word.to_string_lossy())).collect();
        let asked: String = asked.iter().map(|word| format!("#SBATCH {}\n", quote(word))).collect();
        Ok(format!("#!/bin/bash\n{asked}exec {}{end}\n", command.join(" ")))
    }
}

/// What a script is made of.
pub struct Job<'a> {
    pub name: &'a str,
    /// The file for what it prints, with Slurm's signs for its numbers.
    pub log: &'a Path,
    /// More to ask of Slurm.
    pub more: Vec<String>,
    /// The words after the program's name.
    pub words: Vec<OsString>,
    /// What follows them, as a shell reads it.
    pub end: String,
}

/// Submits a script, and gives the number of its job.
pub fn submit(script: &Path, more: &[String]) -> Result<String> {
    let words =
        [OsStr::new("--parsable")].into_iter().chain(more.iter().map(OsStr::new)).chain([script.as_os_str()]);
    let said = call("sbatch", words)?;
    Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
}

/// A word as a shell reads it.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A time limit as Slurm reads it.
fn minutes(time: &str) -> Result<String> {
    let wrong = || {
        format!(
            "--time {time}: write a number with m, h or d, such as 4h, or a time as Slurm writes it, such as 1-12:00:00"
        )
    };
    let is_slurm = !time.is_empty() && time.chars().all(|c| c.is_ascii_digit() || c == ':' || c == '-');
    if is_slurm {
        return Ok(time.to_owned());
    }
    let unit = time.chars().last().with_context(wrong)?;
    let factor = match unit {
        'm' => 1.0,
        'h' => 60.0,
        'd' => 1440.0,
        _ => bail!(wrong()),
    };
    let number: f64 = time[..time.len() - 1].trim().parse().with_context(wrong)?;
    let minutes = (number * factor).ceil();
    if !(1.0..1e9).contains(&minutes) {
        bail!(wrong());
    }
    Ok(format!("{minutes}"))
}

/// Runs a program of Slurm and gives what it printed.
pub fn call<T: AsRef<OsStr>>(program: &str, words: impl IntoIterator<Item = T>) -> Result<String> {
    let output = Command::new(program).args(words).output();
    let Output { status, stdout, stderr } = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("`{program}` is not there: run this where Slurm's commands are, or use `negscale sweep plan` and start workers by other means"),
        _ => anyhow::Error::from(error).context(format!("cannot start `{program}`")),
    })?;
    if !status.success() {
        bail!("`{program}` ended with {status}: {}", String::from_utf8_lossy(&stderr).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_slurm() {
        let read = |time: &str| minutes(time).unwrap_or_else(|error| format!("{error:#}"));
        assert_eq!(
            ["4h", "90m", "1.5h", "2d", "1-12:00:00", "45"].map(read),
            ["240", "90", "90", "2880", "1-12:00:00", "45"]
        );
        for wrong in ["", "h", "4x", "-3h", "0m", "nanh"] {
            assert!(
                minutes(wrong).is_err_and(|error| format!("{error:#}").contains("such as 4h")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("--output=/a/b/%A_%a.log"), "--output=/a/b/%A_%a.log");
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quote(""), "''");
    }
}
