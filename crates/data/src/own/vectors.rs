//! Features in Parquet: a column of lists of numbers (embeddings), or columns of numbers (a table).
//!
//! Row groups are unpacked once, some rows at a time, into a spool of 32-bit numbers, as those of `.csv` are.

use super::columns::{self, Counting, Layout, NO_ID};
use super::groups::GroupReader;
use super::parquet::{Shard, guard};
use crate::array::{Array, Element, Kind};
use crate::block::Spool;
use crate::{Error, Result};
use ::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;
use std::path::Path;

/// Names by which columns of features go.
const USUAL: [&str; 6] = ["embedding", "embeddings", "features", "feature", "x", "vector"];

/// Columns of features, by their leaves in the schema.
pub(super) struct Chosen {
    pub leaves: Vec<usize>,
    pub is_list: bool,
    /// Column of ids.
    pub id: Option<String>,
    pub notes: Vec<String>,
    pub may_count: bool,
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
        let is_other = |names: &[String]| names.iter().any(|other| other == name);
        ![layout.label, layout.truth, layout.source].contains(&Some(*name))
            && !is_other(layout.ignored)
            && !is_other(layout.annotators)
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
    let mut reader = GroupReader::new(shard, group, chosen)?;
    let (rows, mut bytes) = (reader.left(), Vec::new());
    reader.read(shard, rows, width, |row| {
        if !chosen.is_list {
            counting.get_or_insert_with(|| Counting::new(row.len())).add(row);
        }
        bytes.clear();
        bytes.extend(row.iter().flat_map(|number: &f32| number.to_le_bytes()));
        spool.write(&bytes)
    })?;
    *total += rows;
    Ok(())
}
