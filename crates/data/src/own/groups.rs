//! The rows of one row group as numbers, from the first to the last; rows can be passed over.

use super::parquet::Shard;
use super::vectors::Chosen;
use crate::{Error, Result};
use ::parquet::basic::{ConvertedType, LogicalType};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::{ParquetError, Result as Unpacked};
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use half::f16;

/// Numbers that are unpacked at a time.
const AT_ONCE: usize = 1 << 16;

fn is_unsigned(leaf: &ColumnDescriptor) -> bool {
    match leaf.logical_type_ref() {
        Some(LogicalType::Integer(kind)) => !kind.is_signed,
        _ => matches!(
            leaf.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ),
    }
}

/// Some rows of a column.
#[derive(Default)]
struct Batch {
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    numbers: Vec<f32>,
}

/// A column as it is unpacked; both say how many rows there were.
trait Numbers: Send {
    fn read(&mut self, rows: usize, batch: &mut Batch) -> Unpacked<usize>;
    fn pass(&mut self, rows: usize) -> Unpacked<usize>;
}

struct Typed<T: DataType, F> {
    reader: ColumnReaderImpl<T>,
    number: F,
    values: Vec<T::T>,
}

impl<T: DataType, F: Fn(&T::T) -> f32 + Send> Numbers for Typed<T, F>
where
    ColumnReaderImpl<T>: Send,
{
    fn read(&mut self, rows: usize, batch: &mut Batch) -> Unpacked<usize> {
        self.values.clear();
        batch.definitions.clear();
        batch.repetitions.clear();
        let (definitions, repetitions) = (&mut batch.definitions, &mut batch.repetitions);
        let (records, _, _) =
            self.reader.read_records(rows, Some(definitions), Some(repetitions), &mut self.values)?;
        batch.numbers.clear();
        batch.numbers.extend(self.values.iter().map(&self.number));
        Ok(records)
    }

    fn pass(&mut self, rows: usize) -> Unpacked<usize> {
        self.reader.skip_records(rows)
    }
}

fn typed<T: DataType>(
    reader: ColumnReaderImpl<T>,
    number: impl Fn(&T::T) -> f32 + Send + 'static,
) -> Box<dyn Numbers>
where
    ColumnReaderImpl<T>: Send + 'static,
{
    Box::new(Typed { reader, number, values: Vec::new() })
}

fn open_leaf(reader: ColumnReader, leaf: &ColumnDescriptor) -> Option<Box<dyn Numbers>> {
    let unsigned = is_unsigned(leaf);
    Some(match reader {
        ColumnReader::FloatColumnReader(reader) => typed(reader, |&n| n),
        ColumnReader::DoubleColumnReader(reader) => typed(reader, |&n| n as f32),
        ColumnReader::Int32ColumnReader(reader) if unsigned => typed(reader, |&n| n as u32 as f32),
        ColumnReader::Int32ColumnReader(reader) => typed(reader, |&n| n as f32),
        ColumnReader::Int64ColumnReader(reader) if unsigned => typed(reader, |&n| n as u64 as f32),
        ColumnReader::Int64ColumnReader(reader) => typed(reader, |&n| n as f32),
        ColumnReader::BoolColumnReader(reader) => typed(reader, |&n| f32::from(u8::from(n))),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => typed(reader, |bytes| match bytes.data() {
            [low, high] => f16::from_le_bytes([*low, *high]).to_f32(),
            _ => f32::NAN,
        }),
        _ => return None,
    })
}

/// Where a batch is not so many finite numbers in each of its rows: the row, and what is wrong.
fn fault(batch: &Batch, leaf: &ColumnDescriptor, rows: usize, dim: usize) -> Option<(usize, String)> {
    let (definitions, repetitions) = (&batch.definitions, &batch.repetitions);
    let row_of = |at: usize| match leaf.max_rep_level() {
        0 => at,
        _ => repetitions[..=at].iter().filter(|&&level| level == 0).count().saturating_sub(1),
    };
    if let Some(at) = definitions.iter().position(|&level| level < leaf.max_def_level()) {
        return Some((row_of(at), "a number is missing: fill it or remove the row".into()));
    }
    if leaf.max_rep_level() > 0 {
        let odd = |(at, &level): (usize, &i16)| (level == 0) != (at % dim == 0);
        let odd = repetitions
            .iter()
            .enumerate()
            .position(odd)
            .or((repetitions.len() != rows * dim).then_some(repetitions.len().saturating_sub(1)));
        if let Some(at) = odd {
            let row = row_of(at).saturating_sub(usize::from(repetitions[at] == 0 && at % dim != 0));
            return Some((
                row,
                format!("not {dim} numbers, as in the first row: all rows must be equally long"),
            ));
        }
    }
    let at = batch.numbers.iter().position(|number| !number.is_finite())?;
    Some((at / dim, format!("{} as a 32-bit number: replace it or remove the row", batch.numbers[at])))
}

/// Where reading of a row group stands.
pub(super) struct GroupReader {
    columns: Vec<(ColumnDescPtr, Box<dyn Numbers>, Batch)>,
    is_list: bool,
    group: usize,
    /// Rows that were read or passed over.
    done: usize,
    expected: usize,
}

impl GroupReader {
    /// Before the first row of a group.
    pub fn new(shard: &Shard, group: usize, chosen: &Chosen) -> Result<Self> {
        let wrong = |problem: String| Error::format(shard.path(), format!("row group {group}"), problem);
        let unreadable = |error: ParquetError| wrong(format!("cannot be read: {error}"));
        let rows = shard.group(group).map_err(unreadable)?;
        let expected = usize::try_from(rows.metadata().num_rows())
            .map_err(|_| wrong("claims a negative number of rows".into()))?;
        let mut columns = Vec::with_capacity(chosen.leaves.len());
        for &at in &chosen.leaves {
            shard.check_pages(group, at)?;
            let (leaf, reader) = (shard.schema().column(at), rows.get_column_reader(at).map_err(unreadable)?);
            let numbers =
                open_leaf(reader, &leaf).ok_or_else(|| wrong("a column that holds no numbers".into()))?;
            columns.push((leaf, numbers, Batch::default()));
        }
        Ok(Self { columns, is_list: chosen.is_list, group, done: 0, expected })
    }

    /// Number of the next row in the group.
    pub fn position(&self) -> usize {
        self.done
    }

    /// Rows that are left.
    pub fn left(&self) -> usize {
        self.expected - self.done
    }

    fn cut_off(&self, shard: &Shard, got: usize) -> Error {
        let problem = format!("has {} of the {} rows promised", self.done + got, self.expected);
        Error::format(shard.path(), format!("row group {}", self.group), problem)
    }

    fn unreadable(&self, shard: &Shard, error: ParquetError) -> Error {
        Error::format(shard.path(), format!("row group {}", self.group), format!("cannot be read: {error}"))
    }

    /// Passes over rows, at most those that are left.
    pub fn pass(&mut self, shard: &Shard, rows: usize) -> Result<()> {
        let rows = rows.min(self.left());
        for at in 0..self.columns.len() {
            let got = self.columns[at].1.pass(rows).map_err(|error| self.unreadable(shard, error))?;
            if got != rows {
                return Err(self.cut_off(shard, got));
            }
        }
        self.done += rows;
        Ok(())
    }

    /// Calls `each` with the next rows, at most those that are left. How long rows are, the first one says where `width` does not.
    pub fn read(
        &mut self,
        shard: &Shard,
        rows: usize,
        width: &mut Option<usize>,
        mut each: impl FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        let end = self.done + rows.min(self.left());
        let mut row = Vec::new();
        while self.done < end {
            let dims = if self.is_list { *width } else { Some(1) };
            let count = self.columns.len();
            let ask = dims.map_or(1, |dim| (AT_ONCE / (dim * count)).max(1)).min(end - self.done);
            let mut dim = dims.unwrap_or(0);
            for at in 0..count {
                let (_, numbers, batch) = &mut self.columns[at];
                let got = numbers.read(ask, batch).map_err(|error| self.unreadable(shard, error))?;
                if got != ask {
                    return Err(self.cut_off(shard, got));
                }
                let (leaf, _, batch) = &self.columns[at];
                dim = dim.max(dims.unwrap_or(batch.numbers.len()).max(1));
                if let Some((row, problem)) = fault(batch, leaf, ask, dim) {
                    let name = &leaf.path().parts()[0];
                    let place = format!("row group {}, row {}, column `{name}`", self.group, self.done + row);
                    return Err(Error::format(shard.path(), place, problem));
                }
            }
            width.get_or_insert(dim * count);
            for at in 0..ask {
                if let [(_, _, batch)] = &self.columns[..] {
                    each(&batch.numbers[at * dim..(at + 1) * dim])?;
                    continue;
                }
                row.clear();
                self.columns.iter().for_each(|(_, _, batch)| {
                    row.extend_from_slice(&batch.numbers[at * dim..(at + 1) * dim])
                });
                each(&row)?;
            }
            self.done += ask;
        }
        Ok(())
    }
}
