//! One file.

use crate::server::{Answer, Server};
use crate::{body, hasty, remote, sha256};
use negscale_data::fetch::{Patience, Remote, Sum, download};
use std::path::Path;
use std::time::Duration;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Downloads with a server that answers so, and checks that what arrives is right. Returns what was asked for.
fn arrives(body: Vec<u8>, answers: &[Answer], begun: Option<&[u8]>) -> Vec<Option<String>> {
    let server = Server::start(body.clone(), answers);
    let folder = tempfile::tempdir().unwrap();
    if let Some(begun) = begun {
        std::fs::write(folder.path().join("x.part"), begun).unwrap();
    }
    let path = download(&remote(server.url("x"), "x", &body), folder.path(), &hasty(), &mut |_| {}).unwrap();
    assert!(std::fs::read(path).unwrap() == body);
    assert_eq!(names(folder.path()), ["x"]);
    server.asked()
}

/// Downloads with a server that answers so, and returns the error, what was left behind and the number of requests.
fn fails(
    remote: impl Fn(&Server) -> Remote,
    body: &[u8],
    answers: &[Answer],
) -> (String, Vec<String>, usize) {
    let server = Server::start(body.to_vec(), answers);
    let folder = tempfile::tempdir().unwrap();
    let error = download(&remote(&server), folder.path(), &hasty(), &mut |_| {}).unwrap_err();
    (error.to_string(), names(folder.path()), server.asked().len())
}

fn from(bytes: usize) -> Option<String> {
    Some(format!("bytes={bytes}-"))
}

#[test]
fn a_whole_file_arrives_and_progress_counts_up_to_its_size() {
    let body = body(1_000_000);
    let server = Server::start(body.clone(), &[Answer::Right]);
    let folder = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    let wanted = remote(server.url("x"), "x", &body);
    let path = download(&wanted, folder.path(), &hasty(), &mut |p| told.push((p.done, p.total))).unwrap();
    assert!(std::fs::read(path).unwrap() == body);
    assert_eq!(told.first(), Some(&(0, Some(1_000_000))));
    assert_eq!(told.last(), Some(&(1_000_000, Some(1_000_000))));
    assert!(told.is_sorted());
    // what is here and right is not fetched again
    download(&wanted, folder.path(), &hasty(), &mut |_| {}).unwrap();
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_broken_connection_is_resumed_where_it_broke() {
    let asked = arrives(
        body(500_000),
        &[Answer::BreakAfter(200_000), Answer::BreakAfter(100_000), Answer::Right],
        None,
    );
    assert_eq!(asked, [None, from(200_000), from(300_000)]);
}

#[test]
fn what_an_earlier_run_left_is_continued() {
    let body = body(300_000);
    let asked = arrives(body.clone(), &[Answer::Right], Some(&body[..123_456]));
    assert_eq!(asked, [from(123_456)]);
}

#[test]
fn a_part_that_is_whole_already_is_only_checked() {
    let body = body(1000);
    assert_eq!(arrives(body.clone(), &[Answer::Right], Some(&body)), [from(1000)]);
}

#[test]
fn a_server_without_ranges_sends_the_whole_again() {
    let answers = [Answer::NoRangesBreakAfter(60_000), Answer::NoRanges];
    assert_eq!(arrives(body(300_000), &answers, None).len(), 2);
}

#[test]
fn a_part_of_another_file_is_thrown_away_and_begun_afresh() {
    let asked = arrives(body(1000), &[Answer::Right], Some(&[1; 400]));
    assert_eq!(asked, [from(400), None]);
    // longer than the file, so that the server cannot continue it
    let asked = arrives(body(1000), &[Answer::Right], Some(&[1; 4000]));
    assert_eq!(asked, [from(4000), None]);
}

#[test]
fn a_server_in_trouble_is_asked_again_and_a_silent_one_too() {
    assert_eq!(arrives(body(1000), &[Answer::Status(503), Answer::Right], None), [None, None]);
    let body = body(1000);
    let server = Server::start(body.clone(), &[Answer::StallAfter(400), Answer::Right]);
    let folder = tempfile::tempdir().unwrap();
    let patience = Patience { idle: Duration::from_millis(200), ..hasty() };
    let path = download(&remote(server.url("x"), "x", &body), folder.path(), &patience, &mut |_| {}).unwrap();
    assert!(std::fs::read(path).unwrap() == body);
    assert_eq!(server.asked(), [None, from(400)]);
}

#[test]
fn a_wrong_checksum_removes_the_file_and_names_both_sums() {
    let (right, wrong) = (body(1000), sha256(b"another"));
    let wanted =
        |server: &Server| Remote { sum: Some(Sum::Sha256(wrong)), ..remote(server.url("x"), "x", b"") };
    let (error, left, requests) = fails(wanted, &right, &[Answer::Right]);
    assert!(error.contains(wrong) && error.contains(sha256(&right)), "{error}");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(requests, 1);
}

#[test]
fn an_address_that_does_not_exist_is_asked_once() {
    let (error, left, requests) =
        fails(|server| remote(server.url("gone"), "x", b""), b"", &[Answer::Status(404)]);
    assert!(error.contains("404") && error.contains("/gone"), "{error}");
    assert!(left.is_empty());
    assert_eq!(requests, 1);
}

#[test]
fn a_server_that_stays_in_trouble_is_given_up() {
    let (error, _, requests) = fails(|server| remote(server.url("x"), "x", b""), b"", &[Answer::Status(500)]);
    assert!(error.contains("500") && error.contains("3 attempts"), "{error}");
    assert_eq!(requests, 3);
}

#[test]
fn a_line_that_always_breaks_at_once_is_given_up_and_what_came_is_kept() {
    let body = body(1000);
    let answers = [Answer::BreakAfter(100), Answer::BreakAfter(0)];
    let (error, left, requests) = fails(|server| remote(server.url("x"), "x", &body), &body, &answers);
    assert!(error.contains("3 attempts"), "{error}");
    assert_eq!(left, ["x.part"]);
    assert_eq!(requests, 3);
}

#[test]
fn more_bytes_than_expected_are_refused_announced_or_not() {
    let body = body(500_000);
    for answer in [Answer::Right, Answer::Unannounced] {
        let wanted = |server: &Server| Remote { at_most: 1000, ..remote(server.url("x"), "x", &body) };
        let (error, left, _) = fails(wanted, &body, &[answer]);
        assert!(error.contains("at most 1000"), "{error}");
        assert!(left.is_empty(), "{left:?}");
    }
    assert_eq!(arrives(body, &[Answer::Unannounced], None).len(), 1);
}

#[test]
fn nobody_listening_is_an_error_that_names_the_address() {
    let folder = tempfile::tempdir().unwrap();
    // a port that was free a moment ago
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/x").leak();
    let error =
        download(&remote(url, "x", b""), folder.path(), &hasty(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains(&*url), "{error}");
}

/// `/dev/full` is a device on which every write says that there is no room.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_plainly() {
    let body = body(1000);
    let server = Server::start(body.clone(), &[Answer::Right]);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("x.part")).unwrap();
    let error =
        download(&remote(server.url("x"), "x", &body), folder.path(), &hasty(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("disk is full"), "{error}");
    assert_eq!(server.asked().len(), 1);
}
