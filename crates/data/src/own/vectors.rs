//! Features in Parquet: a column of lists of numbers (embeddings), or columns of numbers (a table).
//!
//! Row groups are unpacked once, some rows at a time, into a spool of 32-bit numbers, as those of `.csv` are.

use super::columns::{self, Counting, Layout, NO_ID};
use super::parquet::{Shard, guard};
use crate::array::{Array, Element, Kind};
use crate::block::Spool;
use crate::{Error, Result};
use ::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::Result as Unpacked;
use ::parquet::schema::types::ColumnDescriptor;
use half::f16;
use std::path::Path;

/// Names by which columns of features go.
const USUAL: [&str; 6] = ["embedding", "embeddings", "features", "feature", "x", "vector"];
/// Numbers that are unpacked at a time.
const AT_ONCE: usize = 1 << 16;

/// Columns of features, by their leaves in the schema.
pub(super) struct Chosen {
    leaves: Vec<usize>,
    is_list: bool,
    /// Column of ids.
    pub id: Option<String>,
    pub notes: Vec<String>,
    may_count: bool,
}

/// Whether the numbers of a leaf are features: no dates, decimals or text.
fn is_numeric(leaf: &ColumnDescriptor) -> bool {
    let plain = match leaf.logical_type_ref() {
        None => !matches!(
            leaf.converted_type(),
            ConvertedType::DECIMAL
                | ConvertedType::DATE
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS
        ),
        Some(LogicalType::Integer(_) | LogicalType::Float16) => true,
        Some(_) => false,
    };
    let is_half = matches!(leaf.logical_type_ref(), Some(LogicalType::Float16));
    plain
        && match leaf.physical_type() {
            Physical::FLOAT | Physical::DOUBLE | Physical::INT32 | Physical::INT64 | Physical::BOOLEAN => {
                true
            }
            Physical::FIXED_LEN_BYTE_ARRAY => is_half && leaf.type_length() == 2,
            _ => false,
        }
}

fn is_unsigned(leaf: &ColumnDescriptor) -> bool {
    match leaf.logical_type_ref() {
        Some(LogicalType::Integer(kind)) => !kind.is_signed,
        _ => matches!(
            leaf.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ),
    }
}

/// Which columns of a shard are features, if any are.
pub(super) fn choose(shard: &Shard, layout: Layout, array: Option<&str>) -> Result<Option<Chosen>> {
    let wrong = |problem: String| Error::format(shard.path(), "schema".to_string(), problem);
    let leaves = shard.schema().columns();
    let names: Vec<&str> = shard.names();
    // The leaf of a column that has only one, with so many levels of lists around it.
    let leaf = |name: &str, lists: i16| {
        let mut inside = leaves
            .iter()
            .enumerate()
            .filter(|(_, leaf)| leaf.path().parts().first().is_some_and(|p| p == name));
        let (at, leaf) = inside.next()?;
        let is_it = inside.next().is_none() && leaf.max_rep_level() == lists && is_numeric(leaf);
        (is_it && (lists > 0 || leaf.path().parts().len() == 1)).then_some(at)
    };
    let is_ours = |name: &&str| {
        ![layout.label, layout.truth].contains(&Some(*name)) && !layout.ignored.iter().any(|i| i == name)
    };
    let lists: Vec<&str> =
        names.iter().copied().filter(|name| is_ours(name) && leaf(name, 1).is_some()).collect();
    let list = match (array, &lists[..]) {
        (Some(name), _) => {
            if !names.contains(&name) {
                return Err(wrong(format!("no column `{name}`: there are {}", names.join(", "))));
            }
            if leaf(name, 1).is_none() {
                return Err(wrong(format!("column `{name}` does not hold lists of numbers")));
            }
            Some(name)
        }
        (None, _) if !layout.features.is_empty() => None,
        (None, []) => None,
        (None, [name]) => Some(*name),
        (None, several) => match USUAL.iter().find(|usual| several.contains(usual)) {
            Some(name) => Some(*name),
            None => {
                let problem = format!(
                    "which column holds the features? {} could: name it with --array",
                    several.join(", ")
                );
                return Err(wrong(problem));
            }
        },
    };
    let id_of = |name: &str| {
        names
            .contains(&name)
            .then(|| name.to_owned())
            .ok_or_else(|| wrong(format!("no column `{name}`: there are {}", names.join(", "))))
    };
    if let Some(name) = list {
        let id = layout.id.filter(|&id| id != NO_ID).map(id_of).transpose()?;
        let at = leaf(name, 1).into_iter().collect();
        return Ok(Some(Chosen { leaves: at, is_list: true, id, notes: Vec::new(), may_count: true }));
    }
    let is_table = names.iter().any(|name| is_ours(name) && leaf(name, 0).is_some());
    if !is_table {
        return Ok(None);
    }
    let roles = layout.assign(&names).map_err(wrong)?;
    let mut chosen = Vec::with_capacity(roles.features.len());
    for &at in &roles.features {
        chosen.push(leaf(names[at], 0).ok_or_else(|| {
            wrong(format!("column `{}` does not hold numbers: leave it out with --ignore-columns", names[at]))
        })?);
    }
    let note = |&at: &usize| format!("{}: {}", shard.path().display(), columns::note_of_id(names[at]));
    Ok(Some(Chosen {
        leaves: chosen,
        is_list: false,
        id: roles.id.map(|at| names[at].to_owned()),
        notes: roles.guessed.iter().map(note).collect(),
        may_count: layout.id == Some(NO_ID) || !layout.features.is_empty(),
    }))
}

/// Some rows of a column.
#[derive(Default)]
struct Batch {
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    numbers: Vec<f32>,
}

type Numbers = Box<dyn FnMut(usize, &mut Batch) -> Unpacked<usize>>;

fn numbers<T: DataType>(mut reader: ColumnReaderImpl<T>, number: impl Fn(&T::T) -> f32 + 'static) -> Numbers
where
    ColumnReaderImpl<T>: 'static,
{
    let mut values = Vec::new();
    Box::new(move |rows, batch| {
        values.clear();
        batch.definitions.clear();
        batch.repetitions.clear();
        let (definitions, repetitions) = (&mut batch.definitions, &mut batch.repetitions);
        let (records, _, _) = reader.read_records(rows, Some(definitions), Some(repetitions), &mut values)?;
        batch.numbers.clear();
        batch.numbers.extend(values.iter().map(&number));
        Ok(records)
    })
}

fn open_leaf(reader: ColumnReader, leaf: &ColumnDescriptor) -> Option<Numbers> {
    let unsigned = is_unsigned(leaf);
    Some(match reader {
        ColumnReader::FloatColumnReader(reader) => numbers(reader, |&n| n),
        ColumnReader::DoubleColumnReader(reader) => numbers(reader, |&n| n as f32),
        ColumnReader::Int32ColumnReader(reader) if unsigned => numbers(reader, |&n| n as u32 as f32),
        ColumnReader::Int32ColumnReader(reader) => numbers(reader, |&n| n as f32),
        ColumnReader::Int64ColumnReader(reader) if unsigned => numbers(reader, |&n| n as u64 as f32),
        ColumnReader::Int64ColumnReader(reader) => numbers(reader, |&n| n as f32),
        ColumnReader::BoolColumnReader(reader) => numbers(reader, |&n| f32::from(u8::from(n))),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => numbers(reader, |bytes| match bytes.data() {
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

/// Reads the features of all shards.
pub(super) fn read(shards: &[Shard], chosen: &[Chosen], scratch: Option<&Path>) -> Result<Array> {
    let mut spool = Spool::new(scratch);
    let (mut total, mut width, mut counting) = (0, None, None);
    for (shard, chosen) in shards.iter().zip(chosen) {
        for group in 0..shard.groups() {
            guard(shard.path(), &format!("row group {group}"), || {
                read_group(shard, group, chosen, &mut spool, (&mut total, &mut width, &mut counting))
            })?;
        }
    }
    let path = shards.first().map_or(Path::new(""), |shard| shard.path());
    let (Some(width), Some(first)) = (width.filter(|_| total > 0), chosen.first()) else {
        return Err(Error::format(path, None, "it has no rows"));
    };
    let counted = counting.as_ref().and_then(Counting::found).filter(|_| !first.may_count);
    if let (Some(at), Some(shard)) = (counted, shards.first()) {
        let name = shard.schema().column(first.leaves[at]).path().string();
        return Err(Error::format(path, None, columns::refuse_counting(&format!("`{name}`"))));
    }
    let element = Element { kind: Kind::Float, size: 4, big_endian: false };
    Array::new(path, None, spool.finish()?, element, vec![total, width], false)
}

fn read_group(
    shard: &Shard,
    group: usize,
    chosen: &Chosen,
    spool: &mut Spool,
    (total, width, counting): (&mut usize, &mut Option<usize>, &mut Option<Counting>),
) -> Result<()> {
    let place = format!("row group {group}");
    let wrong = |problem: String| Error::format(shard.path(), place.clone(), problem);
    let unreadable = |error: ::parquet::errors::ParquetError| wrong(format!("cannot be read: {error}"));
    let rows = shard.group(group).map_err(unreadable)?;
    let expected = usize::try_from(rows.metadata().num_rows())
        .map_err(|_| wrong("claims a negative number of rows".into()))?;
    let mut columns = Vec::with_capacity(chosen.leaves.len());
    for &at in &chosen.leaves {
        let (leaf, reader) = (shard.schema().column(at), rows.get_column_reader(at).map_err(unreadable)?);
        let numbers =
            open_leaf(reader, &leaf).ok_or_else(|| wrong("a column that holds no numbers".into()))?;
        columns.push((leaf, numbers, Batch::default()));
    }
    let (mut done, mut bytes, mut row) = (0, Vec::new(), Vec::new());
    while done < expected {
        // How long lists are, the first row says.
        let dims = match (chosen.is_list, *width) {
            (true, None) => None,
            (true, Some(width)) => Some(width),
            (false, _) => Some(1),
        };
        let ask = dims.map_or(1, |dim| (AT_ONCE / (dim * columns.len())).max(1)).min(expected - done);
        let mut dim = dims.unwrap_or(0);
        for (leaf, numbers, batch) in &mut columns {
            let got = numbers(ask, batch).map_err(unreadable)?;
            if got != ask {
                return Err(wrong(format!("has {} of the {expected} rows promised", done + got)));
            }
            dim = dim.max(dims.unwrap_or(batch.numbers.len()).max(1));
            if let Some((row, problem)) = fault(batch, leaf, ask, dim) {
                let place =
                    format!("row group {group}, row {}, column `{}`", done + row, leaf.path().parts()[0]);
                return Err(Error::format(shard.path(), place, problem));
            }
        }
        width.get_or_insert(dim * columns.len());
        for at in 0..ask {
            row.clear();
            columns
                .iter()
                .for_each(|(_, _, batch)| row.extend_from_slice(&batch.numbers[at * dim..(at + 1) * dim]));
            if !chosen.is_list {
                counting.get_or_insert_with(|| Counting::new(row.len())).add(&row);
            }
            bytes.clear();
            bytes.extend(row.iter().flat_map(|number: &f32| number.to_le_bytes()));
            spool.write(&bytes)?;
        }
        done += ask;
    }
    *total += done;
    Ok(())
}
