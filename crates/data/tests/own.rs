//! The user's own data, from files as users have them.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use image::{GrayImage, Luma, Rgb, RgbImage};
use negscale_data::own::{self, Form, OwnOptions};
use negscale_data::{Dataset, Items, Shape, Splits};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn put(root: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn colour(root: &Path, name: &str, width: u32, height: u32, value: u8) {
    let path = put(root, name, []);
    RgbImage::from_pixel(width, height, Rgb([value, 1, 2])).save(path).unwrap();
}

fn grey(root: &Path, name: &str, width: u32, height: u32, value: u8) {
    let path = put(root, name, []);
    GrayImage::from_pixel(width, height, Luma([value])).save(path).unwrap();
}

fn open(path: impl AsRef<Path>) -> Splits {
    own::open(path.as_ref(), &OwnOptions::default()).unwrap()
}

fn error(path: impl AsRef<Path>, options: &OwnOptions) -> String {
    own::open(path.as_ref(), options).map(|splits| splits.train).unwrap_err().to_string()
}

fn shape(dataset: &Dataset, index: usize) -> Shape {
    let Items::Images(store) = dataset.items() else { panic!("no pictures") };
    store.load(index).unwrap().shape
}

fn row(dataset: &Dataset, index: usize) -> Vec<f32> {
    let Items::Features(store) = dataset.items() else { panic!("no features") };
    let mut row = vec![0.0; store.dim()];
    store.read(index, &mut row).unwrap();
    row
}

#[test]
fn an_image_folder_keeps_sizes_and_channels_and_counts_what_it_passes_over() {
    let root = TempDir::new().unwrap();
    colour(root.path(), "dog/1.png", 4, 3, 9);
    grey(root.path(), "cat/a/2.jpg", 5, 6, 9);
    colour(root.path(), "cat/3.webp", 7, 2, 9);
    put(root.path(), "cat/.DS_Store", "x");
    put(root.path(), "notes.txt", "x");
    let opened = own::open_in_full(root.path(), &OwnOptions::default()).unwrap();
    assert_eq!(opened.form, Form::ImageFolder);
    assert!(opened.splits.notes.join("").contains("1 other file skipped"), "{:?}", opened.splits.notes);
    let train = &opened.splits.train;
    assert_eq!((train.classes(), train.given()), (&["cat".to_string(), "dog".into()][..], &[0, 0, 1][..]));
    assert_eq!(shape(train, 0), Shape { width: 7, height: 2, channels: 3 });
    assert_eq!(shape(train, 1), Shape { width: 5, height: 6, channels: 1 });
    assert_eq!(shape(train, 2), Shape { width: 4, height: 3, channels: 3 });
    assert!(opened.splits.test.is_none());
}

#[test]
fn an_image_folder_with_train_and_test_gives_both_by_the_classes_of_train() {
    for test in ["test", "val", "valid"] {
        let root = TempDir::new().unwrap();
        for name in ["train/1/x.png", "train/10/x.png", "train/2/x.png"] {
            colour(root.path(), name, 2, 2, 1);
        }
        colour(root.path(), &format!("{test}/2/y.png"), 2, 2, 1);
        let splits = open(root.path());
        // Folders are names, in the order of names, even if they look like numbers.
        assert_eq!(splits.train.classes(), ["1", "10", "2"]);
        assert_eq!(splits.train.given(), [0, 1, 2]);
        assert_eq!(splits.test.unwrap().given(), [2]);
        colour(root.path(), &format!("{test}/zebra/y.png"), 2, 2, 1);
        let error = error(root.path(), &OwnOptions::default());
        assert!(error.contains("(test)") && error.contains("`zebra`"), "{error}");
    }
}

#[test]
fn a_class_called_train_among_others_is_a_class() {
    let root = TempDir::new().unwrap();
    for name in ["bus/1.png", "train/1.png", "train/night/2.png"] {
        colour(root.path(), name, 2, 2, 1);
    }
    assert_eq!(open(root.path()).train.classes(), ["bus", "train"]);
}

#[test]
fn an_empty_class_folder_is_no_class_and_is_named_in_a_note() {
    let root = TempDir::new().unwrap();
    colour(root.path(), "a/1.png", 2, 2, 1);
    std::fs::create_dir(root.path().join("hollow")).unwrap();
    let splits = open(root.path());
    assert_eq!(splits.train.classes(), ["a"]);
    assert!(splits.notes.join("").contains("`hollow`"), "{:?}", splits.notes);
}

#[test]
fn a_picture_that_cannot_be_decoded_is_named_when_it_is_asked_for() {
    let root = TempDir::new().unwrap();
    colour(root.path(), "a/1.png", 2, 2, 1);
    put(root.path(), "a/2.png", "no picture");
    let train = open(root.path()).train;
    let Items::Images(store) = train.items() else { panic!() };
    assert!(store.load(0).is_ok());
    assert!(store.load(1).unwrap_err().to_string().contains("2.png"));
}

#[test]
fn metadata_tables_give_labels_as_words_or_numbers_and_the_truth() {
    let root = TempDir::new().unwrap();
    colour(root.path(), "x/1.png", 3, 2, 1);
    grey(root.path(), "2.png", 2, 2, 1);
    put(root.path(), "metadata.csv", "file_name,label,true_label\nx/1.png,dog,cat\n2.png,cat,cat\n");
    let opened = own::open_in_full(root.path(), &OwnOptions::default()).unwrap();
    let train = &opened.splits.train;
    assert_eq!(opened.form, Form::Metadata);
    assert_eq!((train.given(), train.truth()), (&[1, 0][..], Some(&[0, 0][..])));
    assert_eq!((shape(train, 0).channels, shape(train, 1).channels), (3, 1));

    std::fs::remove_file(root.path().join("metadata.csv")).unwrap();
    let lines = "{\"file_name\":\"x/1.png\",\"kind\":2}\n{\"file_name\":\"2.png\",\"kind\":0}\n";
    put(root.path(), "metadata.jsonl", lines);
    let names = put(root.path(), "names.txt", "ant\nbee\ncow\n");
    let kind =
        OwnOptions { label_column: Some("kind".into()), class_names: Some(names), ..Default::default() };
    let train = own::open(root.path(), &kind).unwrap().train;
    assert_eq!((train.given(), train.classes()[2].as_str()), (&[2, 0][..], "cow"));
    put(root.path(), "metadata.csv", "file_name,label\n");
    assert!(error(root.path(), &kind).contains("both"));
}

#[test]
fn metadata_in_train_and_test_gives_both_parts() {
    let root = TempDir::new().unwrap();
    for part in ["train", "test"] {
        colour(root.path(), &format!("{part}/1.png"), 2, 2, 1);
        put(root.path(), &format!("{part}/metadata.csv"), "file_name,label\n1.png,a\n");
    }
    let splits = open(root.path());
    assert_eq!((splits.train.len(), splits.test.unwrap().len()), (1, 1));
}

#[test]
fn metadata_that_leaves_the_folder_or_names_missing_files_is_refused_with_the_line() {
    let outer = TempDir::new().unwrap();
    colour(outer.path(), "secret.png", 2, 2, 1);
    let root = outer.path().join("set");
    colour(&root, "1.png", 2, 2, 1);
    for (name, part) in
        [("../secret.png", "leaves the folder"), ("/etc/hostname", "leaves"), ("no.png", "missing")]
    {
        put(&root, "metadata.csv", format!("file_name,label\n1.png,a\n{name},b\n"));
        let error = error(&root, &OwnOptions::default());
        assert!(error.contains("metadata.csv, line 3") && error.contains(part), "{error}");
    }
}

#[test]
fn hugging_face_shards_made_by_pyarrow_are_read_whatever_their_compression() {
    let opened = own::open_in_full(&fixture("hf"), &OwnOptions::default()).unwrap();
    assert_eq!(opened.form, Form::Parquet);
    let (train, test) = (&opened.splits.train, opened.splits.test.as_ref().unwrap());
    assert_eq!(train.classes(), ["ant", "bee", "cow"]);
    assert_eq!(train.given(), [0, 1, 2, 2, 2, 1]);
    assert_eq!(train.truth(), Some(&[0, 1, 1, 2, 2, 1][..]));
    assert_eq!(test.given(), [1, 0]);
    let Items::Images(store) = train.items() else { panic!() };
    let red = |at: usize| store.load(at).unwrap().pixels[0];
    // From the back, so that row groups are unpacked out of order.
    assert_eq!([5, 4, 3, 1, 0].map(red), [200, 200, 3, 3, 200]);
    assert_eq!(shape(train, 2), Shape { width: 2, height: 5, channels: 1 });
    assert_eq!(store.load(2).unwrap().pixels, [7; 10]);
    assert!(store.origin(3).unwrap().contains("train-00001-of-00002.parquet, row group 0, row 0"));
    assert_eq!(shape(test, 1), Shape { width: 4, height: 3, channels: 3 });
}

#[test]
fn pictures_of_parquet_can_be_had_from_many_threads() {
    let train = open(fixture("hf")).train;
    let Items::Images(store) = train.items() else { panic!() };
    let alone: Vec<Vec<u8>> = (0..6).map(|i| open_bytes(store.as_ref(), i)).collect();
    let fresh = open(fixture("hf")).train;
    let Items::Images(fresh) = fresh.items() else { panic!() };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (alone, fresh) = (&alone, fresh);
            scope.spawn(move || {
                for n in 0..60 {
                    let i = (n * 5 + thread) % 6;
                    assert_eq!(open_bytes(fresh.as_ref(), i), alone[i]);
                }
            });
        }
    });
}

fn open_bytes(store: &dyn negscale_data::ImageStore, index: usize) -> Vec<u8> {
    store.bytes(index).unwrap().into_owned()
}

#[test]
fn a_missing_shard_is_noticed() {
    let root = TempDir::new().unwrap();
    let name = "train-00000-of-00002.parquet";
    std::fs::copy(fixture("hf").join(name), root.path().join(name)).unwrap();
    let error = error(root.path(), &OwnOptions::default());
    assert!(error.contains("1 of 2 shards"), "{error}");
}

#[test]
fn arrays_made_by_numpy_and_safetensors_give_the_same_rows() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "labels.txt", "0\n1\n2\n0\n1\n2\n");
    let beside = |labels: &Path| OwnOptions { labels: Some(labels.to_owned()), ..Default::default() };
    let with = |name: &str, options: &OwnOptions| own::open(&fixture(name), options).unwrap();
    let plain = OwnOptions::default();
    let words = with("fortran.npy", &beside(&fixture("words.npy")));
    for splits in [
        with("stored.npz", &plain),
        with("deflated.npz", &plain),
        with("half.safetensors", &plain),
        with("fortran.npy", &beside(&labels)),
        words.clone(),
    ] {
        assert_eq!(splits.train.given(), [0, 1, 2, 0, 1, 2]);
        for i in 0..6 {
            assert_eq!(row(&splits.train, i), [i as f32 / 2.0, i as f32 / 2.0 + 0.25]);
        }
    }
    assert_eq!(words.train.classes(), ["ant", "bee", "cow"]);
    let test = with("deflated.npz", &plain).test.unwrap();
    assert_eq!((test.given(), row(&test, 1)), (&[0, 1][..], vec![0.5, 0.75]));
}

#[test]
fn a_table_can_be_tested_by_a_second_file_or_by_rows_of_its_own() {
    let root = TempDir::new().unwrap();
    let train = put(root.path(), "train.csv", "a,b,label\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n");
    let test = put(root.path(), "test.csv", "a,b,label\n9,9,y\n");
    let second = OwnOptions { test: Some(test.clone()), ..Default::default() };
    let splits = own::open(&train, &second).unwrap();
    assert_eq!((splits.train.len(), splits.test.unwrap().given()), (4, &[1][..]));
    let rows = OwnOptions { test_rows: Some(1..3), ..Default::default() };
    let splits = own::open(&train, &rows).unwrap();
    let held = splits.test.unwrap();
    assert_eq!((row(&splits.train, 1), row(&held, 0)), (vec![7.0, 8.0], vec![3.0, 4.0]));
    for bad in [0..4, 3..9, 2..2] {
        let options = OwnOptions { test_rows: Some(bad), ..Default::default() };
        assert!(error(&train, &options).contains("test_rows"));
    }
    let both = OwnOptions { test: Some(test), ..rows };
    assert!(error(&train, &both).contains("not both"));
}

#[test]
fn labels_that_do_not_match_the_rows_are_refused_with_both_counts() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "labels.txt", "0\n1\n");
    let options = OwnOptions { labels: Some(labels), ..Default::default() };
    let error = error(fixture("fortran.npy"), &options);
    assert!(error.contains("2 labels for 6 items"), "{error}");
}

#[test]
fn objects_are_never_unpickled() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "labels.txt", "0\n");
    let options = OwnOptions { labels: Some(labels), ..Default::default() };
    assert!(error(fixture("objects.npy"), &options).contains("run code"));
    assert!(error(fixture("fortran.npy"), &OwnOptions::default()).contains("labels file"));
}

#[test]
fn what_is_not_recognised_says_what_was_tried() {
    let root = TempDir::new().unwrap();
    let error_of_folder = error(root.path(), &OwnOptions::default());
    assert!(error_of_folder.contains("metadata.csv") && error_of_folder.contains("class folders"));
    let file = put(root.path(), "data.pkl", "x");
    assert!(error(&file, &OwnOptions::default()).contains(".safetensors"));
    assert!(error(root.path().join("nowhere"), &OwnOptions::default()).contains("nowhere"));
}

#[test]
fn options_are_read_from_text_and_unknown_ones_refused() {
    let options: OwnOptions =
        serde_json::from_str("{\"label_column\":\"kind\",\"test_rows\":{\"start\":1,\"end\":2}}").unwrap();
    assert_eq!((options.label_column.as_deref(), options.test_rows), (Some("kind"), Some(1..2)));
    assert!(serde_json::from_str::<OwnOptions>("{\"lable_column\":\"kind\"}").is_err());
}

#[test]
fn hostile_files_are_refused_with_their_name_through_the_one_entry() {
    let root = TempDir::new().unwrap();
    let labels = put(root.path(), "labels.txt", "0\n");
    let options = OwnOptions { labels: Some(labels), ..Default::default() };
    for name in ["e.npy", "e.npz", "e.safetensors", "e.csv", "e.parquet"] {
        for bytes in [&b""[..], b"\0", b"PAR1", b"\x93NUMPY\x01\0\xFF\xFF", b"PK\x05\x06", &[0xFF; 300]] {
            let path = put(root.path(), name, bytes);
            let error = error(&path, &options);
            assert!(error.contains(name), "{error}");
        }
    }
}

fn items(path: impl AsRef<Path>) -> Dataset {
    own::open_items(path.as_ref(), &OwnOptions::default()).unwrap().train
}

#[test]
fn pictures_to_be_predicted_need_no_labels() {
    let root = TempDir::new().unwrap();
    colour(root.path(), "b.png", 4, 3, 9);
    grey(root.path(), "a.jpg", 5, 6, 9);
    colour(root.path(), "deep/er/c.webp", 7, 2, 9);
    put(root.path(), "notes.txt", "x");
    let all = items(root.path());
    assert_eq!((all.len(), all.given()), (3, &[0, 0, 0][..]));
    let Items::Images(store) = all.items() else { panic!("no pictures") };
    let ends = |index: usize, name: &str| store.origin(index).unwrap().ends_with(name);
    assert!(ends(0, "a.jpg") && ends(1, "b.png") && ends(2, "c.webp"));
    let one = items(root.path().join("b.png"));
    assert_eq!((one.len(), one.name()), (1, "b"));
    assert_eq!(shape(&one, 0), Shape { width: 4, height: 3, channels: 3 });
    let empty = TempDir::new().unwrap();
    let refused = |path: &Path| own::open_items(path, &OwnOptions::default()).unwrap_err().to_string();
    assert!(refused(empty.path()).contains("no image"));
    assert!(refused(&root.path().join("notes.txt")).contains("unknown format"));
    assert!(refused(&root.path().join("absent")).contains("absent"));
}

#[test]
fn arrays_to_be_predicted_need_no_labels_and_leave_out_those_they_have() {
    let root = TempDir::new().unwrap();
    for (text, wanted) in [
        ("1,2\n3,4\n", [3.0, 4.0]),
        ("x,y\n1,2\n3,4\n", [3.0, 4.0]),
        ("x,label,y\n1,cat,2\n3,dog,4\n", [3.0, 4.0]),
        ("x,y,label,true_label\n1,2,7,8\n3,4,9,9\n", [3.0, 4.0]),
    ] {
        let table = items(put(root.path(), "t.csv", text));
        assert_eq!(table.len(), 2, "{text}");
        assert_eq!(row(&table, 1), wanted, "{text}");
    }
    let named = OwnOptions { label_column: Some("kind".into()), ..OwnOptions::default() };
    let table = put(root.path(), "t.csv", "kind,x,y\na,1,2\n");
    assert_eq!(row(&own::open_items(&table, &named).unwrap().train, 0), [1.0, 2.0]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let numbers = [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16 + 1).to_le_bytes());
    npy.extend(header.bytes().chain([b'\n']).chain(numbers));
    assert_eq!(row(&items(put(root.path(), "x.npy", &npy)), 1), [3.0, 4.0]);
}
