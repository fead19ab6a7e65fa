//! Rows read piece by piece are those of the whole.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use negscale_data::own::{self, OwnOptions};
use negscale_data::stream::RowStream;
use negscale_data::{Dataset, Items};
use parquet::data_type::{DoubleType, FloatType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
}

/// Some numbers that halves can hold.
fn number(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 3) % 512) as f32 / 8.0 - 20.0
}

fn put(root: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = root.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn halves(rows: std::ops::Range<usize>, dim: usize) -> Vec<u8> {
    let count = rows.len();
    let values = rows.flat_map(|row| (0..dim).map(move |column| number(row, column)));
    let bytes: Vec<u8> = values.flat_map(|value| half::f16::from_f32(value).to_le_bytes()).collect();
    npy("<f2", &format!("({count}, {dim})"), &bytes)
}

fn labels(rows: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..rows).flat_map(|row| ((row % 3) as i64 * 10).to_le_bytes()).collect();
    npy("<i8", &format!("({rows},)"), &bytes)
}

fn with_labels(path: &Path) -> OwnOptions {
    OwnOptions { labels: Some(path.to_owned()), ..OwnOptions::default() }
}

fn all(data: &Dataset) -> Vec<f32> {
    let Items::Features(store) = data.items() else { panic!("no features") };
    let mut values = vec![0.0; store.len() * store.dim()];
    for (row, out) in values.chunks_mut(store.dim()).enumerate() {
        store.read(row, out).unwrap();
    }
    values
}

/// Blocks of any size, single rows and several threads give what the reader of the whole gives.
fn check(stream: &RowStream, whole: &Dataset) {
    let (rows, dim, expected) = (stream.rows(), stream.dim(), all(whole));
    assert_eq!(
        (rows as usize, stream.given(), stream.classes()),
        (whole.len(), whole.given(), whole.classes())
    );
    assert_eq!(stream.truth(), whole.truth());
    let slice = |from: u64, to: u64| &expected[from as usize * dim..to as usize * dim];
    let mut out = Vec::new();
    for block in [1, 7, 64, rows] {
        for range in stream.blocks(0..rows, block) {
            stream.read_rows(range.clone(), &mut out).unwrap();
            assert_eq!(out, slice(range.start, range.end));
        }
    }
    stream.read_rows(rows..rows, &mut out).unwrap();
    assert!(out.is_empty());
    for step in [1, 2, 5, 40] {
        let some: Vec<u64> = (0..rows).filter(|row| row % step == step / 2).collect();
        stream.read_some(&some, &mut out).unwrap();
        let wanted: Vec<f32> = some.iter().flat_map(|&row| slice(row, row + 1).to_vec()).collect();
        assert_eq!(out, wanted);
    }
    std::thread::scope(|scope| {
        for start in 0..3 {
            scope.spawn(move || {
                let mut out = Vec::new();
                for row in (start..rows).step_by(3) {
                    stream.read_rows(row..row + 1, &mut out).unwrap();
                    assert_eq!(out, slice(row, row + 1));
                }
            });
        }
    });
    assert!(stream.read_rows(rows..rows + 1, &mut out).unwrap_err().to_string().contains("there are"));
    assert!(stream.read_some(&[1, 1], &mut out).unwrap_err().to_string().contains("sort them"));
    assert!(stream.read_some(&[rows], &mut out).is_err());
}

#[test]
fn blocks_of_an_array_are_its_rows() {
    let root = TempDir::new().unwrap();
    let options = with_labels(&put(&root, "y.npy", &labels(200)));
    let half = put(&root, "half.npy", &halves(0..200, 5));
    let values: Vec<f64> = (0..1000).map(|at| f64::from(number(at / 5, at % 5))).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let double = put(&root, "double.npy", &npy(">f8", "(200, 5)", &bytes));
    let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
    let single = put(&root, "single.npy", &npy("<f4", "(200, 5)", &bytes));
    for path in [half, single, double] {
        let stream = RowStream::open(&path, &options).unwrap();
        check(&stream, &own::open(&path, &options).unwrap().train);
        assert_eq!(stream.classes(), ["0", "10", "20"]);
    }
}

#[test]
fn arrays_of_a_folder_follow_one_another_by_name() {
    let root = TempDir::new().unwrap();
    let whole = put(&root, "whole.npy", &halves(0..90, 4));
    for (name, rows) in [("part-00.npy", 0..10), ("part-01.npy", 10..73), ("part-02.npy", 73..90)] {
        put(&root, &format!("parts/{name}"), &halves(rows, 4));
    }
    let options = with_labels(&put(&root, "parts/y.npy", &labels(90)));
    let folder = root.path().join("parts");
    check(&RowStream::open(&folder, &options).unwrap(), &own::open(&whole, &options).unwrap().train);
    put(&root, "parts/part-03.npy", &halves(0..2, 3));
    let error = RowStream::open(&folder, &options).unwrap_err().to_string();
    assert!(error.contains("part-03.npy") && error.contains("rows of 3 numbers"), "{error}");
    std::fs::rename(folder.join("part-03.npy"), folder.join("part-9.npy")).unwrap();
    put(&root, "parts/part-10.npy", &halves(0..2, 4));
    let error = RowStream::open(&folder, &options).unwrap_err().to_string();
    assert!(error.contains("`part-10.npy` before `part-9.npy`"), "{error}");
}

/// Row groups of lists of `dim` numbers with labels.
fn lists(groups: &[std::ops::Range<usize>], dim: usize) -> Vec<u8> {
    let text = "message m { required group emb (LIST) { repeated group list { required float element; } } required int32 label; }";
    let (mut out, schema) = (Vec::new(), Arc::new(parse_message_type(text).unwrap()));
    let properties = WriterProperties::builder().set_data_page_row_count_limit(10).set_write_batch_size(4);
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties.build())).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let values: Vec<f32> =
            rows.clone().flat_map(|row| (0..dim).map(move |column| number(row, column))).collect();
        let repetitions: Vec<i16> = (0..values.len()).map(|at| i16::from(at % dim != 0)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let definitions = vec![1; values.len()];
        column.typed::<FloatType>().write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
        column.close().unwrap();
        let labels: Vec<i32> = rows.clone().map(|row| (row % 4) as i32).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&labels, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

#[test]
fn blocks_of_lists_in_parquet_are_their_rows_over_groups_and_files() {
    let root = TempDir::new().unwrap();
    let one = put(&root, "one.parquet", &lists(&[0..33, 33..34, 34..120], 6));
    let options = OwnOptions::default();
    check(&RowStream::open(&one, &options).unwrap(), &own::open(&one, &options).unwrap().train);
    put(&root, "set/train-00000-of-00002.parquet", &lists(&[0..15, 15..40], 6));
    put(&root, "set/train-00001-of-00002.parquet", &lists(&[40..90, 90..120], 6));
    put(&root, "set/test-00000-of-00001.parquet", &lists(&[0..4, 4..9], 6));
    let folder = root.path().join("set");
    check(&RowStream::open(&folder, &options).unwrap(), &own::open(&folder, &options).unwrap().train);
    let beside = with_labels(&put(&root, "y.npy", &labels(120)));
    check(&RowStream::open(&one, &beside).unwrap(), &own::open(&one, &beside).unwrap().train);
}

/// A table of two features, labels, and numbers that are ids or count.
fn table(name: &str, ids: impl Fn(usize) -> i32) -> Vec<u8> {
    let text = format!(
        "message m {{ required double a; required int32 label; required int32 b; required int32 {name}; }}"
    );
    let (mut out, schema) = (Vec::new(), Arc::new(parse_message_type(&text).unwrap()));
    let mut writer =
        SerializedFileWriter::new(&mut out, schema, Arc::new(WriterProperties::default())).unwrap();
    for rows in [0..70, 70..100] {
        let mut group = writer.next_row_group().unwrap();
        let values: Vec<f64> = rows.clone().map(|row| f64::from(number(row, 0))).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        let columns: [&dyn Fn(usize) -> i32; 3] =
            [&|row| (row % 2) as i32, &|row| (row * row % 11) as i32, &ids];
        for value in columns {
            let values: Vec<i32> = rows.clone().map(value).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

#[test]
fn columns_of_a_table_are_chosen_as_elsewhere_and_ids_stay_with_their_rows() {
    let root = TempDir::new().unwrap();
    let options = OwnOptions::default();
    let path = put(&root, "t.parquet", &table("id", |row| 500 - row as i32));
    let stream = RowStream::open(&path, &options).unwrap();
    check(&stream, &own::open(&path, &options).unwrap().train);
    assert_eq!(
        (stream.dim(), stream.id(0), stream.id(99), stream.id(100)),
        (2, Some("500"), Some("401"), None)
    );
    assert!(stream.notes()[0].contains("`id` is used as ids"), "{:?}", stream.notes());
    let chosen = OwnOptions { feature_columns: vec!["b".into()], ..OwnOptions::default() };
    check(&RowStream::open(&path, &chosen).unwrap(), &own::open(&path, &chosen).unwrap().train);
    // Labels in another order, joined by their ids.
    let text: String =
        (0..100).rev().map(|row| format!("{},{}\n", 500 - row, ["x", "y"][row / 50])).collect();
    let joined = with_labels(&put(&root, "y.csv", format!("id,label\n{text}").as_bytes()));
    check(&RowStream::open(&path, &joined).unwrap(), &own::open(&path, &joined).unwrap().train);
}

#[test]
fn a_column_that_counts_is_refused_without_reading_all_rows() {
    let root = TempDir::new().unwrap();
    let path = put(&root, "t.parquet", &table("c", |row| row as i32 + 3));
    let error = RowStream::open(&path, &OwnOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`c` only counts the rows"), "{error}");
    let wanted = OwnOptions { id_column: Some("none".into()), ..OwnOptions::default() };
    check(&RowStream::open(&path, &wanted).unwrap(), &own::open(&path, &wanted).unwrap().train);
    let path = put(&root, "u.parquet", &table("c", |row| row.min(98) as i32));
    check(
        &RowStream::open(&path, &OwnOptions::default()).unwrap(),
        &own::open(&path, &OwnOptions::default()).unwrap().train,
    );
}

#[test]
fn numbers_that_are_not_finite_are_named_by_file_row_and_column() {
    let root = TempDir::new().unwrap();
    let y = put(&root, "y.npy", &labels(6));
    let mut bytes = halves(0..6, 2);
    let at = bytes.len() - 2 * 3;
    bytes[at..at + 2].copy_from_slice(&half::f16::NAN.to_le_bytes());
    let path = put(&root, "x.npy", &bytes);
    let stream = RowStream::open(&path, &with_labels(&y)).unwrap();
    let mut out = Vec::new();
    for error in [
        stream.read_rows(3..6, &mut out).unwrap_err().to_string(),
        stream.read_some(&[0, 4], &mut out).unwrap_err().to_string(),
    ] {
        assert!(error.contains("x.npy, row 4, column 1: NaN"), "{error}");
    }
    stream.read_rows(0..4, &mut out).unwrap();
    let huge: Vec<u8> = [1.0, 1e99f64].iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = put(&root, "huge.npy", &npy("<f8", "(2, 1)", &huge));
    let stream = RowStream::open(&path, &with_labels(&put(&root, "two.npy", &labels(2)))).unwrap();
    assert!(stream.read_rows(0..2, &mut out).unwrap_err().to_string().contains("row 1, column 0: inf"));
}

#[test]
fn what_cannot_be_streamed_is_refused_in_words() {
    let root = TempDir::new().unwrap();
    let y = with_labels(&put(&root, "y.npy", &labels(6)));
    let x = put(&root, "x.npy", &halves(0..6, 2));
    let said = |path: &Path, options: &OwnOptions| RowStream::open(path, options).unwrap_err().to_string();
    assert!(said(&x, &OwnOptions::default()).contains("--labels"));
    assert!(said(&x, &with_labels(&put(&root, "few.npy", &labels(5)))).contains("5 labels for 6 items"));
    assert!(said(&put(&root, "x.npz", b"PK"), &y).contains("row by row"));
    assert!(said(&put(&root, "flat.npy", &labels(6)), &y).contains("rows and columns"));
    let bytes = halves(0..6, 2);
    assert!(said(&put(&root, "cut.npy", &bytes[..bytes.len() - 1]), &y).contains("cut off"));
    let place = bytes.windows(5).position(|part| part == b"False").unwrap();
    let mut fortran = bytes.clone();
    fortran[place..place + 5].copy_from_slice(b"True ");
    assert!(said(&put(&root, "fortran.npy", &fortran), &y).contains("ascontiguousarray"));
    std::fs::create_dir(root.path().join("empty")).unwrap();
    assert!(said(&root.path().join("empty"), &y).contains("*.npy"));
    // A file that shrinks after it was opened is an error, not the end of the process.
    let stream = RowStream::open(&x, &y).unwrap();
    std::fs::write(&x, &bytes[..bytes.len() - 8]).unwrap();
    assert!(stream.read_rows(0..6, &mut Vec::new()).unwrap_err().to_string().contains("shorter"));
}
