//! Vectors that have names: the ids of their rows.

use crate::array::Array;
use crate::{FeatureStore, Items, Result};
use std::sync::Arc;

/// Vectors with their ids.
struct Identified {
    array: Array,
    ids: Vec<String>,
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
}

/// Vectors, with ids where there are any.
pub(super) fn identified(array: Array, ids: Option<Vec<String>>) -> Items {
    match ids {
        Some(ids) => Items::Features(Arc::new(Identified { array, ids })),
        None => Items::Features(Arc::new(array)),
    }
}
