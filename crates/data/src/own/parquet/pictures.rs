//! Pictures in Parquet.
//!
//! # Why pictures are spilled
//! A Parquet column is compressed in pages inside row groups, so one picture cannot be had without unpacking its neighbours,
//! while training asks for pictures in random order. A cache of unpacked row groups would unpack a group of r rows up to r times
//! an epoch. Instead, the first access to a row group unpacks it once into a nameless temporary file (folder: option `scratch`)
//! and remembers where each picture lies; afterwards a picture costs one small read. Memory: one page at a time plus 24 bytes a
//! row; disk: the encoded pictures of the row groups touched. Opening reads the label columns only.

use super::Shard;
use crate::decode::{decode, read};
use crate::own::OwnOptions;
use crate::own::spill::{Place, Spill};
use crate::{Error, Image, ImageStore, Items, Result};
use ::parquet::record::Field;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The pictures of all shards.
pub(super) fn pictures(mut shards: Vec<Shard>, options: &OwnOptions) -> Result<Items> {
    let (mut groups, mut total) = (Vec::new(), 0);
    for (at, shard) in shards.iter_mut().enumerate() {
        shard.image =
            shard.choose(options.image_column.as_deref(), &["image", "img"], "Image", "image_column")?;
        for (number, group) in shard.row_groups().iter().enumerate() {
            let rows = group.num_rows() as usize;
            groups.push(Group {
                shard: at,
                number,
                first: total,
                unpacking: Mutex::new(()),
                places: OnceLock::new(),
            });
            total += rows;
        }
    }
    let spill = Spill::new(options.scratch.as_deref());
    if total == 0 {
        let path = shards.first().map_or(Path::new(""), |shard| &shard.path);
        return Err(Error::format(path, None, "no row in it"));
    }
    Ok(Items::Images(Arc::new(Pictures { shards, groups, total, spill })))
}

/// A row group, unpacked when first asked for.
struct Group {
    shard: usize,
    number: usize,
    first: usize,
    unpacking: Mutex<()>,
    places: OnceLock<Vec<Cell>>,
}

/// A picture's bytes, or the path of its file, in the spill.
#[derive(Clone, Copy)]
struct Cell {
    place: Place,
    is_path: bool,
}

/// Pictures of all shards, in the order of shards and rows.
struct Pictures {
    shards: Vec<Shard>,
    groups: Vec<Group>,
    total: usize,
    spill: Spill,
}

impl Pictures {
    fn find(&self, index: usize) -> (&Group, &Shard, usize) {
        let group = &self.groups[self.groups.partition_point(|group| group.first <= index).saturating_sub(1)];
        (group, &self.shards[group.shard], index.saturating_sub(group.first))
    }

    /// Where the pictures of a group lie, after unpacking it if nobody has.
    fn places<'a>(&self, group: &'a Group, shard: &Shard) -> Result<&'a [Cell]> {
        if let Some(places) = group.places.get() {
            return Ok(places);
        }
        // Others that want this group wait here; other groups are unpacked meanwhile.
        let _unpacking = group.unpacking.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(places) = group.places.get() {
            return Ok(places);
        }
        let mut places = Vec::new();
        shard.scan(group.number, &shard.image, |row, field| {
            let (bytes, path) = match field {
                Field::Group(fields) => {
                    let (mut bytes, mut path) = (None, None);
                    for (name, field) in fields.into_columns() {
                        match (name.as_str(), field) {
                            ("bytes", Field::Bytes(found)) => bytes = Some(found),
                            ("path", Field::Str(found)) => path = Some(found),
                            _ => {}
                        }
                    }
                    (bytes, path)
                }
                Field::Bytes(bytes) => (Some(bytes), None),
                Field::Str(path) => (None, Some(path)),
                _ => (None, None),
            };
            let cell = match (bytes, path) {
                (Some(bytes), _) => Cell { place: self.spill.write(bytes.data())?, is_path: false },
                (None, Some(path)) => Cell { place: self.spill.write(path.as_bytes())?, is_path: true },
                (None, None) => {
                    let place = format!("row group {}, row {row}, column `{}`", group.number, shard.image);
                    return Err(Error::format(&shard.path, place, "neither bytes nor path of a picture"));
                }
            };
            places.push(cell);
            Ok(())
        })?;
        Ok(group.places.get_or_init(|| places))
    }

    /// Bytes of a picture and the file they are from, if it has one of its own.
    fn fetch(&self, index: usize) -> Result<(Vec<u8>, Option<PathBuf>)> {
        let (group, shard, row) = self.find(index);
        let wrong = |problem: String| {
            Error::format(&shard.path, format!("row group {}, row {row}", group.number), problem)
        };
        let cell = *self.places(group, shard)?.get(row).ok_or_else(|| wrong("is not there".into()))?;
        let bytes = self.spill.read(cell.place)?;
        if !cell.is_path {
            return Ok((bytes, None));
        }
        let name = String::from_utf8(bytes).map_err(|_| wrong("the path is not UTF-8".into()))?;
        let fence = shard.fence.as_ref().ok_or_else(|| wrong(format!("`{name}` lies in no folder")))?;
        let path = fence.resolve(&name).map_err(wrong)?;
        let path = path.ok_or_else(|| wrong(format!("file `{}` is missing", name.escape_debug())))?;
        Ok((read(&path)?, Some(path)))
    }
}

fn place_of(shard: &Shard, group: &Group, row: usize) -> String {
    format!("{}, row group {}, row {row}", shard.path.display(), group.number)
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.total
    }
    fn load(&self, index: usize) -> Result<Image> {
        let (bytes, path) = self.fetch(index)?;
        match path {
            Some(path) => decode(&path, &bytes),
            None => {
                let (group, shard, row) = self.find(index);
                decode(Path::new(&place_of(shard, group, row)), &bytes)
            }
        }
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        self.fetch(index).map(|(bytes, _)| Cow::Owned(bytes))
    }
    fn origin(&self, index: usize) -> Option<String> {
        let (group, shard, row) = self.find(index);
        Some(place_of(shard, group, row))
    }
}
