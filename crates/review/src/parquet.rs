//! `corrected.parquet`: the rows of `corrected.csv`, with names as they are (not guarded against spreadsheets).
//!
//! | column | type | content |
//! |---|---|---|
//! | `index` | int64 | the row |
//! | `path` | text, null for rows without one | where it is from, or its id |
//! | `label` | text, null for dropped rows | the label to train on |
//! | `given` | text | the label as it was |
//! | `changed` | boolean | whether they differ |
//! | `review` | text, null where nobody looked | `kept`, `changed`, `dropped`, `unsure` |

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

const SCHEMA: &str = "message corrected {
    required int64 index;
    optional binary path (UTF8);
    optional binary label (UTF8);
    required binary given (UTF8);
    required boolean changed;
    optional binary review (UTF8);
}";
/// Rows that are in memory at once.
const GROUP: usize = 1 << 16;

/// A row to write.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub index: i64,
    pub path: &'a str,
    pub label: Option<&'a str>,
    pub given: &'a str,
    pub changed: bool,
    pub review: &'a str,
}

/// Rows so far.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    index: Vec<i64>,
    /// Path, label, given, review.
    texts: [Vec<Option<ByteArray>>; 4],
    changed: Vec<bool>,
}

impl<W: Write + Send> Table<W> {
    pub fn new(file: W) -> io::Result<Self> {
        let level = ZstdLevel::try_new(1).map_err(system)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(system)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(system)?;
        Ok(Self { writer, index: Vec::new(), texts: Default::default(), changed: Vec::new() })
    }

    pub fn push(&mut self, row: Row) -> io::Result<()> {
        self.index.push(row.index);
        self.changed.push(row.changed);
        let some = |text: &str| (!text.is_empty()).then(|| ByteArray::from(text));
        let given = Some(ByteArray::from(row.given));
        let cells = [some(row.path), row.label.map(ByteArray::from), given, some(row.review)];
        self.texts.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        if self.index.len() >= GROUP { self.write() } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.write()?;
        self.writer.close().map(drop).map_err(system)
    }

    fn write(&mut self) -> io::Result<()> {
        if self.index.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(system)?;
        let [path, label, given, review] = &mut self.texts;
        let present = |column: &mut Vec<Option<ByteArray>>| -> (Vec<i16>, Vec<ByteArray>) {
            let levels = column.iter().map(|cell| i16::from(cell.is_some())).collect();
            (levels, column.drain(..).flatten().collect())
        };
        column::<Int64Type>(&mut group, &self.index, None)?;
        for optional in [path, label] {
            let (levels, values) = present(optional);
            column::<ByteArrayType>(&mut group, &values, Some(&levels))?;
        }
        column::<ByteArrayType>(&mut group, &present(given).1, None)?;
        column::<BoolType>(&mut group, &self.changed, None)?;
        let (levels, values) = present(review);
        column::<ByteArrayType>(&mut group, &values, Some(&levels))?;
        group.close().map_err(system)?;
        self.index.clear();
        self.changed.clear();
        Ok(())
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> io::Result<()> {
    let missing = || io::Error::other("the table has fewer columns than its schema");
    let mut column = group.next_column().map_err(system)?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None).map_err(system)?;
    column.close().map_err(system)
}

/// The system's own error where there is one, so that a full disk is known as such.
fn system(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => inner.downcast().map_or_else(io::Error::other, |e| *e),
        other => io::Error::other(other),
    }
}
