//! Parquet with pictures, as Hugging Face stores image sets: a column `image` of {bytes, path}, of bytes, or of paths; a label;
//! class names in the schema's metadata; several shards (`train-00000-of-00002.parquet`, `test-...`). Or with features, in lists or
//! in columns of numbers ([`super::vectors`]).
//!
//! # Why pictures are spilled
//! A Parquet column is compressed in pages inside row groups, so one picture cannot be had without unpacking its neighbours,
//! while training asks for pictures in random order. A cache of unpacked row groups would unpack a group of r rows up to r times
//! an epoch. Instead, the first access to a row group unpacks it once into a nameless temporary file (folder: option `scratch`)
//! and remembers where each picture lies; afterwards a picture costs one small read. Memory: one page at a time plus 24 bytes a
//! row; disk: the encoded pictures of the row groups touched. Opening reads the label columns only.
//!
//! # Hostile files
//! The files are mapped, so lengths are checked against what is there. More rows than bytes are refused: every picture has at
//! least one. The crate that unpacks may panic on malformed pages; that is caught and becomes an error. A page is bounded by the
//! format to 2 GiB; a gzip page, for which the crate ignores the size declared, by 1032 times its packed bytes.

use super::columns::Layout;
use super::header::TRUTH;
use super::identified::identified;
use super::labels::Column;
use super::metadata::Fence;
use super::spill::{Place, Spill};
use super::{OwnOptions, Part, vectors};
use crate::block::Block;
use crate::decode::{decode, read};
use crate::{Error, Image, ImageStore, Items, Result};
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use ::parquet::record::Field;
use ::parquet::record::reader::RowIter;
use ::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use bytes::Bytes;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Runs what may fail or panic on malformed pages.
pub(super) fn guard<T>(path: &Path, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::format(
            path,
            what.to_string(),
            "damaged: unpacking it failed; fetch or write the file again",
        ))
    })
}

/// One file.
pub(super) struct Shard {
    path: PathBuf,
    reader: SerializedFileReader<Bytes>,
    image: String,
    fence: Option<Fence>,
}

impl Shard {
    fn new(path: &Path, bytes: Bytes) -> Result<Self> {
        let length = bytes.len() as u64;
        let reader = guard(path, "footer", || {
            SerializedFileReader::new(bytes).map_err(|e| {
                Error::format(path, "footer".to_string(), format!("not a Parquet file, or damaged: {e}"))
            })
        })?;
        let rows = reader.metadata().row_groups().iter().try_fold(0u64, |sum, group| {
            u64::try_from(group.num_rows()).ok().and_then(|rows| sum.checked_add(rows))
        });
        if rows.is_none_or(|rows| rows > length) {
            let problem = format!("claims more rows than the file has bytes ({length})");
            return Err(Error::format(path, "footer".to_string(), problem));
        }
        Ok(Self { path: path.to_owned(), reader, image: String::new(), fence: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn schema(&self) -> &SchemaDescriptor {
        self.reader.metadata().file_metadata().schema_descr()
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<&str> {
        self.columns().iter().map(|column| column.name()).collect()
    }

    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    pub fn group(&self, number: usize) -> ::parquet::errors::Result<Box<dyn RowGroupReader + '_>> {
        self.reader.get_row_group(number)
    }

    fn columns(&self) -> &[TypePtr] {
        let schema = self.reader.metadata().file_metadata().schema();
        if schema.is_group() { schema.get_fields() } else { &[] }
    }

    fn column(&self, name: &str) -> Option<&TypePtr> {
        self.columns().iter().find(|column| column.name() == name)
    }

    /// Hugging Face's description of the columns: `info.features` of the schema's metadata; empty without it.
    fn features(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let pairs = self.reader.metadata().file_metadata().key_value_metadata();
        let pair = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == "huggingface"));
        let Some(text) = pair.and_then(|pair| pair.value.as_deref()) else {
            return Ok(serde_json::Map::new());
        };
        let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
            let problem = format!("the description of its columns (`huggingface`) is damaged: {error}");
            Error::format(&self.path, "schema".to_string(), problem)
        })?;
        let features = json.get("info").and_then(|info| info.get("features")).and_then(|f| f.as_object());
        Ok(features.map_or_else(serde_json::Map::new, Clone::clone))
    }

    /// Names of classes that the description gives for a column, if all of them are text.
    fn class_names(&self, column: &str) -> Result<Option<Vec<String>>> {
        let features = self.features()?;
        let names = features.get(column).and_then(|feature| feature.get("names")).and_then(|n| n.as_array());
        Ok(names.and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect()))
    }

    /// A column by the name asked for, by usual names, or by its Hugging Face type if only one has it.
    fn choose(&self, asked: Option<&str>, usual: &[&str], kind: &str, setting: &str) -> Result<String> {
        let columns: Vec<&str> = self.columns().iter().map(|column| column.name()).collect();
        let listing = || columns.iter().take(20).copied().collect::<Vec<_>>().join(", ");
        let wrong = |problem: String| Error::format(&self.path, "schema".to_string(), problem);
        if let Some(name) = asked {
            let there = columns.contains(&name).then(|| name.to_owned());
            return there.ok_or_else(|| wrong(format!("no column `{name}`: there are {}", listing())));
        }
        if let Some(name) = usual.iter().find(|name| columns.contains(name)) {
            return Ok(name.to_string());
        }
        let features = self.features()?;
        let of_kind =
            |name: &&&str| features.get(**name).and_then(|f| f.get("_type")).is_some_and(|t| t == kind);
        let matching: Vec<&&str> = columns.iter().filter(of_kind).collect();
        match matching[..] {
            [name] => Ok(name.to_string()),
            _ => Err(wrong(format!(
                "which column? Looked for {}; the columns are {}: name it with {setting}",
                usual.join(", "),
                listing()
            ))),
        }
    }

    /// Calls `each` with every value of a column in a row group.
    fn scan(
        &self,
        group: usize,
        column: &str,
        mut each: impl FnMut(usize, Field) -> Result<()>,
    ) -> Result<()> {
        let place = format!("row group {group}, column `{column}`");
        let wrong = |problem: String| Error::format(&self.path, place.clone(), problem);
        guard(&self.path, &place, || {
            let unreadable = |e: ::parquet::errors::ParquetError| wrong(format!("cannot be read: {e}"));
            let chosen = self.column(column).ok_or_else(|| wrong("is not in this shard".into()))?;
            let schema = self.reader.metadata().file_metadata().schema();
            let projection = Type::group_type_builder(schema.name())
                .with_fields(vec![chosen.clone()])
                .build()
                .map_err(unreadable)?;
            let rows = self.reader.get_row_group(group).map_err(unreadable)?;
            let expected = rows.metadata().num_rows() as usize;
            let mut count = 0;
            for row in RowIter::from_row_group(Some(projection), rows.as_ref()).map_err(unreadable)? {
                let field =
                    row.map_err(unreadable)?.into_columns().pop().map_or(Field::Null, |(_, field)| field);
                if count == expected {
                    return Err(wrong(format!("has more than the {expected} rows promised")));
                }
                each(count, field)?;
                count += 1;
            }
            if count == expected {
                Ok(())
            } else {
                Err(wrong(format!("has {count} of the {expected} rows promised")))
            }
        })
    }

    /// The column of labels; none where they are elsewhere and no column goes by a usual name.
    fn label(&self, beside: bool, options: &OwnOptions) -> Result<Option<String>> {
        let asked = options.label_column.as_deref();
        match self.choose(asked, &["label", "labels"], "ClassLabel", "label_column") {
            Ok(name) => Ok(Some(name)),
            Err(_) if beside => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn labels(&self, name: &str, into: &mut Column) -> Result<()> {
        for group in 0..self.reader.num_row_groups() {
            self.scan(group, name, |row, field| {
                let word = match field {
                    Field::Str(word) if !word.is_empty() => {
                        into.mark_text();
                        word
                    }
                    Field::Bool(yes) => u8::from(yes).to_string(),
                    Field::Byte(n) => n.to_string(),
                    Field::Short(n) => n.to_string(),
                    Field::Int(n) => n.to_string(),
                    Field::Long(n) => n.to_string(),
                    Field::UByte(n) => n.to_string(),
                    Field::UShort(n) => n.to_string(),
                    Field::UInt(n) => n.to_string(),
                    Field::ULong(n) => n.to_string(),
                    other => {
                        let shown: String = other.to_string().chars().take(40).collect();
                        let place = format!("row group {group}, row {row}, column `{name}`");
                        let problem = format!("`{shown}` is not a label: labels are whole numbers or text");
                        return Err(Error::format(&self.path, place, problem));
                    }
                };
                into.push(&word);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Opens shards as one part. Labels may be missing if they are `beside`.
pub(super) fn open(paths: &[PathBuf], beside: bool, options: &OwnOptions) -> Result<Part> {
    part(map(paths)?, beside, options)
}

/// Opens the items of shards, labelled or not.
pub(super) fn open_items(paths: &[PathBuf], options: &OwnOptions) -> Result<(Items, Vec<String>)> {
    let shards = map(paths)?;
    let labels = shards.iter().map(|shard| shard.label(true, options)).collect::<Result<Vec<_>>>()?;
    items(shards, &labels, options)
}

fn map(paths: &[PathBuf]) -> Result<Vec<Shard>> {
    let mut shards = Vec::new();
    for path in paths {
        let mut shard = Shard::new(path, Bytes::from_owner(Block::map(path)?))?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        shard.fence = Some(Fence::new(folder)?);
        shards.push(shard);
    }
    Ok(shards)
}

/// Reads every label and every picture of a file from its bytes: for tests and fuzzing.
pub fn check_bytes(path: &Path, bytes: Vec<u8>, options: &OwnOptions) -> Result<usize> {
    let part = part(vec![Shard::new(path, bytes.into())?], false, options)?;
    if let Items::Images(store) = &part.items {
        for index in 0..store.len() {
            store.bytes(index)?;
        }
    }
    Ok(part.items.len())
}

fn part(shards: Vec<Shard>, beside: bool, options: &OwnOptions) -> Result<Part> {
    let (mut given, mut truth, mut names) = (Column::new(true), None, None);
    let mut labels = Vec::with_capacity(shards.len());
    for (at, shard) in shards.iter().enumerate() {
        let label = shard.label(beside, options)?;
        if let Some(label) = &label {
            if at == 0 {
                names = shard.class_names(label)?;
            }
            shard.labels(label, &mut given)?;
        }
        labels.push(label);
        let truth_column = match &options.truth_column {
            // Perhaps the labels file has it.
            Some(name) if beside && shard.column(name).is_none() => None,
            Some(name) => Some(shard.choose(Some(name), &[], "", "truth_column")?),
            None => shard.column(TRUTH).map(|column| column.name().to_owned()),
        };
        if let Some(name) = truth_column {
            shard.labels(&name, truth.get_or_insert_with(|| Column::new(true)))?;
        }
    }
    let (items, notes) = items(shards, &labels, options)?;
    Ok(Part { names, notes, ..Part::new(items, given, truth) })
}

/// Pictures, or features where there are none or columns of them are asked for.
fn items(
    shards: Vec<Shard>,
    labels: &[Option<String>],
    options: &OwnOptions,
) -> Result<(Items, Vec<String>)> {
    let asked = options.array.is_some() || !options.feature_columns.is_empty();
    let pictures_in = |shard: &Shard| {
        shard.choose(options.image_column.as_deref(), &["image", "img"], "Image", "image_column")
    };
    let without = match shards.first() {
        Some(_) if asked && options.image_column.is_none() => None,
        Some(first) => match pictures_in(first) {
            Err(error) if options.image_column.is_none() => Some(error),
            _ => return Ok((pictures(shards, options)?, Vec::new())),
        },
        None => None,
    };
    let mut chosen = Vec::with_capacity(shards.len());
    for (shard, label) in shards.iter().zip(labels) {
        let truth = options.truth_column.as_deref().filter(|name| shard.column(name).is_some());
        let layout = Layout { label: label.as_deref(), truth, unlabelled: true, ..options.layout() };
        chosen.extend(vectors::choose(shard, layout, options.array.as_deref())?);
    }
    if chosen.len() < shards.len() {
        // Neither pictures nor numbers.
        let path = shards.first().map_or(Path::new(""), Shard::path);
        return Err(without.unwrap_or_else(|| Error::format(path, None, "it has no column of numbers")));
    }
    let array = vectors::read(&shards, &chosen, options.scratch.as_deref())?.into_features()?;
    let mut ids = Column::new(false);
    for (shard, chosen) in shards.iter().zip(&chosen) {
        if let Some(id) = &chosen.id {
            shard.labels(id, &mut ids)?;
        }
    }
    let ids = (!ids.is_empty()).then(|| ids.words().map(str::to_owned).collect());
    let notes = chosen.into_iter().next().map_or(Vec::new(), |chosen| chosen.notes);
    Ok((identified(array, ids), notes))
}

fn pictures(mut shards: Vec<Shard>, options: &OwnOptions) -> Result<Items> {
    let (mut groups, mut total) = (Vec::new(), 0);
    for (at, shard) in shards.iter_mut().enumerate() {
        shard.image =
            shard.choose(options.image_column.as_deref(), &["image", "img"], "Image", "image_column")?;
        for (number, group) in shard.reader.metadata().row_groups().iter().enumerate() {
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
        return Err(Error::format(path, None, "it has no rows"));
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
                    return Err(Error::format(&shard.path, place, "neither bytes nor path of an image"));
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
