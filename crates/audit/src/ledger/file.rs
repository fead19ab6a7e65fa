//! The ledger as a Parquet file, which every table program reads.
//!
//! | column | type | content |
//! |---|---|---|
//! | `index` | int64 | 0, 1, 2, ... |
//! | `given` | int32 | label as given |
//! | `clean_probability` | float, null where the host set none | |
//! | `target` | list of C floats | believed target |
//! | `losses` | list of floats, null where a sample was not seen | one per epoch kept, oldest first |
//! | `prediction` | list of C floats, empty where nobody has looked | mean of what networks predict |
//!
//! The file's metadata holds `negscale.ledger.` + `version`, `samples`, `classes`, `recent`, `epochs` (numbers, comma between),
//! `looks` (epochs in that mean; 0: provisional, or none) and `checksum`: 64-bit FNV-1a over the bits of everything, four bytes at a time. Every step of it is one-to-one, so no
//! single changed number passes, wherever packing would let it.
//!
//! Reading trusts nothing: schema, shapes and ranges are checked, memory grows with what was read rather than with what the
//! file claims, and a panic of the crate that unpacks becomes an error.

use super::{EpochLosses, Ledger, SampleIndices, check_clean, check_losses, check_rows};
use crate::{Error, Result};
use negscale_atomic_file::write_atomic;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// What was read, or what is wrong with it.
type Checked<T> = std::result::Result<T, String>;

const VERSION: &str = "2";
const PREFIX: &str = "negscale.ledger.";
/// Rows are written in groups of about this many numbers.
const GROUP: usize = 1 << 22;
/// Rows are read in steps of about this many numbers.
const STEP: usize = 1 << 16;
const SCHEMA: &str = "message ledger {
    required int64 index;
    required int32 given;
    optional float clean_probability;
    required group target (LIST) { repeated group list { required float element; } }
    required group losses (LIST) { repeated group list { optional float element; } }
    required group prediction (LIST) { repeated group list { required float element; } }
}";

impl Ledger {
    /// Writes the ledger, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomic(path, |file| self.pack(file).map_err(system))
            .map_err(|source| Error::File { path: path.to_owned(), source })
    }

    /// Reads a ledger.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let damaged = || Err("damaged: unpacking it failed".to_owned());
        catch_unwind(AssertUnwindSafe(|| unpack(file))).unwrap_or_else(|_| damaged()).map_err(|problem| {
            let problem = format!("{problem}; restore the file from a copy, or train again");
            Error::Ledger { path: path.to_owned(), problem }
        })
    }

    fn pack(&self, file: impl Write + Send) -> Parquet<()> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let epochs: Vec<String> = self.epochs().map(|epoch| epoch.to_string()).collect();
        let pairs = [
            ("version", VERSION.to_owned()),
            ("samples", self.len().to_string()),
            ("classes", self.classes.to_string()),
            ("recent", self.recent.to_string()),
            ("epochs", epochs.join(",")),
            ("looks", self.looks.map_or("none".into(), |looks| looks.to_string())),
            ("checksum", format!("{:016x}", self.checksum())),
        ];
        let pairs = pairs.map(|(key, value)| KeyValue::new(format!("{PREFIX}{key}"), value)).to_vec();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_encoding(ColumnPath::from("index"), Encoding::DELTA_BINARY_PACKED)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_key_value_metadata(Some(pairs));
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
        let rows = (GROUP / self.classes.saturating_mul(2).saturating_add(self.epochs.len() + 3)).max(1);
        for first in (0..self.len()).step_by(rows) {
            let range = first..(first + rows).min(self.len());
            let mut group = writer.next_row_group()?;
            let index: Vec<i64> = range.clone().map(|i| i as i64).collect();
            column::<Int64Type>(&mut group, &index, None, None)?;
            let given: Vec<i32> = self.given[range.clone()].iter().map(|&label| label as i32).collect();
            column::<Int32Type>(&mut group, &given, None, None)?;
            let (clean, levels) = present(self.clean[range.clone()].iter().copied(), 1);
            column::<FloatType>(&mut group, &clean, Some(&levels), None)?;
            let targets = &self.targets[range.start * self.classes..range.end * self.classes];
            let starts = starts(range.len(), self.classes);
            column::<FloatType>(&mut group, targets, Some(&vec![1; targets.len()]), Some(&starts))?;
            let losses = range.clone().flat_map(|i| self.epochs.iter().map(move |epoch| epoch.losses[i]));
            let (losses, mut levels) = present(losses, 2);
            if self.epochs.is_empty() {
                levels = vec![0; range.len()]; // level 0: the list is empty
            }
            let starts = self::starts(range.len(), self.epochs.len());
            column::<FloatType>(&mut group, &losses, Some(&levels), Some(&starts))?;
            let width = if self.looks.is_some() { self.classes } else { 0 };
            let predictions = &self.predictions[range.start * width..range.end * width];
            let levels = if width > 0 { vec![1; predictions.len()] } else { vec![0; range.len()] };
            let starts = self::starts(range.len(), width);
            column::<FloatType>(&mut group, predictions, Some(&levels), Some(&starts))?;
            group.close()?;
        }
        writer.close().map(|_| ())
    }

    fn checksum(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut take = |word: u32| hash = (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01b3);
        let looks = self.looks.map_or(u64::MAX, u64::from);
        let numbers = [self.len() as u64, self.classes as u64, self.recent as u64, looks];
        for number in numbers.into_iter().chain(self.epochs()) {
            take(number as u32);
            take((number >> 32) as u32);
        }
        self.given.iter().for_each(|&label| take(label));
        let losses = self.epochs.iter().map(|epoch| &epoch.losses);
        for values in [&self.targets, &self.clean].into_iter().chain(losses).chain([&self.predictions]) {
            values.iter().for_each(|x| take(x.to_bits()));
        }
        hash
    }
}

/// The system's own error where there is one, so that a full disk is known as such.
fn system(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => inner.downcast().map_or_else(io::Error::other, |e| *e),
        other => io::Error::other(other),
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
    starts: Option<&[i16]>,
) -> Parquet<()> {
    let more = || ParquetError::General("the schema has fewer columns than are written".into());
    let mut column = group.next_column()?.ok_or_else(more)?;
    column.typed::<T>().write_batch(values, levels, starts)?;
    column.close()
}

/// Values without the missing ones, and for each whether it is there: at `level`, or one below.
fn present(values: impl Iterator<Item = f32> + Clone, level: i16) -> (Vec<f32>, Vec<i16>) {
    let levels = values.clone().map(|x| if x.is_nan() { level - 1 } else { level }).collect();
    (values.filter(|x| !x.is_nan()).collect(), levels)
}

/// Repetition levels of lists of equal length: 0 begins one. An empty list has one as well.
fn starts(lists: usize, width: usize) -> Vec<i16> {
    (0..lists).flat_map(|_| (0..width.max(1)).map(|at| i16::from(at > 0))).collect()
}

/// Reads a ledger, or says what is wrong.
fn unpack(file: File) -> Checked<Ledger> {
    let wrong = |e: ParquetError| format!("not a Parquet file, or damaged: {e}");
    let reader = SerializedFileReader::new(file).map_err(wrong)?;
    let about = reader.metadata().file_metadata();
    let pairs: HashMap<&str, &str> = about
        .key_value_metadata()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.key.strip_prefix(PREFIX)?, pair.value.as_deref()?)))
        .collect();
    let text =
        |key| pairs.get(key).copied().ok_or(format!("not a ledger: its metadata has no `{PREFIX}{key}`"));
    let number = |key| {
        let text = text(key)?;
        text.parse::<usize>()
            .map_err(|_| format!("`{PREFIX}{key}` is `{}`, not a number", text.escape_debug()))
    };
    if text("version")? != VERSION {
        let found = text("version")?.escape_debug();
        return Err(format!("its version is {found}, but this program reads version {VERSION}"));
    }
    let schema = parse_message_type(SCHEMA).map_err(wrong)?;
    if about.schema().get_fields() != schema.get_fields() {
        return Err("its columns are not those of a ledger".into());
    }
    // With gzip, the crate that unpacks would fill memory with whatever comes, however much that is.
    let mut columns = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    if !columns.all(|column| matches!(column.compression(), Compression::ZSTD(_))) {
        return Err("its columns are not packed as those of a ledger are (Zstandard)".into());
    }
    let (samples, classes, recent) = (number("samples")?, number("classes")?, number("recent")?);
    let numbers = text("epochs")?.split(',').filter(|word| !word.is_empty());
    let epochs: Vec<u64> = numbers
        .map(|word| word.parse().map_err(|_| format!("`{PREFIX}epochs` is not a list of numbers")))
        .collect::<Checked<_>>()?;
    if epochs.len() > recent || recent == 0 || !epochs.is_sorted_by(|a, b| a < b) {
        return Err(format!("`{PREFIX}epochs` does not hold up to {recent} numbers in order"));
    }
    let looks = match text("looks")? {
        "none" => None,
        word => {
            Some(word.parse().map_err(|_| format!("`{PREFIX}looks` is neither none nor a count of epochs"))?)
        }
    };
    let mut ledger = Ledger {
        predictions: Vec::new(),
        looks,
        classes,
        recent,
        given: Vec::new(),
        targets: Vec::new(),
        clean: Vec::new(),
        epochs: epochs.iter().map(|&epoch| EpochLosses { epoch, losses: Vec::new() }).collect(),
    };
    for group in 0..reader.num_row_groups() {
        let rows = usize::try_from(reader.metadata().row_group(group).num_rows()).unwrap_or(usize::MAX);
        if rows > samples.saturating_sub(ledger.len()) {
            return Err(format!("has more rows than the {samples} that its metadata promises"));
        }
        let mut columns = Columns { reader: &reader, group, rows };
        let first = ledger.len();
        columns.read::<Int64Type>(0, None, |row, index, _| {
            let is_next = index == Some((first + row) as i64);
            if is_next { Ok(()) } else { Err("is not 0, 1, 2, ...".into()) }
        })?;
        columns.read::<Int32Type>(1, None, |_, label, _| {
            let label = label.and_then(|label| u32::try_from(label).ok());
            let label = label.filter(|&label| (label as usize) < classes).ok_or("is not a class")?;
            ledger.given.push(label);
            Ok(())
        })?;
        columns.read::<FloatType>(2, None, |_, w, _| {
            ledger.clean.push(w.unwrap_or(f32::NAN));
            Ok(())
        })?;
        columns.read::<FloatType>(3, Some(classes), |_, t, _| {
            ledger.targets.push(t.ok_or("is shorter than the number of classes")?);
            Ok(())
        })?;
        columns.read::<FloatType>(4, Some(epochs.len()), |_, loss, at| {
            ledger.epochs[at].losses.push(loss.unwrap_or(f32::NAN));
            Ok(())
        })?;
        let width = if looks.is_some() { classes } else { 0 };
        columns.read::<FloatType>(5, Some(width), |_, p, _| {
            ledger.predictions.push(p.ok_or("is shorter than the number of classes")?);
            Ok(())
        })?;
    }
    finish(ledger, samples, text("checksum")?)
}

/// Checks what has been read as a whole.
fn finish(ledger: Ledger, samples: usize, checksum: &str) -> Checked<Ledger> {
    if ledger.len() != samples {
        return Err(format!("has {} rows of the {samples} that its metadata promises", ledger.len()));
    }
    if format!("{:016x}", ledger.checksum()) != checksum {
        return Err("damaged: its content does not match its checksum".into());
    }
    // A checksum can be forged, and a forged number must not surprise anyone later.
    for (what, rows) in [("believed targets", &ledger.targets), ("predictions", &ledger.predictions)] {
        check_rows(what, SampleIndices::All, rows, ledger.classes).map_err(|e| e.to_string())?;
    }
    let known = |values: &[f32]| -> (Vec<u32>, Vec<f32>) {
        (0..).zip(values).filter(|(_, x)| !x.is_nan()).map(|(i, &x)| (i, x)).unzip()
    };
    let (which, clean) = known(&ledger.clean);
    check_clean(SampleIndices::These(&which), &clean).map_err(|e| e.to_string())?;
    for epoch in &ledger.epochs {
        let (which, losses) = known(&epoch.losses);
        check_losses(SampleIndices::These(&which), &losses).map_err(|e| e.to_string())?;
    }
    Ok(ledger)
}

/// The columns of a row group.
struct Columns<'a> {
    reader: &'a SerializedFileReader<File>,
    group: usize,
    rows: usize,
}

impl Columns<'_> {
    /// Hands over every number of a column: row, number if not missing, place in its list. Lists must have `width` entries.
    fn read<T: DataType>(
        &mut self,
        column: usize,
        width: Option<usize>,
        mut take: impl FnMut(usize, Option<T::T>, usize) -> Checked<()>,
    ) -> Checked<()> {
        let (group, rows) = (self.group, self.rows);
        let place = |row: usize, problem: String| {
            let names = ["index", "given", "clean_probability", "target", "losses", "prediction"];
            format!("row group {group}, row {row}, column `{}`: {problem}", names[column])
        };
        let wrong = |row: usize, e: ParquetError| place(row, format!("damaged: {e}"));
        let chunk = self.reader.get_row_group(group).and_then(|group| group.get_column_reader(column));
        let mut reader = get_typed_column_reader::<T>(chunk.map_err(|e| wrong(0, e))?);
        let deepest = [0, 0, 1, 1, 2, 1][column];
        let per_row = width.unwrap_or(1);
        let step = (STEP / per_row.max(1)).max(1);
        let (mut values, mut levels, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = 0;
        while row < rows {
            values.clear();
            levels.clear();
            starts.clear();
            let most = step.min(rows - row);
            let (got, ..) = reader
                .read_records(most, Some(&mut levels), Some(&mut starts), &mut values)
                .map_err(|e| wrong(row, e))?;
            if got == 0 {
                return Err(place(row, "the column ends too early".into()));
            }
            let empty = per_row == 0;
            let entries = got.saturating_mul(per_row.max(1));
            let fits = width.is_none()
                || levels.len() == entries
                    && starts == self::starts(got, per_row)
                    && levels.iter().all(|&level| (level == 0) == empty);
            if !fits {
                return Err(place(row, format!("lists are not of length {per_row}")));
            }
            let mut values = values.drain(..);
            for at in (0..entries).take_while(|_| !empty) {
                let is_there = deepest == 0 || levels.get(at) == Some(&deepest);
                let value = if is_there { values.next() } else { None };
                if is_there && value.is_none() {
                    return Err(place(row, "the column ends too early".into()));
                }
                let row = row + at / per_row;
                take(row, value, at % per_row).map_err(|problem| place(row, problem))?;
            }
            row += got;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such_wherever_the_file_is_cut() {
        let ledger = Ledger::new(&[0, 2, 1, 1], 3, 4).unwrap();
        let mut whole = Vec::new();
        ledger.pack(&mut whole).unwrap();
        // A slice takes what fits, then writes of nothing: the error of a device without room for one more byte.
        for room in 0..whole.len() {
            let error = system(ledger.pack(&mut vec![0; room][..]).unwrap_err());
            assert_eq!(error.kind(), io::ErrorKind::WriteZero, "room for {room} of {}: {error}", whole.len());
        }
    }
}
