//! What tests of the command share.
#![allow(dead_code, clippy::unwrap_used)] // every file of tests uses a part of it

pub mod parquet;
pub mod sweeps;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command with these arguments, without data folders of the machine it runs on.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_negscale"));
    command.args(arguments).env_remove("NEGSCALE_DATA");
    command
}

/// What a command says that must succeed.
#[track_caller]
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Standard error of a command that must fail with exit code 2.
#[track_caller]
pub fn fail(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert_eq!(status.code(), Some(2), "{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).unwrap()
}

/// Standard output of a command that must succeed.
#[track_caller]
pub fn fine(arguments: &[&str]) -> String {
    String::from_utf8(succeed(&mut command(arguments)).stdout).unwrap()
}

/// Standard error of a command that must fail with exit code 2 and print nothing else.
#[track_caller]
pub fn fails(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{}", String::from_utf8_lossy(&stdout));
    assert!(stdout.is_empty(), "an error prints no half result: {}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).unwrap()
}

/// An empty folder of this test's own.
pub fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Numbers around 0, the same in every run.
pub struct Chance(pub u64);

impl Chance {
    /// The next one, from -0.5 to 0.5.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64 - 0.5
    }
}
