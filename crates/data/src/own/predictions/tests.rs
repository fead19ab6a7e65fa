//! Predictions in files of every kind, and what is said of those that are none.

use super::*;
use ::parquet::data_type::{DoubleType, FloatType, Int32Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::sync::Arc;
use tempfile::TempDir;

const VALUES: [f32; 6] = [0.25, 0.75, 0.0, 0.5, 0.125, 0.375];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn read_bytes(file: &str, bytes: &[u8], expected: Expected) -> Result<Predictions> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, bytes).unwrap();
    read(&path, expected)
}

fn csv(text: &str, expected: Expected) -> Vec<f32> {
    read_bytes("p.csv", text.as_bytes(), expected).unwrap().values
}

fn told(file: &str, bytes: impl AsRef<[u8]>, expected: Expected) -> String {
    let error = read_bytes(file, bytes.as_ref(), expected).unwrap_err().to_string();
    assert!(error.contains(file), "{error}");
    error
}

/// An `.npy` file.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn arrays_of_all_floats_are_read() {
    let halves: Vec<u8> = VALUES.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect();
    let doubles: Vec<u8> = VALUES.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect();
    for (descr, data) in [("<f2", halves), ("<f4", singles(&VALUES)), ("<f8", doubles)] {
        let classes = names(&["a", "b", "c"]);
        let expected = Expected { rows: Some(2), classes: Some(&classes), ids: None };
        let found = read_bytes("p.npy", &npy(descr, "(2, 3)", &data), expected).unwrap();
        assert_eq!((&found.values[..], found.rows, found.width()), (&VALUES[..], 2, 3), "{descr}");
        assert_eq!(found.classes, None);
    }
}

#[test]
fn tables_are_read_with_and_without_a_header_and_with_any_separator() {
    let any = Expected::default();
    for text in [
        "0.25,0.75,0\n0.5,0.125,0.375\n",
        "a;b;c\n0.25;0.75;0\n0.5;0.125;0.375\n",
        "0,1,2\n.25,.75,0\n.5,.125,.375\n",
    ] {
        assert_eq!(csv(text, any), VALUES, "{text}");
    }
    let found = read_bytes("p.tsv", b"a\tb\n1\t0\n", any).unwrap();
    assert_eq!(found.classes, Some(names(&["a", "b"])));
}

#[test]
fn columns_come_in_the_order_of_the_classes() {
    let classes = names(&["cat", "dog", "eel"]);
    let expected = Expected { classes: Some(&classes), ..Expected::default() };
    assert_eq!(csv("eel,cat,dog\n0,0.25,0.75\n0.375,0.5,0.125\n", expected), VALUES);
    assert_eq!(csv("2,0,1\n0,0.25,0.75\n0.375,0.5,0.125\n", expected), VALUES, "by number");
    assert_eq!(csv("cat,dog,eel\n0.25,0.75,0\n", expected), VALUES[..3]);
    // A class may be called like a column of ids.
    let odd = names(&["row", "id"]);
    let expected = Expected { classes: Some(&odd), ..Expected::default() };
    assert_eq!(csv("index,id,row\n1,0.25,0.75\n0,1,0\n", expected), [0.0, 1.0, 0.75, 0.25]);
}

#[test]
fn rows_are_joined_by_index_or_id() {
    let any = Expected::default();
    let swapped = |key: &str, words: [&str; 2]| {
        format!("{key},a,b,c\n{},0.5,0.125,0.375\n{},0.25,0.75,0\n", words[0], words[1])
    };
    for text in [swapped("index", ["1", "0"]), swapped("id", ["1", "0"]), swapped("", ["1.0", "0.0"])] {
        assert_eq!(csv(&text, any), VALUES, "{text}");
    }
    let ids = names(&["x", "y"]);
    let expected = Expected { ids: Some(&ids), ..any };
    assert_eq!(csv(&swapped("sample_id", ["y", "x"]), expected), VALUES);
    assert!(
        told("p.csv", swapped("id", ["y", "z"]), expected)
            .contains("p.csv, line 3: there is no item with the id `z`")
    );
    assert!(
        told("p.csv", swapped("id", ["y", "y"]), expected).contains("a second row for id `y`, after line 2")
    );
    // Without ids of the data, those that count from elsewhere must at least rise.
    assert_eq!(csv(&swapped("id", ["17", "40"]), any)[..3], VALUES[3..]);
    assert!(told("p.csv", swapped("id", ["40", "17"]), any).contains("line 3: id `17` after `40`"));
    assert!(
        told("p.csv", swapped("index", ["1", "2"]), any).contains("line 3: there is no item with index `2`")
    );
    assert!(told("p.csv", swapped("index", ["0", "0"]), any).contains("second row for item 0"));
    let three = Expected { rows: Some(3), ..any };
    assert!(
        told("p.csv", swapped("index", ["2", "0"]), three)
            .contains("1 of 3 items have no row in it, the first is item 1")
    );
}

#[test]
fn a_line_that_could_be_names_or_a_prediction_is_settled_by_the_number_of_rows() {
    let text = "0,1\n1,0\n0.5,0.5\n";
    let rows = |rows| Expected { rows: Some(rows), ..Expected::default() };
    assert_eq!(csv(text, rows(3)).len(), 6);
    assert_eq!(csv(text, rows(2)), [1.0, 0.0, 0.5, 0.5]);
    assert!(told("p.csv", text, Expected::default()).contains("line 1: do these numbers name the classes"));
}

#[test]
fn what_is_no_distribution_is_refused_with_its_row_and_what_to_do() {
    let any = Expected::default();
    let logits = told("p.csv", "a,b\n0.5,0.5\n3.5,1.5\n", any);
    assert!(
        logits.contains("p.csv, line 3: its 2 numbers sum to 5.0000") && logits.contains("not logits"),
        "{logits}"
    );
    assert!(told("p.csv", "0.5,0.5\n1.5,-0.5\n", any).contains("line 2: -0.5 in column 2"));
    assert!(told("p.csv", "a,b\nNaN,1\n", any).contains("line 2: NaN in column `a`"));
    assert!(told("p.csv", "a,b\n1,0\nx,1\n", any).contains("line 3, column 1: `x` is not a number"));
    assert!(told("p.csv", "a;b\n0,5;0,5\n", any).contains("decimal point"));
    let array = npy("<f4", "(2, 2)", &singles(&[0.5, 0.5, 0.7, 0.7]));
    assert!(told("p.npy", array, any).contains("row 1 (counted from 0): its 2 numbers sum to 1.4000"));
    let array = npy("<f4", "(2, 2)", &singles(&[0.5, 0.5, f32::NAN, 0.7]));
    assert!(told("p.npy", array, any).contains("row 1, column 0"));
    assert_eq!(csv("0.5,0.5004\n", any).len(), 2, "rounding is no error");
}

#[test]
fn sizes_that_do_not_fit_and_other_files_are_refused() {
    let any = Expected::default();
    let classes = names(&["cat", "dog", "eel"]);
    let three = Expected { classes: Some(&classes), ..any };
    assert!(told("p.csv", "0.5,0.5\n", three).contains("2 columns for 3 classes (cat, dog, eel)"));
    assert!(told("p.csv", "0.5,0.5\n", Expected { rows: Some(2), ..any }).contains("1 rows for 2 items"));
    let unknown = told("p.csv", "cat,dgo,eel\n1,0,0\n", three);
    assert!(unknown.contains("line 1: column `dgo` is not a class: did you mean `dog`?"), "{unknown}");
    assert!(told("p.csv", "cat,dog\n1,0\n", three).contains("no column for one class (eel)"));
    assert!(told("p.csv", "cat,dog,cat\n1,0,0\n", three).contains("two columns are called `cat`"));
    assert!(told("p.csv", "", any).contains("empty"));
    assert!(told("p.csv", "a,b\n", any).contains("no rows"));
    assert!(told("p.csv", "index\n1\n", any).contains("no column of probabilities"));
    assert!(told("p.npy", npy("<f4", "(4,)", &[0; 16]), any).contains("two dimensions"));
    assert!(told("p.npy", npy("<f4", "(1, 2, 2)", &[0; 16]), any).contains("two dimensions"));
    assert!(told("p.pkl", "", any).contains(".npy (N x C), .csv, .tsv or .parquet"));
}

/// A file of one row group: a column `index`, then others of doubles, or one of lists of floats.
fn parquet_file(index: &[i32], columns: &[(&str, &[f64])], list: Option<&[f32]>) -> Vec<u8> {
    let doubles: String = columns.iter().map(|(name, _)| format!("required double {name};")).collect();
    let lists = if list.is_some() { "repeated float p;" } else { "" };
    let schema = format!("message m {{ required int32 index; {doubles} {lists} }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(index, None, None).unwrap();
    column.close().unwrap();
    for (_, values) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(values, None, None).unwrap();
        column.close().unwrap();
    }
    if let Some(values) = list {
        let width = values.len() / index.len();
        let again: Vec<i16> = (0..values.len()).map(|at| i16::from(at % width != 0)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<FloatType>().write_batch(values, Some(&vec![1; values.len()]), Some(&again)).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn parquet_is_read_from_columns_in_any_order_and_from_lists() {
    let classes = names(&["cat", "dog", "eel"]);
    let expected = Expected { rows: Some(2), classes: Some(&classes), ids: None };
    let columns: [(&str, &[f64]); 3] =
        [("dog", &[0.125, 0.75]), ("eel", &[0.375, 0.0]), ("cat", &[0.5, 0.25])];
    let found = read_bytes("p.parquet", &parquet_file(&[1, 0], &columns, None), expected).unwrap();
    assert_eq!((&found.values[..], found.classes), (&VALUES[..], Some(classes.clone())));
    let moved = [&VALUES[3..], &VALUES[..3]].concat();
    let found = read_bytes("p.parquet", &parquet_file(&[1, 0], &[], Some(&moved)), expected).unwrap();
    assert_eq!((&found.values[..], found.classes), (&VALUES[..], None));
    let beside: [(&str, &[f64]); 1] = [("loss", &[2.5, 0.1])];
    let found = read_bytes("p.parquet", &parquet_file(&[1, 0], &beside, Some(&moved)), expected).unwrap();
    assert_eq!(found.values, VALUES, "a list is what is meant");
    let wrong: [(&str, &[f64]); 2] = [("cat", &[0.5, 0.25]), ("dog", &[0.5, 0.25])];
    assert!(
        told("p.parquet", parquet_file(&[0, 1], &wrong, None), expected)
            .contains("no column for one class (eel)")
    );
    let sums = told("p.parquet", parquet_file(&[0, 1], &wrong, None), Expected::default());
    assert!(sums.contains("row 1 (counted from 0): its 2 numbers sum to 0.5"), "{sums}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "(index|id|a|b|,|;|\n|0|1|0.5|\\.|-|\"){0,30}", rows in prop::option::of(0usize..4)) {
        let classes = names(&["a", "b"]);
        for classes in [None, Some(&classes[..])] {
            let expected = Expected { rows, classes, ids: None };
            for file in ["p.csv", "p.npy", "p.parquet"] {
                let _ = read_bytes(file, &bytes, expected);
            }
            let _ = read_bytes("p.csv", text.as_bytes(), expected);
        }
    }
}
