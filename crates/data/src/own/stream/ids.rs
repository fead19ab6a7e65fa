//! Ids of rows, as one text.

use crate::{FeatureStore, Items, Result};
use std::sync::Arc;

/// All ids, one after another, and where each ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids(Arc<Texts>);

#[derive(Debug, Clone, Default)]
struct Texts {
    text: String,
    ends: Vec<u64>,
}

impl Ids {
    /// Adds the next id.
    pub fn push(&mut self, id: &str) {
        let texts = Arc::make_mut(&mut self.0);
        texts.text.push_str(id);
        texts.ends.push(texts.text.len() as u64);
    }

    /// The id of a row.
    pub fn get(&self, row: u64) -> Option<&str> {
        self.0.get(usize::try_from(row).ok()?)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// Items that have these ids and nothing else, for labels to be joined to.
    pub fn items(&self) -> Items {
        Items::Features(self.0.clone())
    }
}

impl Texts {
    fn get(&self, row: usize) -> Option<&str> {
        let start = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start as usize..*self.ends.get(row)? as usize)
    }
}

impl FeatureStore for Texts {
    fn len(&self) -> usize {
        self.ends.len()
    }
    fn dim(&self) -> usize {
        0
    }
    fn read(&self, _index: usize, _out: &mut [f32]) -> Result<()> {
        Ok(())
    }
    fn origin(&self, index: usize) -> Option<String> {
        self.get(index).map(str::to_owned)
    }
}
