//! Rows of a stream as shards want them: with numbers for ids, progress, and a way to stop.

use super::{Remembered, Step, Tell};
use crate::error::bail;
use crate::{Result, Stop};
use negscale_audit::Error;
use negscale_audit::shards::{RowSource, text_id};
use negscale_data::own::OwnOptions;
use negscale_data::stream::RowStream;
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::path::Path;

/// Places of the data, and rows at each, that are looked at to see whether it is the same.
const PLACES: u64 = 16;

/// Rows of a stream.
pub struct Source<'a> {
    pub stream: &'a RowStream,
    pub stop: &'a Stop,
    /// What is told, and of which rows.
    pub tell: Option<(Tell<'a>, Step, Range<u64>)>,
}

impl RowSource for Source<'_> {
    fn rows(&self) -> u64 {
        self.stream.rows()
    }

    fn dim(&self) -> usize {
        self.stream.dim()
    }

    fn given(&self) -> &[u32] {
        self.stream.given()
    }

    fn id(&self, row: u64) -> u64 {
        self.stream.id(row).map_or(row, text_id)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> negscale_audit::Result<()> {
        if self.stop.is_asked() {
            return Err(Error::Stopped);
        }
        if let Some((tell, step, all)) = &self.tell {
            let done = rows.start.saturating_sub(all.start) as f64;
            tell(*step, done / (all.end - all.start).max(1) as f64);
        }
        self.stream.read_rows(rows, out).map_err(|error| Error::Rows { problem: error.to_string() })
    }
}

/// What was found, or the signal that ended it.
pub fn unless_stopped<T>(found: negscale_audit::Result<T>, stop: &Stop) -> Result<T> {
    if let Err(Error::Stopped) = found {
        stop.check()?;
    }
    Ok(found?)
}

/// Opens the rows of a model, and checks that they are still those it was fitted to.
pub fn open_again(remembered: &Remembered, data: Option<&Path>) -> Result<RowStream> {
    let path = data.unwrap_or(&remembered.data);
    let stream = RowStream::open(path, &remembered.options)?;
    if fingerprint(&stream)? != remembered.fingerprint {
        bail!(
            "{}: not the rows and labels that the models were fitted to, or they have changed since; fit again, or name the right ones \
             with --data",
            path.display()
        );
    }
    Ok(stream)
}

/// A hash of sizes, classes, all labels, and rows at some places.
pub fn fingerprint(stream: &RowStream) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(stream.rows().to_le_bytes());
    hash.update((stream.dim() as u64).to_le_bytes());
    hash.update(serde_json::to_vec(stream.classes())?);
    let mut bytes = Vec::new();
    for labels in stream.given().chunks(1 << 14) {
        bytes.clear();
        bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
        hash.update(&bytes);
    }
    let mut numbers = Vec::new();
    for place in 0..PLACES {
        let last = stream.rows().saturating_sub(PLACES);
        let first = (u128::from(last) * u128::from(place) / u128::from(PLACES - 1)) as u64;
        stream.read_rows(first..(first + PLACES).min(stream.rows()), &mut numbers)?;
        numbers.iter().for_each(|x| hash.update(x.to_le_bytes()));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The files that are read.
pub fn inputs(data: &Path, own: &OwnOptions) -> Vec<std::path::PathBuf> {
    let others = [&own.labels, &own.class_names].into_iter().flatten().cloned();
    std::iter::once(data.to_owned()).chain(others).collect()
}
