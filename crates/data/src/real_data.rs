//! Real data for tests: files in the folders of `NEGSCALE_DATA`.
//!
//! Public for the tests of other crates only.

use std::env::{split_paths, var, var_os};
use std::path::PathBuf;

/// A file or folder of the real data. Where it is absent the test says so and skips.
///
/// # Panics
/// With `CI=true`, when a folder of `NEGSCALE_DATA` is there and the file is not: there a test that skips would go unnoticed. Sets
/// that may be absent all the same are named in `NEGSCALE_DATA_WITHOUT`, separated by commas.
pub fn real(name: &str) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = split_paths(&var_os("NEGSCALE_DATA").unwrap_or_default()).collect();
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.exists());
    if found.is_none() {
        let set = name.split('/').next().unwrap_or(name);
        let excused = var("NEGSCALE_DATA_WITHOUT").is_ok_and(|sets| sets.split(',').any(|one| one == set));
        let strict = var("CI").is_ok_and(|ci| ci == "true") && folders.iter().any(|folder| folder.is_dir());
        let problem = format!("{name} is in no folder of NEGSCALE_DATA");
        assert!(excused || !strict, "{problem}: with CI=true no test may skip for want of data");
        eprintln!("skipped: {problem}");
    }
    found
}
