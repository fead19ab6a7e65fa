//! Ids of rows.

use crate::own::words::Words;
use crate::{FeatureStore, Items, Result};
use std::sync::Arc;

/// Ids in the order of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids(Arc<Words>);

impl Ids {
    /// Adds the next id.
    pub fn push(&mut self, id: &str) {
        Arc::make_mut(&mut self.0).push(id);
    }

    /// The id of a row.
    pub fn get(&self, row: u64) -> Option<&str> {
        self.0.get(usize::try_from(row).ok()?)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Items that have these ids and nothing else, for labels to be joined to.
    pub fn items(&self) -> Items {
        Items::Features(self.0.clone())
    }
}

impl FeatureStore for Words {
    fn len(&self) -> usize {
        Words::len(self)
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
