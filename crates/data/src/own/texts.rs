//! Texts of a table's column. They have no numbers until an encoder gives them some.

use crate::{FeatureStore, Items, Result};
use std::sync::Arc;

/// Texts with their ids, where they have such.
struct Texts {
    texts: Vec<String>,
    ids: Vec<String>,
}

impl FeatureStore for Texts {
    fn len(&self) -> usize {
        self.texts.len()
    }
    fn dim(&self) -> usize {
        0
    }
    fn read(&self, _index: usize, _out: &mut [f32]) -> Result<()> {
        Ok(())
    }
    fn text(&self, index: usize) -> Option<&str> {
        self.texts.get(index).map(String::as_str)
    }
    fn origin(&self, index: usize) -> Option<String> {
        self.ids.get(index).cloned()
    }
}

/// Texts as items, with ids where there are any.
pub(super) fn items(texts: Vec<String>, ids: Option<Vec<String>>) -> Items {
    Items::Features(Arc::new(Texts { texts, ids: ids.unwrap_or_default() }))
}
