//! Where labels come from: sources and several annotators, in every form that has columns.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use negscale_data::own::{self, OwnOptions};
use negscale_data::stream::RowStream;
use negscale_data::{Dataset, Items};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn put(root: &Path, name: &str, text: &str) -> PathBuf {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn from_source(name: &str) -> OwnOptions {
    OwnOptions { source_column: Some(name.into()), ..OwnOptions::default() }
}

fn by_annotators(names: &[&str]) -> OwnOptions {
    OwnOptions { label_columns: names.iter().map(|&name| name.into()).collect(), ..OwnOptions::default() }
}

fn open(path: &Path, options: &OwnOptions) -> Dataset {
    own::open(path, options).unwrap().train
}

fn refused(path: &Path, options: &OwnOptions) -> String {
    own::open(path, options).unwrap_err().to_string()
}

fn sources(data: &Dataset) -> Vec<&str> {
    (0..data.len()).map(|item| data.sources().unwrap().name(item).unwrap()).collect()
}

fn words(data: &Dataset) -> Vec<&str> {
    data.given().iter().map(|&label| data.classes()[label as usize].as_str()).collect()
}

fn dim(data: &Dataset) -> usize {
    let Items::Features(store) = data.items() else { panic!("features") };
    store.dim()
}

#[test]
fn tables_metadata_and_label_files_have_sources_blank_ones_too() {
    let root = TempDir::new().unwrap();
    let table = put(root.path(), "t.csv", "a,b,site,label\n1,2,x,cat\n3,4,,dog\n5,6,y,cat\n");
    let data = open(&table, &from_source("site"));
    assert_eq!((sources(&data), dim(&data)), (vec!["x", "", "y"], 2));
    assert_eq!(sources(&data.subset(&[2, 0]).unwrap()), ["y", "x"]);
    assert_eq!(sources(&data.with_noise(vec![0, 0, 0]).unwrap()), ["x", "", "y"], "noise changes no source");
    let Items::Features(store) = data.items() else { panic!("features") };
    assert_eq!(store.names(), ["a", "b"]);

    for (name, text) in [
        ("c/metadata.csv", "file_name,label,camera\nb.png,cat,c1\na.png,dog,\n"),
        (
            "j/metadata.jsonl",
            "{\"file_name\":\"b.png\",\"label\":\"cat\",\"camera\":\"c1\"}\n{\"file_name\":\"a.png\",\"label\":\"dog\"}\n",
        ),
    ] {
        let path = put(root.path(), name, text);
        ["a.png", "b.png"].iter().for_each(|name| drop(put(path.parent().unwrap(), name, "")));
        assert_eq!(sources(&open(path.parent().unwrap(), &from_source("camera"))), ["c1", ""], "{name}");
    }

    let rows = put(root.path(), "rows.csv", "a,b\n1,2\n3,4\n5,6\n");
    let labels = put(root.path(), "labels.csv", "index,site,label\n2,'=z,cat\n0,x,cat\n1,y,dog\n");
    let beside = OwnOptions { labels: Some(labels), ..from_source("site") };
    let data = open(&rows, &beside);
    assert_eq!((sources(&data), words(&data)), (vec!["x", "y", "=z"], vec!["cat", "dog", "cat"]));
    // The table may have it where the labels are in a file.
    let plain = put(root.path(), "plain.csv", "index,label\n0,cat\n1,dog\n2,dog\n");
    let both = OwnOptions { labels: Some(plain), ..from_source("site") };
    assert_eq!(sources(&open(&table, &both)), ["x", "", "y"]);
}

#[test]
fn columns_that_are_not_there_are_named_with_the_nearest_one() {
    let root = TempDir::new().unwrap();
    let table = put(root.path(), "t.csv", "a,b,site,label\n1,2,x,cat\n3,4,z,dog\n");
    let told = refused(&table, &from_source("sit"));
    assert!(
        told.contains("t.csv, line 1: no column `sit`: did you mean `site`? the header has a, b"),
        "{told}"
    );
    assert!(refused(&table, &by_annotators(&["label", "labl"])).contains("did you mean `label`?"));
    let folder = root.path().join("pictures");
    put(&folder, "cat/a.png", "");
    put(&folder, "dog/b.png", "");
    let told = refused(&folder, &from_source("camera"));
    assert!(told.contains("no column `camera`") && told.contains("--source-column"), "{told}");
    let labels = put(root.path(), "labels.txt", "cat\ndog\n");
    let told = refused(&folder, &OwnOptions { labels: Some(labels), ..from_source("camera") });
    assert!(told.contains("labels.txt") && told.contains("`camera`"), "{told}");
}

#[test]
fn several_annotators_give_the_majority_and_blank_cells_are_no_votes() {
    let root = TempDir::new().unwrap();
    let table = put(root.path(), "t.csv", "ann,x,bob,cy\ncat,1,dog,dog\n,2,,hen\ncat,3,dog,\n");
    let data = open(&table, &by_annotators(&["ann", "bob", "cy"]));
    assert_eq!(data.classes(), ["cat", "dog", "hen"]);
    assert_eq!((words(&data), dim(&data)), (vec!["dog", "hen", "cat"], 1));
    let columns = data.annotators().unwrap().columns();
    assert_eq!(
        columns,
        [vec![Some(0), None, Some(0)], vec![Some(1), None, Some(1)], vec![Some(1), Some(2), None]]
    );
    let wrong = put(root.path(), "w.csv", "ann,x,bob\ncat,1,dog\n,2,\n");
    let told = refused(&wrong, &by_annotators(&["ann", "bob"]));
    assert!(told.contains("w.csv, line 3: no label in any of the columns ann, bob"), "{told}");
    for (names, part) in [(&["ann"][..], "at least two"), (&["ann", "ann"], "named twice")] {
        assert!(refused(&table, &by_annotators(names)).contains(part), "{names:?}");
    }
    let both = OwnOptions { label_column: Some("ann".into()), ..by_annotators(&["ann", "bob"]) };
    assert!(refused(&table, &both).contains("leave out --label-column"));

    // The same number written in two ways is one class.
    let numbers = put(root.path(), "n.csv", "a,x,b,c\n1,5,2,1.0\n2,6,2,\n");
    let data = open(&numbers, &by_annotators(&["a", "b", "c"]));
    assert_eq!((data.classes().len(), words(&data)), (2, vec!["1", "2"]));

    let lines =
        "{\"file_name\":\"a.png\",\"ann\":\"cat\",\"bob\":null}\n{\"file_name\":\"b.png\",\"bob\":\"dog\"}\n";
    let path = put(root.path(), "j/metadata.jsonl", lines);
    ["a.png", "b.png"].iter().for_each(|name| drop(put(path.parent().unwrap(), name, "")));
    assert_eq!(words(&open(path.parent().unwrap(), &by_annotators(&["ann", "bob"]))), ["cat", "dog"]);

    // A file of labels, in any order; a table with the same columns would have labels among its features.
    let rows = put(root.path(), "rows.csv", "x\n1\n2\n");
    let labels = put(root.path(), "labels.csv", "index,ann,bob\n1,dog,\n0,,cat\n");
    let beside = OwnOptions { labels: Some(labels.clone()), ..by_annotators(&["ann", "bob"]) };
    assert_eq!(words(&open(&rows, &beside)), ["cat", "dog"]);
    assert!(refused(&table, &beside).contains("both in the data and in the file of labels"));
}

#[test]
fn rows_that_are_streamed_know_their_sources_and_have_one_column_of_labels() {
    let root = TempDir::new().unwrap();
    let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }";
    let head = format!("{head}{}\n", " ".repeat(117 - head.len()));
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.bytes());
    bytes.extend([1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()));
    let path = root.path().join("x.npy");
    std::fs::write(&path, bytes).unwrap();
    let labels = put(root.path(), "labels.csv", "label,site\ncat,x\ndog,y\ncat,x\n");
    let options = OwnOptions { labels: Some(labels.clone()), ..from_source("site") };
    let stream = RowStream::open(&path, &options).unwrap();
    assert_eq!(stream.sources().unwrap().of_items(), [0, 1, 0]);
    let wrong = OwnOptions { labels: Some(labels.clone()), ..from_source("sit") };
    assert!(RowStream::open(&path, &wrong).unwrap_err().to_string().contains("did you mean `site`?"));
    let several = OwnOptions { labels: Some(labels), ..by_annotators(&["label", "site"]) };
    assert!(RowStream::open(&path, &several).unwrap_err().to_string().contains("not read row by row"));
}
