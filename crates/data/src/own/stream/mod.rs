//! Rows of numbers that are read when they are asked for: data larger than memory.
//!
//! | what | how it is read |
//! |---|---|
//! | `.npy`, or a folder of them in the order of their names | by place, some rows at a time |
//! | `.parquet`, or a folder of them | by row groups, from wherever the last reader stopped |
//!
//! Which columns are features, and what labels mean, is decided as [`open`](super::open) decides it; only the training split of a folder is
//! read, and options about test data mean nothing here.
//!
//! # Memory
//! A label is 4 bytes a row, an id its text and 8 bytes; both are in memory. Rows are not: a reader has its own buffer of at most
//! [`CHUNK`] bytes (or one row), and for Parquet the pages that it stands in, one for each column; two such readers are kept.
//! No file is mapped while rows are read, so what was read does not count as memory of the process.

mod arrays;
mod ids;
mod table;

use super::{OwnOptions, check_side, extension, label_file, name_of, shards, vocabulary_of};
use crate::own::labels::Column;
use crate::own::side::SideColumns;
use crate::{Error, Result, Sources};
use arrays::Arrays;
use ids::Ids;
use std::ops::Range;
use std::path::{Path, PathBuf};
use table::Table;

/// The most bytes that a reader asks the system for at once, unless a row is longer.
pub const CHUNK: usize = 1 << 20;

/// Where rows are.
enum Store {
    Arrays(Arrays),
    Table(Box<Table>),
}

impl Store {
    fn rows(&self) -> u64 {
        match self {
            Self::Arrays(store) => store.rows(),
            Self::Table(store) => store.rows(),
        }
    }

    fn dim(&self) -> usize {
        match self {
            Self::Arrays(store) => store.dim(),
            Self::Table(store) => store.dim(),
        }
    }
}

/// Rows with labels; the rows stay where they are until they are asked for, from any thread.
pub struct RowStream {
    name: String,
    path: PathBuf,
    store: Store,
    classes: Vec<String>,
    given: Vec<u32>,
    truth: Option<Vec<u32>>,
    sources: Option<Sources>,
    ids: Option<Ids>,
    notes: Vec<String>,
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (rows, dim, classes) = (self.rows(), self.dim(), self.classes.len());
        write!(f, "RowStream `{}`, {rows} rows of {dim} numbers, {classes} classes", self.name)
    }
}

/// Labels as they stand in files.
struct Found {
    store: Store,
    ids: Option<Ids>,
    given: Option<Column>,
    truth: Option<Column>,
    side: SideColumns,
    names: Option<Vec<String>>,
    notes: Vec<String>,
}

impl RowStream {
    /// Opens data and reads its labels, but not its rows.
    ///
    /// # Errors
    /// If the form is none of those above, the labels do not fit the rows, or a file is damaged.
    pub fn open(path: &Path, options: &OwnOptions) -> Result<Self> {
        let name = name_of(path, options);
        if let Some(first) = options.label_columns.first() {
            let problem = format!(
                "column `{first}`: several annotators are not read row by row; name one --label-column"
            );
            return Err(Error::format(path, None, problem));
        }
        let Found { store, ids, mut given, mut truth, mut side, names, mut notes } = find(path, options)?;
        let rows = usize::try_from(store.rows())
            .map_err(|_| Error::format(path, None, "more rows than this machine can count"))?;
        if let Some(file) = &options.labels {
            let has_columns = matches!(store, Store::Table(_));
            let in_data = |name: &str| {
                Ok(has_columns && (side.source.is_some() || options.source_column.as_deref() != Some(name)))
            };
            let labels = label_file::open(file, options.asked(file, in_data)?)?;
            let joined = match &ids {
                Some(ids) => labels.join(&ids.items())?,
                None => labels.join_rows(rows)?,
            };
            notes.extend(joined.notes);
            (given, truth) = (Some(joined.given), joined.truth.or(truth));
            side = joined.side.or(side);
            if side.review.as_ref().is_some_and(|review| review.has_dropped()) {
                let problem = "a review dropped rows, and data read row by row cannot leave them out: take them out of data and labels first";
                return Err(Error::format(file, None, problem));
            }
        }
        let Some(given) = given else {
            let problem = "an .npy file has no labels: give a labels file (--labels)";
            return Err(Error::format(path, None, problem));
        };
        check_side(path, &side, options)?;
        let vocabulary = vocabulary_of(&name, &given, (truth.as_ref(), &[]), names.as_deref(), options)?;
        let wrong = |problem: String| Error::Labels { dataset: name.clone(), problem };
        let classes_of = |column: Column| vocabulary.apply(&column).map_err(wrong);
        let given = classes_of(given)?;
        let truth = truth.map(classes_of).transpose()?;
        let classes = vocabulary.into_names();
        let sources = side.sources()?;
        Ok(Self { name, path: path.to_owned(), store, classes, given, truth, sources, ids, notes })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.store.rows()
    }

    /// Numbers of a row.
    pub fn dim(&self) -> usize {
        self.store.dim()
    }

    /// Names of a row's numbers; none where they have no names.
    pub fn names(&self) -> Vec<String> {
        match &self.store {
            Store::Arrays(_) => Vec::new(),
            Store::Table(table) => table.names(),
        }
    }

    /// Names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The label of every row, as given.
    pub fn given(&self) -> &[u32] {
        &self.given
    }

    /// True labels, where they are known.
    pub fn truth(&self) -> Option<&[u32]> {
        self.truth.as_deref()
    }

    /// Where labels come from, where a column says so.
    pub fn sources(&self) -> Option<&Sources> {
        self.sources.as_ref()
    }

    /// The id of a row, where the data has a column of ids.
    pub fn id(&self, row: u64) -> Option<&str> {
        self.ids.as_ref()?.get(row)
    }

    /// What a person should know of how it was read, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ranges that make up `rows`, cut at multiples of `block` as rows are counted from the first of all: wherever reading begins, a block
    /// has the same rows.
    pub fn blocks(&self, rows: Range<u64>, block: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let (block, end) = (block.max(1), rows.end.min(self.rows()));
        let mut next = rows.start;
        std::iter::from_fn(move || {
            let first = next;
            next = (first / block + 1).saturating_mul(block).min(end);
            (first < end).then_some(first..next)
        })
    }

    /// Fills `out` with rows that follow one another, row after row. Quickest from front to back.
    ///
    /// # Errors
    /// If they are not all there, a number is not finite (with its file, row and column), or the file cannot be read.
    pub fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<()> {
        if rows.start > rows.end || rows.end > self.rows() {
            return Err(self.not_there(format!("{rows:?}")));
        }
        self.make_room(rows.end - rows.start, out)?;
        match &self.store {
            Store::Arrays(store) => store.read(rows, out),
            Store::Table(store) => store.read(rows, out),
        }
    }

    /// Fills `out` with rows of these numbers, which must rise.
    ///
    /// # Errors
    /// As [`read_rows`](Self::read_rows), or if a number is not above the one before.
    pub fn read_some(&self, rows: &[u64], out: &mut Vec<f32>) -> Result<()> {
        if let Some(at) = (1..rows.len()).find(|&at| rows[at - 1] >= rows[at]) {
            let problem = format!("row {} asked for after {}: sort them", rows[at], rows[at - 1]);
            return Err(Error::format(&self.path, None, problem));
        }
        if let Some(last) = rows.last().filter(|&&last| last >= self.rows()) {
            return Err(self.not_there(last.to_string()));
        }
        self.make_room(rows.len() as u64, out)?;
        match &self.store {
            Store::Arrays(store) => store.read_some(rows, out),
            Store::Table(store) => store.read_some(rows, out),
        }
    }

    fn not_there(&self, asked: String) -> Error {
        let problem = format!("row {asked} asked for, but there are {}", self.rows());
        Error::format(&self.path, None, problem)
    }

    fn make_room(&self, rows: u64, out: &mut Vec<f32>) -> Result<()> {
        let places = usize::try_from(rows).ok().and_then(|rows| rows.checked_mul(self.dim()));
        let too_many = || Error::format(&self.path, None, format!("{rows} rows at once are too many"));
        // What is there already need not be cleared: all of it is written.
        out.resize(places.ok_or_else(too_many)?, 0.0);
        Ok(())
    }
}

fn find(path: &Path, options: &OwnOptions) -> Result<Found> {
    let about = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let unknown = |tried: &str| {
        let problem =
            format!("no form that is read row by row: tried {tried}; open it whole, or save it as .npy");
        Err(Error::format(path, None, problem))
    };
    if about.is_dir() {
        if let Some((train, _)) = shards::find(path)? {
            return Table::open(&train, options);
        }
        let files = arrays::list(path, options.labels.as_deref())?;
        return match files.is_empty() {
            true => unknown("*.parquet, data/*.parquet and *.npy"),
            false => Ok(bare(Store::Arrays(Arrays::open(&files)?))),
        };
    }
    match extension(path).as_str() {
        "parquet" => Table::open(&[path.to_owned()], options),
        "npy" => Ok(bare(Store::Arrays(Arrays::open(&[path.to_owned()])?))),
        _ => unknown("the extensions .npy and .parquet"),
    }
}

/// Rows without labels of their own.
fn bare(store: Store) -> Found {
    Found {
        store,
        ids: None,
        given: None,
        truth: None,
        side: SideColumns::default(),
        names: None,
        notes: Vec::new(),
    }
}
