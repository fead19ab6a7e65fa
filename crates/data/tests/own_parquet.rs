//! Parquet written here: other layouts of columns, and files that are damaged or lie.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use negscale_data::own::{self, OwnOptions};
use negscale_data::{Items, Splits};
use parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// One row group of a byte column and a label column; labels are numbers or words.
fn write(image: &str, pictures: &[&[u8]], words: Option<&[&str]>) -> Vec<u8> {
    let label = if words.is_some() { "required binary label (UTF8)" } else { "required int32 label" };
    let schema = Arc::new(parse_message_type(&format!("message m {{ {image}; {label}; }}")).unwrap());
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let bytes = |list: &[&[u8]]| list.iter().map(|b| ByteArray::from(b.to_vec())).collect::<Vec<_>>();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&bytes(pictures), None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    match words {
        Some(words) => {
            let words: Vec<&[u8]> = words.iter().map(|w| w.as_bytes()).collect();
            column.typed::<ByteArrayType>().write_batch(&bytes(&words), None, None).unwrap();
        }
        None => {
            let labels: Vec<i32> = (0..pictures.len() as i32).collect();
            column.typed::<Int32Type>().write_batch(&labels, None, None).unwrap();
        }
    }
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    out
}

fn open(folder: &Path, bytes: &[u8]) -> negscale_data::Result<Splits> {
    let path = folder.join("set.parquet");
    std::fs::write(&path, bytes).unwrap();
    own::open(&path, &OwnOptions::default())
}

fn loaded(splits: &Splits, index: usize) -> negscale_data::Result<Vec<u8>> {
    let Items::Images(store) = splits.train.items() else { panic!("no pictures") };
    store.bytes(index).map(|bytes| bytes.into_owned())
}

#[test]
fn a_column_of_bytes_with_labels_as_words_is_read() {
    let root = TempDir::new().unwrap();
    let bytes = write("required binary image", &[b"one", b"two"], Some(&["dog", "cat"]));
    let splits = open(root.path(), &bytes).unwrap();
    assert_eq!(splits.train.classes(), ["cat", "dog"]);
    assert_eq!(splits.train.given(), [1, 0]);
    assert_eq!(loaded(&splits, 1).unwrap(), b"two");
}

#[test]
fn a_column_of_paths_reads_the_files_and_refuses_those_outside() {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("set");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.png"), b"inside").unwrap();
    std::fs::write(outer.path().join("b.png"), b"outside").unwrap();
    let bytes = write("required binary img (UTF8)", &[b"a.png", b"../b.png", b"c.png"], None);
    let splits = open(&root, &bytes).unwrap();
    assert_eq!(loaded(&splits, 0).unwrap(), b"inside");
    let error = loaded(&splits, 1).unwrap_err().to_string();
    assert!(error.contains("set.parquet, row group 0, row 1") && error.contains("leaves"), "{error}");
    assert!(loaded(&splits, 2).unwrap_err().to_string().contains("`c.png` is missing"));
}

/// Rows of a list column, of an id and of a label.
fn lists(rows: &[&[Option<f32>]], half: bool) -> Vec<u8> {
    let element =
        if half { "optional fixed_len_byte_array(2) element (FLOAT16)" } else { "optional float element" };
    let text = format!(
        "message m {{ optional group emb (LIST) {{ repeated group list {{ {element}; }} }} required int32 id; required int32 label; }}"
    );
    let mut out = Vec::new();
    let schema = Arc::new(parse_message_type(&text).unwrap());
    let mut writer =
        SerializedFileWriter::new(&mut out, schema, Arc::new(WriterProperties::default())).unwrap();
    for (number, rows) in rows.chunks(2).enumerate() {
        let mut group = writer.next_row_group().unwrap();
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            for (at, value) in row.iter().enumerate() {
                values.extend(*value);
                definitions.push(if value.is_some() { 3 } else { 2 });
                repetitions.push(i16::from(at > 0));
            }
            if row.is_empty() {
                definitions.push(1);
                repetitions.push(0);
            }
        }
        let mut column = group.next_column().unwrap().unwrap();
        if half {
            let bytes = |value: &f32| half::f16::from_f32(*value).to_le_bytes().to_vec();
            let values: Vec<FixedLenByteArray> =
                values.iter().map(|v| ByteArray::from(bytes(v)).into()).collect();
            let column = column.typed::<FixedLenByteArrayType>();
            column.write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
        } else {
            column.typed::<FloatType>().write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
        }
        column.close().unwrap();
        for column in 0..2 {
            let values: Vec<i32> = (0..rows.len() as i32)
                .map(|i| if column == 0 { 70 + 2 * number as i32 + i } else { i % 2 })
                .collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

fn vector(splits: &Splits, index: usize) -> Vec<f32> {
    let Items::Features(store) = splits.train.items() else { panic!("no features") };
    let mut row = vec![0.0; store.dim()];
    store.read(index, &mut row).unwrap();
    row
}

#[test]
fn embeddings_in_a_column_of_lists_are_read_in_all_row_groups() {
    let root = TempDir::new().unwrap();
    let row = |i: u8| [Some(f32::from(i)), Some(0.5), Some(-2.0)];
    let rows: Vec<_> = (0..5).map(row).collect();
    let rows: Vec<&[Option<f32>]> = rows.iter().map(|row| &row[..]).collect();
    for half in [false, true] {
        let splits = open(root.path(), &lists(&rows, half)).unwrap();
        assert_eq!((splits.train.len(), splits.train.given()), (5, &[0, 1, 0, 1, 0][..]));
        for i in 0..5u8 {
            assert_eq!(vector(&splits, i.into()), [f32::from(i), 0.5, -2.0]);
        }
    }
    let path = root.path().join("set.parquet");
    let asked =
        OwnOptions { array: Some("emb".into()), id_column: Some("id".into()), ..OwnOptions::default() };
    let splits = own::open(&path, &asked).unwrap();
    assert_eq!(splits.train.items().origin(3).as_deref(), Some("73"));
    let labels = root.path().join("l.csv");
    std::fs::write(&labels, "id,label\n74,a\n73,b\n72,a\n71,b\n70,b\n").unwrap();
    let splits = own::open(&path, &OwnOptions { labels: Some(labels), ..asked }).unwrap();
    assert_eq!(splits.train.given(), [1, 1, 0, 1, 0]);
    let strange = OwnOptions { array: Some("label".into()), ..OwnOptions::default() };
    assert!(own::open(&path, &strange).unwrap_err().to_string().contains("does not hold lists of numbers"));
}

#[test]
fn lists_that_differ_in_length_or_lack_numbers_are_refused_with_their_row() {
    let root = TempDir::new().unwrap();
    let (two, one) = ([Some(1.0), Some(2.0)], [Some(1.0)]);
    let (gap, nan) = ([Some(1.0), None], [Some(1.0), Some(f32::NAN)]);
    for (rows, place, part) in [
        (vec![&two[..], &two, &two, &one], "row group 1, row 1", "not 2 numbers"),
        (vec![&two[..], &one, &two, &two], "row group 0, row 1", "not 2 numbers"),
        (vec![&two[..], &gap], "row group 0, row 1", "missing"),
        (vec![&two[..], &[]], "row group 0, row 1", "missing"),
        (vec![&two[..], &two, &nan], "row group 1, row 0", "NaN"),
    ] {
        let error = open(root.path(), &lists(&rows, false)).unwrap_err().to_string();
        assert!(
            error.contains(&format!("set.parquet, {place}, column `emb`")) && error.contains(part),
            "{error}"
        );
    }
}

#[test]
fn columns_of_numbers_are_a_table_without_its_ids() {
    let root = TempDir::new().unwrap();
    let text = "message m { required double a; required int32 label; required int32 b; required int32 id; }";
    let mut out = Vec::new();
    let schema = Arc::new(parse_message_type(text).unwrap());
    let mut writer =
        SerializedFileWriter::new(&mut out, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[0.5, 1.5, 4.0], None, None).unwrap();
    column.close().unwrap();
    for values in [[1, 0, 1], [9, 7, 9], [3, 1, 2]] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let splits = open(root.path(), &out).unwrap();
    assert_eq!((splits.train.given(), vector(&splits, 1)), (&[1, 0, 1][..], vec![1.5, 7.0]));
    assert!(splits.notes[0].contains("`id` is used as ids"), "{:?}", splits.notes);
    let chosen = OwnOptions { feature_columns: vec!["b".into()], ..OwnOptions::default() };
    assert_eq!(vector(&own::open(&root.path().join("set.parquet"), &chosen).unwrap(), 0), [9.0]);
}

#[test]
fn a_file_without_a_picture_column_lists_the_columns_it_has() {
    let root = TempDir::new().unwrap();
    let error = open(root.path(), &write("required binary photo", &[b"x"], None)).unwrap_err().to_string();
    assert!(error.contains("photo, label") && error.contains("image_column"), "{error}");
}

#[test]
fn pictures_to_be_predicted_are_read_whatever_their_labels_are() {
    let root = TempDir::new().unwrap();
    let bytes = write("required binary image", &[b"one", b"two"], Some(&["-1", "0.5"]));
    assert!(open(root.path(), &bytes).is_err(), "not to learn from");
    for path in [root.path().join("set.parquet"), root.path().to_owned()] {
        let set = own::open_items(&path, &OwnOptions::default()).unwrap().train;
        let Items::Images(store) = set.items() else { panic!("no pictures") };
        assert_eq!((set.len(), store.bytes(1).unwrap().as_ref()), (2, &b"two"[..]));
    }
}

#[test]
fn a_test_part_whose_labels_are_secret_is_passed_over_for_one_that_can_judge() {
    let root = TempDir::new().unwrap();
    let put = |name: &str, words: &[&str]| {
        let bytes = write("required binary image", &vec![&b"x"[..]; words.len()], Some(words));
        std::fs::write(root.path().join(name), bytes).unwrap();
    };
    put("train.parquet", &["0", "1"]);
    put("test.parquet", &["-1", "-1"]);
    let open = || own::open(root.path(), &OwnOptions::default()).unwrap();
    assert!(open().test.is_none());
    put("validation.parquet", &["1"]);
    assert_eq!(open().test.unwrap().given(), [1]);
}

#[test]
fn truncated_and_damaged_files_are_errors_and_never_panics() {
    let whole = write("required binary image", &[&[1; 40], &[2; 40], &[3; 40]], None);
    let check =
        |bytes: Vec<u8>| own::parquet::check_bytes(Path::new("p.parquet"), bytes, &OwnOptions::default());
    let mut failed = 0;
    for end in 0..whole.len() {
        assert!(check(whole[..end].to_vec()).unwrap_err().to_string().contains("p.parquet"));
    }
    for at in 0..whole.len() {
        for value in [0, 0x7F, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            failed += usize::from(check(bytes).is_err());
        }
    }
    assert!(failed > 0);
    assert_eq!(check(whole).unwrap(), 3);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_errors(noise: Vec<u8>, footer in proptest::collection::vec(any::<u8>(), 0..64)) {
        let length = (footer.len() as u32).to_le_bytes();
        let bytes = [b"PAR1", &noise[..], &footer, &length, b"PAR1"].concat();
        let result = own::parquet::check_bytes(Path::new("p"), bytes, &OwnOptions::default());
        prop_assert!(result.is_err());
    }
}
