//! One Parquet file: its columns, by name or by what Hugging Face says of them, and their values.

use super::pages;
use crate::own::OwnOptions;
use crate::own::labels::Column;
use crate::own::metadata::Fence;
use crate::positioned::{Chunks, PositionedFile};
use crate::{Error, Result};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{FileReader, Length, RowGroupReader, SerializedFileReader};
use ::parquet::record::Field;
use ::parquet::record::reader::RowIter;
use ::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use negscale_records::did_you_mean;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Runs what may fail or panic on malformed pages.
pub(in crate::own) fn guard<T>(path: &Path, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::format(
            path,
            what.to_string(),
            "damaged: unpacking it failed; fetch or write the file again",
        ))
    })
}

/// One file.
pub(in crate::own) struct Shard {
    pub(super) path: PathBuf,
    reader: SerializedFileReader<Chunks>,
    chunks: Chunks,
    /// Row groups and leaves of which pages were looked at.
    looked_at: Mutex<BTreeSet<(usize, usize)>>,
    /// The column of pictures.
    pub(super) image: String,
    /// Where files that it names may lie.
    pub(super) fence: Option<Fence>,
}

impl Shard {
    /// A file of which only what is asked for is read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::new(path, Chunks::File(PositionedFile::open(path)?))
    }

    pub(super) fn new(path: &Path, bytes: Chunks) -> Result<Self> {
        let (length, chunks) = (bytes.len(), bytes.clone());
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
        let looked_at = Mutex::default();
        Ok(Self { path: path.to_owned(), reader, chunks, looked_at, image: String::new(), fence: None })
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

    /// What the footer says of each row group.
    pub fn row_groups(&self) -> &[RowGroupMetaData] {
        self.reader.metadata().row_groups()
    }

    /// Refuses a column of a row group whose pages would unpack to more than they say.
    pub fn check_pages(&self, group: usize, leaf: usize) -> Result<()> {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if !looked_at.contains(&(group, leaf)) {
            let column = self.reader.metadata().row_group(group).column(leaf);
            pages::check(&self.chunks, column).map_err(|problem| {
                let place = format!("row group {group}, column `{}`", column.column_path());
                Error::format(&self.path, place, format!("damaged: {problem}"))
            })?;
            looked_at.insert((group, leaf));
        }
        Ok(())
    }

    pub fn group(&self, number: usize) -> ::parquet::errors::Result<Box<dyn RowGroupReader + '_>> {
        self.reader.get_row_group(number)
    }

    fn columns(&self) -> &[TypePtr] {
        let schema = self.reader.metadata().file_metadata().schema();
        if schema.is_group() { schema.get_fields() } else { &[] }
    }

    pub fn column(&self, name: &str) -> Option<&TypePtr> {
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
    pub(super) fn class_names(&self, column: &str) -> Result<Option<Vec<String>>> {
        let features = self.features()?;
        let names = features.get(column).and_then(|feature| feature.get("names")).and_then(|n| n.as_array());
        Ok(names.and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect()))
    }

    /// A column by the name asked for, by usual names, or by its Hugging Face type if only one has it.
    pub(super) fn choose(
        &self,
        asked: Option<&str>,
        usual: &[&str],
        kind: &str,
        setting: &str,
    ) -> Result<String> {
        let columns: Vec<&str> = self.columns().iter().map(|column| column.name()).collect();
        let listing = || columns.iter().take(20).copied().collect::<Vec<_>>().join(", ");
        let wrong = |problem: String| Error::format(&self.path, "schema".to_string(), problem);
        if let Some(name) = asked {
            let there = columns.contains(&name).then(|| name.to_owned());
            let near = did_you_mean(name, columns.iter().copied());
            return there.ok_or_else(|| wrong(format!("no column `{name}`: {near}there are {}", listing())));
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
                "which column? Looked for {}; there are {}: name it ({setting})",
                usual.join(", "),
                listing()
            ))),
        }
    }

    /// Calls `each` with every value of a column in a row group.
    pub(super) fn scan(
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
            let leaves = self.schema().columns();
            let is_chosen =
                |leaf: &usize| leaves[*leaf].path().parts().first().is_some_and(|name| name == column);
            (0..leaves.len()).filter(is_chosen).try_for_each(|leaf| self.check_pages(group, leaf))?;
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
    pub(super) fn label(&self, beside: bool, options: &OwnOptions) -> Result<Option<String>> {
        let asked = options.label_columns.first().or(options.label_column.as_ref()).map(String::as_str);
        match self.choose(asked, &["label", "labels"], "ClassLabel", "label_column") {
            Ok(name) => Ok(Some(name)),
            Err(_) if beside => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn labels(&self, name: &str, into: &mut Column) -> Result<()> {
        self.words(name, |word, is_text| {
            if is_text {
                into.mark_text();
            }
            into.push(word);
        })
    }

    /// The same for a column whose cells may be empty.
    pub fn labels_or_blanks(&self, name: &str, into: &mut Column) -> Result<()> {
        self.cells(name, true, |word, is_text| {
            if is_text && !word.is_empty() {
                into.mark_text();
            }
            into.push(word);
        })
    }

    /// Calls `each` with every whole number or text of a column, and whether it is text.
    pub fn words(&self, name: &str, each: impl FnMut(&str, bool)) -> Result<()> {
        self.cells(name, false, each)
    }

    fn cells(&self, name: &str, may_be_blank: bool, mut each: impl FnMut(&str, bool)) -> Result<()> {
        for group in 0..self.reader.num_row_groups() {
            self.scan(group, name, |row, field| {
                let is_blank =
                    matches!(&field, Field::Null) || matches!(&field, Field::Str(word) if word.is_empty());
                if is_blank && may_be_blank {
                    each("", true);
                    return Ok(());
                }
                let word = match field {
                    Field::Str(word) if !word.is_empty() => {
                        each(&word, true);
                        return Ok(());
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
                        let problem = format!("`{shown}` is no label: whole numbers and text are");
                        return Err(Error::format(&self.path, place, problem));
                    }
                };
                each(&word, false);
                Ok(())
            })?;
        }
        Ok(())
    }
}
