//! Labels in files of their own: whose they are, and which classes they make.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use image::{Rgb, RgbImage};
use negscale_data::folders::Folders;
use negscale_data::own::{self, Header, OwnOptions};
use negscale_data::{Dataset, Items, Splits};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn put(root: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn with(labels: &Path) -> OwnOptions {
    OwnOptions { labels: Some(labels.to_owned()), ..OwnOptions::default() }
}

fn open(path: &Path, options: &OwnOptions) -> Splits {
    own::open(path, options).unwrap()
}

#[track_caller]
fn refused(path: &Path, options: &OwnOptions, parts: &[&str]) {
    let error = own::open(path, options).map(|splits| splits.train).unwrap_err().to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

/// The words of the labels.
fn words(dataset: &Dataset) -> Vec<&str> {
    dataset.given().iter().map(|&class| dataset.classes()[class as usize].as_str()).collect()
}

/// Four vectors.
fn vectors(root: &Path) -> PathBuf {
    put(root, "x.csv", "a,b\n1,5\n2,7\n4,1\n8,0\n")
}

/// Three pictures of two classes.
fn pictures(root: &Path) -> PathBuf {
    let folder = root.join("pictures");
    for (name, value) in [("cat/1.png", 1), ("cat/2.png", 2), ("dog/1.png", 3)] {
        let path = put(&folder, name, []);
        RgbImage::from_pixel(2, 2, Rgb([value, 1, 2])).save(path).unwrap();
    }
    folder
}

#[test]
fn rows_with_an_index_may_stand_in_any_order() {
    let root = TempDir::new().unwrap();
    let data = vectors(root.path());
    for text in [
        "index,path,label,given,changed\n0,,d,a,true\n1,,b,b,false\n2,,c,c,false\n3,,a,a,false\n",
        "index,path,label,given,changed\n3,,a,a,false\n1,,b,b,false\n0,,d,a,true\n2,,c,c,false\n",
        "label;index\nc;2\nd;0\na;3\nb;1\n",
        "Label\tIndex\nc\t2.0\nd\t0.0\na\t3.0\nb\t1.0\n",
    ] {
        let labels = put(root.path(), "corrected.csv", text);
        assert_eq!(words(&open(&data, &with(&labels)).train), ["d", "b", "c", "a"], "{text}");
    }
}

#[test]
fn rows_that_are_missing_doubled_or_strange_are_refused_with_their_line() {
    let root = TempDir::new().unwrap();
    let data = vectors(root.path());
    for (text, parts) in [
        ("index,label\n0,a\n1,b\n3,b\n", &["1 of 4 items have no label", "item 2"][..]),
        ("index,label\n0,a\n1,b\n2,a\n1,b\n3,a\n", &["line 5", "second label for item 1", "line 3"]),
        ("index,label\n0,a\n1,b\n2,a\n4,b\n", &["line 5", "index `4`", "from 0 to 3"]),
        ("index,label\n0,a\n1,b\n\n2,a\n3,b\n", &["line 4", "blank line"]),
        ("id,label\n1,a\n3,b\n2,a\n4,b\n", &["line 4", "not in the order of their ids", "`index`"]),
        ("label\na\nb\na\n", &["3 labels for 4 items"]),
        ("7\n1\n0\n1\n0\n", &["5 labels for 4 items", "--header yes"]),
        ("kind\na\nb\na\nc\n", &["line 1", "`kind`", "--header yes"]),
    ] {
        refused(&data, &with(&put(root.path(), "l.csv", text)), parts);
    }
}

#[test]
fn a_header_can_be_said_where_it_cannot_be_told() {
    let root = TempDir::new().unwrap();
    let data = vectors(root.path());
    let labels = put(root.path(), "l.csv", "kind\na\nb\na\n");
    refused(&data, &with(&labels), &["--header"]);
    let no = OwnOptions { header: Header::No, ..with(&labels) };
    assert_eq!(words(&open(&data, &no).train), ["kind", "a", "b", "a"]);
    refused(&data, &OwnOptions { header: Header::Yes, ..with(&labels) }, &["3 labels for 4 items"]);
}

#[test]
fn paths_join_wherever_the_data_was_opened_from() {
    let root = TempDir::new().unwrap();
    let data = pictures(root.path());
    let before = root.path().display().to_string();
    for front in [format!("{before}/pictures/"), String::new(), "./".into(), "elsewhere/pictures/".into()] {
        let text = format!("path,label\n{front}dog/1.png,cat\n{front}cat/2.png,dog\n{front}cat/1.png,dog\n");
        let labels = put(root.path(), "l.csv", &text);
        assert_eq!(words(&open(&data, &with(&labels)).train), ["dog", "dog", "cat"], "{text}");
        let text = format!(
            "index,path,label\n2,{front}dog/1.png,cat\n1,{front}cat/2.png,dog\n0,{front}cat/1.png,dog\n"
        );
        let labels = put(root.path(), "l.csv", &text);
        assert_eq!(words(&open(&data, &with(&labels)).train), ["dog", "dog", "cat"], "{text}");
    }
    for (text, parts) in [
        ("path,label\ncat/1.png,cat\ncat/2.png,dog\n", &["1 of 3 items", "`dog/1.png`"][..]),
        ("path,label\ncat/1.png,cat\ncat/2.png,dog\ndog/2.png,cat\n", &["line 4", "`dog/2.png`", "no item"]),
        ("path,label\ncat/1.png,cat\ncat/1.png,dog\ndog/1.png,cat\n", &["line 3", "second label"]),
        (
            "index,path,label\n0,cat/2.png,cat\n1,cat/1.png,dog\n2,dog/1.png,cat\n",
            &["line 2", "`cat/1.png`", "`cat/2.png`"],
        ),
    ] {
        refused(&data, &with(&put(root.path(), "l.csv", text)), parts);
    }
}

#[test]
fn rows_whose_paths_cannot_be_compared_are_taken_in_order_with_a_note() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "l.csv", "file_name,label\nw.png,a\nz.png,b\nx.png,b\ny.png,a\n");
    let splits = open(&vectors(root.path()), &with(&labels));
    assert_eq!(words(&splits.train), ["a", "b", "b", "a"]);
    assert!(splits.notes[0].contains("no paths to compare with"), "{:?}", splits.notes);
}

#[test]
fn ids_are_kept_out_of_features_and_join_labels() {
    let root = TempDir::new().unwrap();
    let data = put(root.path(), "t.csv", "sample_id,a,b,label\nk7,1,5,x\nk3,2,7,y\nk9,4,1,x\n");
    let splits = open(&data, &OwnOptions::default());
    let Items::Features(store) = splits.train.items() else { panic!("features") };
    assert_eq!((store.dim(), store.origin(1).as_deref()), (2, Some("k3")));
    assert!(splits.notes[0].contains("`sample_id` is used as ids"), "{:?}", splits.notes);
    let labels = put(root.path(), "l.csv", "sample_id,label\nk9,p\nk7,q\nk3,p\n");
    assert_eq!(words(&open(&data, &with(&labels)).train), ["q", "p", "p"]);
    let labels = put(root.path(), "l.csv", "sample_id,label\nk9,p\nk7,q\nk4,p\n");
    refused(&data, &with(&labels), &["line 4", "there is no item with the id `k4`"]);
    let kept = OwnOptions { ignore_columns: vec!["sample_id".into(), "b".into()], ..OwnOptions::default() };
    let Items::Features(store) = open(&data, &kept).train.items().clone() else { panic!("features") };
    assert_eq!((store.dim(), store.origin(0)), (1, None));
}

#[test]
fn sparse_numbers_are_as_many_classes_as_occur() {
    let root = TempDir::new().unwrap();
    let data = put(root.path(), "t.csv", "a,label\n1,0\n2,450000\n5,900000\n9,0\n");
    let train = open(&data, &OwnOptions::default()).train;
    assert_eq!(
        (train.classes(), train.given()),
        (&["0", "450000", "900000"].map(String::from)[..], &[0, 1, 2, 0][..])
    );
}

#[test]
fn a_class_that_only_the_test_part_has_is_refused_unless_classes_are_named() {
    let root = TempDir::new().unwrap();
    let data = put(root.path(), "t.csv", "a,label\n1,1\n2,3\n5,1\n");
    let test = put(root.path(), "test.csv", "a,label\n1,3\n2,2\n");
    let options = OwnOptions { test: Some(test), ..OwnOptions::default() };
    refused(&data, &options, &["(test)", "label `2` of item 1", "(1, 3)", "--class-names"]);
    let names = put(root.path(), "names.txt", "0\n1\n2\n3\n");
    let splits = open(&data, &OwnOptions { class_names: Some(names), ..options });
    assert_eq!((splits.train.given(), splits.test.unwrap().given()), (&[1, 3, 1][..], &[3, 2][..]));
}

#[test]
fn a_class_for_every_item_is_taken_for_the_wrong_column() {
    let root = TempDir::new().unwrap();
    let table = |column: fn(usize) -> String| {
        let mut text = String::from("a,label\n");
        (0..30).for_each(|i| writeln!(text, "{},{}", i * i, column(i)).unwrap());
        put(root.path(), "t.csv", text)
    };
    for column in [|i: usize| i.to_string(), |i: usize| format!("image {i}")] {
        refused(&table(column), &OwnOptions::default(), &["30 classes for 30 items", "right column"]);
    }
    assert_eq!(open(&table(|i| (i / 2).to_string()), &OwnOptions::default()).train.classes().len(), 15);
}

#[test]
fn labels_of_a_known_set_are_replaced_and_what_it_cannot_use_is_refused() {
    let root = TempDir::new().unwrap();
    let folders = Folders::arrange(None, None, None);
    let known = |options: &OwnOptions| negscale_data::open("fashion-mnist-subset", &folders, options);
    let plain = known(&OwnOptions::default()).unwrap().train;
    let count = plain.len();
    let mut text = String::from("index,label\n");
    for index in (0..count).rev() {
        let class = (plain.given()[index] as usize + usize::from(index == 5)) % 10;
        writeln!(text, "{index},{}", plain.classes()[class]).unwrap();
    }
    let labels = put(root.path(), "l.csv", text);
    let changed = known(&with(&labels)).unwrap().train;
    let different: Vec<usize> = (0..count).filter(|&i| plain.given()[i] != changed.given()[i]).collect();
    assert_eq!(different, [5]);
    let error =
        known(&OwnOptions { array: Some("x".into()), ..OwnOptions::default() }).unwrap_err().to_string();
    assert!(error.contains("array") && error.contains("known dataset"), "{error}");
}

#[test]
fn labels_for_test_data_that_is_not_named_are_not_passed_over() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "y.csv", "label\ncat\ndog\ncat\ndog\n");
    let options = OwnOptions { test_labels: Some(labels.clone()), ..with(&labels) };
    refused(&vectors(root.path()), &options, &["y.csv", "--test"]);
}
