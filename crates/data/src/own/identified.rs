//! Vectors that have names: ids of their rows, or names of their columns.

use crate::array::Array;
use crate::{FeatureStore, Items, Result};
use std::sync::Arc;

/// Vectors with their ids and the names of their columns, where they have such.
struct Identified {
    array: Array,
    ids: Vec<String>,
    names: Vec<String>,
}

impl FeatureStore for Identified {
    fn len(&self) -> usize {
        self.array.len()
    }
    fn dim(&self) -> usize {
        self.array.dim()
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        self.array.read(index, out)
    }
    fn origin(&self, index: usize) -> Option<String> {
        self.ids.get(index).cloned()
    }
    fn names(&self) -> &[String] {
        &self.names
    }
}

/// Vectors, with ids and names of columns where there are any.
pub(super) fn identified(array: Array, ids: Option<Vec<String>>, names: Vec<String>) -> Items {
    if ids.is_none() && names.is_empty() {
        return Items::Features(Arc::new(array));
    }
    Items::Features(Arc::new(Identified { array, ids: ids.unwrap_or_default(), names }))
}
