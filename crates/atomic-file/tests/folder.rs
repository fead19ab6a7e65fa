//! Folders of ours: nothing of anybody else's is replaced or removed.
#![allow(clippy::unwrap_used)]

use negscale_atomic_file::{MARKER, OwnFolder, write_bytes};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_and_an_empty_folder_become_ours_and_stay_so() {
    let here = tempfile::tempdir().unwrap();
    for place in [here.path().join("deep/new"), here.path().to_owned()] {
        if place == here.path() {
            fs::remove_dir_all(place.join("deep")).unwrap();
        }
        assert!(!OwnFolder::is_ours(&place));
        drop(OwnFolder::open(&place).unwrap());
        assert!(OwnFolder::is_ours(&place));
        drop(OwnFolder::open(&place).unwrap());
    }
}

#[test]
fn a_folder_with_files_of_others_is_refused_by_name_and_left_as_it_is() {
    let here = tempfile::tempdir().unwrap();
    for name in ["d", "c", "b", "a"] {
        fs::write(here.path().join(name), "mine").unwrap();
    }
    let error = OwnFolder::open(here.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let said = error.to_string();
    assert!(said.contains("a, b, c and 1 more") && said.contains(here.path().to_str().unwrap()), "{said}");
    assert_eq!(names(here.path()), ["a", "b", "c", "d"]);
}

#[test]
fn only_listed_files_are_removed_and_folders_only_when_they_are_empty() {
    let here = tempfile::tempdir().unwrap();
    let ours = OwnFolder::open(here.path()).unwrap();
    for name in ["audit.csv", "states/1", "events/1"] {
        let path = ours.file(name).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "ours").unwrap();
    }
    fs::write(here.path().join("notes.txt"), "mine").unwrap();
    fs::write(here.path().join("states/best"), "mine").unwrap();
    ours.remove(|name| name != "audit.csv").unwrap();
    assert_eq!(names(here.path()), [MARKER, "audit.csv", "notes.txt", "states"]);
    assert_eq!(names(&here.path().join("states")), ["best"]);
    drop(ours);
    // The list outlives the process.
    OwnFolder::open(here.path()).unwrap().remove(|_| true).unwrap();
    assert_eq!(names(here.path()), [MARKER, "notes.txt", "states"]);
}

#[test]
fn a_file_of_somebody_else_is_not_claimed() {
    let here = tempfile::tempdir().unwrap();
    let ours = OwnFolder::open(here.path()).unwrap();
    fs::write(here.path().join("audit.csv"), "mine").unwrap();
    let error = ours.claim(["report.html", "audit.csv"]).unwrap_err();
    assert!(error.to_string().contains("audit.csv"), "{error}");
    assert!(ours.names().is_empty(), "all or nothing");
    assert_eq!(fs::read_to_string(here.path().join("audit.csv")).unwrap(), "mine");
}

#[test]
fn a_shared_folder_may_hold_files_of_others_which_stay_theirs() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("runs.csv"), "mine").unwrap();
    let ours = OwnFolder::share(here.path()).unwrap();
    assert!(ours.claim(["runs.csv"]).unwrap_err().to_string().contains("runs.csv"));
    fs::write(ours.file("table.csv").unwrap(), "ours").unwrap();
    ours.remove(|_| true).unwrap();
    assert_eq!(names(here.path()), [MARKER, "runs.csv"]);
}

#[test]
fn one_process_at_a_time_works_in_a_folder() {
    let here = tempfile::tempdir().unwrap();
    assert!(!OwnFolder::is_open(here.path()));
    let first = OwnFolder::open(here.path()).unwrap();
    assert!(OwnFolder::is_open(here.path()));
    let error = OwnFolder::open(here.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(first);
    assert!(!OwnFolder::is_open(here.path()));
    OwnFolder::open(here.path()).unwrap();
}

#[test]
fn several_may_guard_a_folder_and_then_nobody_works_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    assert_eq!(OwnFolder::guard(&place).unwrap_err().kind(), ErrorKind::NotFound);
    let worker = OwnFolder::open(&place).unwrap();
    assert_eq!(OwnFolder::guard(&place).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(worker);
    let guards = [OwnFolder::guard(&place).unwrap(), OwnFolder::guard(&place).unwrap()];
    assert_eq!(OwnFolder::open(&place).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(guards);
    OwnFolder::open(&place).unwrap();
}

#[test]
fn parts_that_a_killed_process_left_of_listed_files_go_and_others_stay() {
    let here = tempfile::tempdir().unwrap();
    let ours = OwnFolder::open(here.path()).unwrap();
    let long = format!("states/{}", "x".repeat(60));
    ours.claim(["audit.csv", &long]).unwrap();
    fs::create_dir(here.path().join("states")).unwrap();
    let parts = [".audit.csv.12-0.part".to_owned(), format!("states/.{}.7-31.part", "x".repeat(40))];
    let others = ["audit.csv.part", ".audit.csv.a-0.part", ".film.12-0.part", "states/.audit.part"];
    for name in parts.iter().map(String::as_str).chain(others) {
        fs::write(here.path().join(name), "half").unwrap();
    }
    assert_eq!(ours.remove_parts().unwrap(), 2);
    assert!(parts.iter().all(|name| !here.path().join(name).exists()));
    assert!(others.iter().all(|name| here.path().join(name).exists()));
    write_bytes(ours.file("audit.csv").unwrap(), b"whole").unwrap();
}

#[test]
fn a_list_that_was_cut_off_or_leads_elsewhere_harms_nothing() {
    let here = tempfile::tempdir().unwrap();
    let place = here.path().join("run");
    fs::create_dir(&place).unwrap();
    fs::write(here.path().join("precious"), "mine").unwrap();
    fs::write(place.join("half"), "mine").unwrap();
    fs::write(place.join(MARKER), "a\n../precious\n/etc/hostname\nhalf").unwrap();
    let ours = OwnFolder::open(&place).unwrap();
    assert_eq!(ours.names(), ["a"]);
    ours.remove(|_| true).unwrap();
    assert!(here.path().join("precious").exists() && place.join("half").exists());
    // What is added after the cut stands on a line of its own.
    ours.claim(["b"]).unwrap();
    drop(ours);
    assert_eq!(OwnFolder::open(&place).unwrap().names(), ["a", "b"]);
}

#[test]
fn a_dissolved_folder_is_gone_unless_it_holds_something_of_others() {
    let here = tempfile::tempdir().unwrap();
    for keep in [false, true] {
        let place = here.path().join("inner");
        let ours = OwnFolder::open(&place).unwrap();
        fs::write(ours.file("a").unwrap(), "ours").unwrap();
        if keep {
            fs::write(place.join("b"), "mine").unwrap();
        }
        ours.dissolve().unwrap();
        assert_eq!(place.exists(), keep);
    }
    assert_eq!(names(&here.path().join("inner")), ["b"]);
}
