//! Tells the program which commit it was built from, where that is known.

use std::process::Command;

/// The file in which cargo notes, in a package made from a repository, the commit it was made from.
const PACKAGED: &str = ".cargo_vcs_info.json";

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}

/// The commit in cargo's note: `"sha1": "..."`, the only value of 40 hexadecimal digits.
fn packaged(note: &str) -> Option<&str> {
    let commit =
        note.split('"').find(|part| part.len() == 40 && part.bytes().all(|b| b.is_ascii_hexdigit()))?;
    commit.get(..12)
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A package lies in a folder of cargo's: a repository around that would be somebody else's.
    if let Ok(note) = std::fs::read_to_string(PACKAGED) {
        if let Some(commit) = packaged(&note) {
            println!("cargo:rustc-env=NEGSCALE_COMMIT={commit}");
        }
        return;
    }
    // The commit changes with these; without them the script runs once.
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        println!("cargo:rerun-if-changed={folder}/HEAD");
        println!("cargo:rerun-if-changed={folder}/logs/HEAD");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=NEGSCALE_COMMIT={commit}");
    }
}
