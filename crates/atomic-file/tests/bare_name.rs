//! A test of its own process, because the current folder belongs to the whole of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_atomic_file::{write_atomic, write_bytes};
use std::io::{Error, ErrorKind};

#[test]
fn a_name_without_a_folder_is_a_file_in_the_current_one() {
    let folder = tempfile::TempDir::new().unwrap();
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    write_bytes("a.txt", b"here").unwrap();
    let error = write_atomic("b.txt", |_| Err(Error::from(ErrorKind::StorageFull))).unwrap_err();
    std::env::set_current_dir(before).unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(std::fs::read(folder.path().join("a.txt")).unwrap(), b"here");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
