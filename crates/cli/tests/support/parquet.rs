//! Parquet files for tests.

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

/// A column with a value for every row, or with those that are there and, for every row, whether it has one.
pub enum Column {
    Measures(Vec<f64>),
    Texts(Vec<String>),
    Numbers(Vec<i32>, Vec<i16>),
}

/// Writes columns in so many row groups. More than one only if all columns have a value for every row.
pub fn write_parquet(path: &Path, schema: &str, columns: &[Column], groups: usize) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    for group in 0..groups {
        fn part<T>(all: &[T], group: usize, groups: usize) -> &[T] {
            &all[all.len() * group / groups..all.len() * (group + 1) / groups]
        }
        let mut rows = writer.next_row_group().unwrap();
        for column in columns {
            let mut to = rows.next_column().unwrap().unwrap();
            match column {
                Column::Measures(all) => {
                    to.typed::<DoubleType>().write_batch(part(all, group, groups), None, None)
                }
                Column::Texts(all) => {
                    let all: Vec<ByteArray> =
                        part(all, group, groups).iter().map(|text| text.as_str().into()).collect();
                    to.typed::<ByteArrayType>().write_batch(&all, None, None)
                }
                Column::Numbers(all, places) => {
                    let places = part(places, group, groups);
                    to.typed::<Int32Type>().write_batch(part(all, group, groups), Some(places), None)
                }
            }
            .unwrap();
            to.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.close().unwrap();
}
