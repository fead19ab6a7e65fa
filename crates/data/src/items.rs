//! Items that can be had by their number: pictures or feature vectors.

use crate::{Image, Result, Shape};
use std::borrow::Cow;
use std::sync::Arc;

/// Pictures that can be had by their number, from any thread.
pub trait ImageStore: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The decoded picture, in its own size.
    fn load(&self, index: usize) -> Result<Image>;
    /// The stored bytes of a picture, encoded or not: for fingerprints and for finding duplicates.
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>>;
    /// Where the picture came from, if it has a place of its own (a path, or a path and a row).
    fn origin(&self, _index: usize) -> Option<String> {
        None
    }
    /// The size of all pictures, where the format fixes it.
    fn shape(&self) -> Option<Shape> {
        None
    }
}

/// Feature vectors that can be had by their number, from any thread.
pub trait FeatureStore: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Numbers per vector.
    fn dim(&self) -> usize;
    /// Writes vector `index` to `out`, which has `dim` places.
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()>;
    /// The id of a vector, if the data has a column of ids.
    fn origin(&self, _index: usize) -> Option<String> {
        None
    }
    /// Names of its numbers, if they are columns of a table; else none.
    fn names(&self) -> &[String] {
        &[]
    }
    /// The text that an encoder makes numbers of, where items are texts; then there are no numbers here.
    fn text(&self, _index: usize) -> Option<&str> {
        None
    }
}

/// The items of a dataset.
#[derive(Clone)]
pub enum Items {
    /// Pictures.
    Images(Arc<dyn ImageStore>),
    /// Feature vectors: embeddings or tables.
    Features(Arc<dyn FeatureStore>),
}

impl Items {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Items::Images(store) => store.len(),
            Items::Features(store) => store.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chosen ones, all of which must be there, in the order chosen.
    pub(crate) fn subset(&self, chosen: &[usize]) -> Self {
        let chosen = chosen.into();
        match self {
            Items::Images(store) => Items::Images(Arc::new(Chosen { store: store.clone(), chosen })),
            Items::Features(store) => Items::Features(Arc::new(Chosen { store: store.clone(), chosen })),
        }
    }

    /// Whether they are texts, of which an encoder makes rows of numbers.
    pub fn are_texts(&self) -> bool {
        matches!(self, Items::Features(store) if !store.is_empty() && store.text(0).is_some())
    }

    /// Where an item came from, if it has a place of its own (a path, or a path and a row) or an id.
    pub fn origin(&self, index: usize) -> Option<String> {
        match self {
            Items::Images(store) => store.origin(index),
            Items::Features(store) => store.origin(index),
        }
    }
}

/// Some items of a store.
struct Chosen<S: ?Sized> {
    store: Arc<S>,
    chosen: Arc<[usize]>,
}

impl ImageStore for Chosen<dyn ImageStore> {
    fn len(&self) -> usize {
        self.chosen.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        self.store.load(self.chosen[index])
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        self.store.bytes(self.chosen[index])
    }
    fn origin(&self, index: usize) -> Option<String> {
        self.store.origin(self.chosen[index])
    }
    fn shape(&self) -> Option<Shape> {
        self.store.shape()
    }
}

impl FeatureStore for Chosen<dyn FeatureStore> {
    fn len(&self) -> usize {
        self.chosen.len()
    }
    fn dim(&self) -> usize {
        self.store.dim()
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        self.store.read(self.chosen[index], out)
    }
    fn names(&self) -> &[String] {
        self.store.names()
    }
    fn text(&self, index: usize) -> Option<&str> {
        self.store.text(self.chosen[index])
    }
    fn origin(&self, index: usize) -> Option<String> {
        self.store.origin(self.chosen[index])
    }
}
