//! A file is there whole or not at all, whatever goes wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_atomic_file::{write_atomic, write_bytes};
use std::fs;
use std::io::{Error, ErrorKind, Write};
use std::path::Path;
use tempfile::TempDir;

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_written_and_replaced_and_no_part_is_left() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    write_bytes(&path, b"the first and longer text").unwrap();
    write_atomic(&path, |file| write!(file, "second")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    write_bytes(&path, b"").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(names(folder.path()), ["a.txt"]);
}

#[test]
fn until_all_is_written_the_old_file_is_the_one_to_read_and_the_part_is_hidden() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    write_bytes(&path, b"old").unwrap();
    write_atomic(&path, |file| {
        file.write_all(&[b'n'; 100_000])?;
        file.flush()?;
        assert_eq!(fs::read(&path)?, b"old");
        let found = names(folder.path());
        assert_eq!((found.len(), found[1].as_str()), (2, "a.txt"));
        let begin = format!(".a.txt.{}-", std::process::id());
        assert!(found[0].starts_with(&begin) && found[0].ends_with(".part"), "{found:?}");
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 100_000);
}

#[test]
fn when_writing_fails_the_old_file_stays_and_the_part_goes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    let fail = |kind| {
        write_atomic(&path, |file| {
            file.write_all(&[7; 50_000])?;
            Err(Error::new(kind, "told by the test"))
        })
        .unwrap_err()
    };
    assert_eq!(fail(ErrorKind::Other).kind(), ErrorKind::Other);
    assert!(names(folder.path()).is_empty(), "without an old file there is none");
    write_bytes(&path, b"old").unwrap();
    for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::NotFound] {
        let error = fail(kind);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, "told by the test"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }
}

#[test]
fn a_full_disk_keeps_the_number_the_system_gave_it() {
    let folder = TempDir::new().unwrap();
    let no_room = 28; // ENOSPC
    let error =
        write_atomic(folder.path().join("a"), |_| Err(Error::from_raw_os_error(no_room))).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(no_room));
    #[cfg(target_os = "linux")]
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn when_writing_panics_the_old_file_stays_and_the_part_goes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.txt");
    write_bytes(&path, b"old").unwrap();
    let panicking = || write_atomic(&path, |_| panic!("on purpose"));
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.txt"]);
}

#[test]
fn threads_that_write_the_same_file_leave_one_that_is_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.bin");
    let sizes = [300_000, 70_001];
    std::thread::scope(|scope| {
        for (byte, size) in sizes.into_iter().enumerate() {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    write_atomic(path, |file| (0..size).try_for_each(|_| file.write_all(&[byte as u8])))
                        .unwrap();
                    let found = fs::read(path).unwrap();
                    assert_eq!(found.len(), sizes[found[0] as usize]);
                    assert!(found.iter().all(|&other| other == found[0]));
                }
            });
        }
    });
    assert_eq!(names(folder.path()), ["a.bin"]);
}

#[test]
fn parts_that_killed_processes_left_are_passed_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    for count in 0..200 {
        fs::write(folder.path().join(format!(".a.{}-{count}.part", std::process::id())), b"left").unwrap();
    }
    write_bytes(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let left = names(folder.path());
    assert_eq!(left.len(), 201);
    assert!(left[..200].iter().all(|name| fs::read(folder.path().join(name)).unwrap() == b"left"));
}

#[test]
fn a_missing_folder_is_named() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    let error = write_bytes(missing.join("a"), b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_path_that_names_no_file_is_refused() {
    for path in ["", "..", "/"] {
        assert_eq!(write_bytes(path, b"x").unwrap_err().kind(), ErrorKind::InvalidInput, "`{path}`");
    }
}

#[test]
fn a_folder_in_the_place_of_the_file_stays() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("a").join("inside")).unwrap();
    write_bytes(folder.path().join("a"), b"x").unwrap_err();
    assert_eq!(names(folder.path()), ["a"]);
    assert_eq!(names(&folder.path().join("a")), ["inside"]);
}

#[test]
fn the_longest_name_the_system_takes_is_written() {
    let folder = TempDir::new().unwrap();
    for name in ["x".repeat(255), "ü".repeat(127)] {
        write_bytes(folder.path().join(name), b"x").unwrap();
    }
    assert_eq!(names(folder.path()).len(), 2);
}

#[cfg(unix)]
#[test]
fn a_device_is_not_replaced_by_a_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    // A link, so that should this ever fail the test spoils no device.
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    assert_eq!(write_bytes(&path, b"x").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(names(folder.path()), ["a"]);
}
