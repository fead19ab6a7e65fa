use super::*;
use crate::Items;
use crate::known::real;
use std::fs::{create_dir_all, write};

/// A made-up set with two training pictures.
fn made_up(train: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("webvision");
    for part in ["info", "google/q0001", "val_images_256"] {
        create_dir_all(root.join(part)).unwrap();
    }
    write(root.join("google/q0001/a b.jpg"), b"").unwrap();
    write(root.join("val_images_256/val000001.jpg"), b"").unwrap();
    write(root.join(FILES[0]), train).unwrap();
    write(root.join(FILES[1]), "val000001.jpg 49\n").unwrap();
    folder
}

fn open(folder: &tempfile::TempDir) -> Result<Splits> {
    mini(&folder.path().join("webvision"))
}

#[test]
fn the_fixture_is_read_and_its_row_from_outside_is_dropped() {
    let Some(list) = real("fixtures/webvision/info/val_filelist.txt") else { return };
    let splits = mini(list.parent().unwrap().parent().unwrap()).unwrap();
    assert_eq!(splits.train.given(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    let test = splits.test.unwrap();
    assert_eq!(test.given(), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(test.classes()[49], "African crocodile");
    for data in [&splits.train, &test] {
        let Items::Images(store) = data.items() else { panic!("pictures") };
        for i in 0..store.len() {
            assert_eq!(store.load(i).unwrap().shape.channels, 3);
        }
    }
}

#[test]
fn built_in_classes_are_those_of_the_table() {
    let Some(table) = real("webvision/first50_synsets.tsv") else { return };
    let text = std::fs::read_to_string(table).unwrap();
    let rows: Vec<_> = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>()).collect();
    assert_eq!(rows.len(), 50);
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row[0], at.to_string());
        assert_eq!(MINI_WEBVISION[at], (row[1], row[2].split(", ").next().unwrap()));
    }
}

#[test]
fn names_may_hold_spaces_and_labels_from_50_are_dropped() {
    let splits =
        open(&made_up("google/q0001/a b.jpg 7\r\n\ngoogle/q0002/c.jpg 50\ngoogle/q0003/d.jpg 999\n"))
            .unwrap();
    assert_eq!(splits.train.given(), [7]);
    let Items::Images(store) = splits.train.items() else { panic!("pictures") };
    assert!(Path::new(&store.origin(0).unwrap()).ends_with("google/q0001/a b.jpg"));
    assert!(splits.second_test.is_none());
}

#[test]
fn broken_lists_are_errors_that_name_the_line() {
    let long = format!("google/q0001/a b.jpg 0\n{} 0\n", "x".repeat(5000));
    for bad in [
        "google/q0001/a b.jpg 0\ngoogle/q0001/c.jpg\n",
        "google/q0001/a b.jpg 0\ngoogle/q0001/c.jpg 1000\n",
        "google/q0001/a b.jpg 0\ngoogle/q0001/c.jpg -1\n",
        "google/q0001/a b.jpg 0\n../../secret.jpg 1\n",
        "google/q0001/a b.jpg 0\n/etc/passwd 777\n",
        &long,
    ] {
        let message = open(&made_up(bad)).unwrap_err().to_string();
        assert!(message.contains("train_filelist_google.txt, line 2"), "{message}");
    }
    for empty in ["", "\n", "google/q0001/a b.jpg 50"] {
        assert!(open(&made_up(empty)).unwrap_err().to_string().contains("train_filelist_google.txt"));
    }
    assert!(open(&made_up("google/q0001/absent.jpg 0")).unwrap_err().to_string().contains("absent.jpg"));
}

#[test]
fn another_order_of_classes_is_refused() {
    let folder = made_up("google/q0001/a b.jpg 0\n");
    let synsets = folder.path().join("webvision/info/synsets.txt");
    write(&synsets, "n01440764 tench\nn01443537 goldfish\n").unwrap();
    open(&folder).unwrap();
    write(&synsets, "n01440764 tench\nn01484850 great white shark\n").unwrap();
    assert!(open(&folder).unwrap_err().to_string().contains("synsets.txt, line 2"));
}

#[test]
fn ilsvrc12_is_read_in_both_layouts() {
    let folder = made_up("google/q0001/a b.jpg 0\n");
    let val = folder.path().join("ilsvrc12-val");
    for file in ["n01443537/z.JPEG", "n01443537/a.JPEG", "n01440764/m.JPEG", "n09999999/o.JPEG"] {
        create_dir_all(val.join(file).parent().unwrap()).unwrap();
        write(val.join(file), b"").unwrap();
    }
    let second = open(&folder).unwrap().second_test.unwrap();
    assert_eq!(second.given(), [0, 1, 1]);
    let Items::Images(store) = second.items() else { panic!("pictures") };
    assert!(Path::new(&store.origin(1).unwrap()).ends_with("n01443537/a.JPEG"));

    write(val.join("ILSVRC2012_val_00000002.JPEG"), b"").unwrap();
    let list = val.join("val_synsets.txt");
    for text in ["n09999999\nn01697457\n", "ILSVRC2012_val_00000002.JPEG n01697457\nx.JPEG n09999999\n"] {
        write(&list, text).unwrap();
        assert_eq!(open(&folder).unwrap().second_test.unwrap().given(), [49]);
    }
    for (text, place) in
        [("n01697457\n490\n", "line 2"), ("../x.JPEG n01697457\n", "line 1"), ("", "ilsvrc12-val")]
    {
        write(&list, text).unwrap();
        assert!(open(&folder).unwrap_err().to_string().contains(place));
    }
}
