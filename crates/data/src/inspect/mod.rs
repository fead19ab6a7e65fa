//! A first look at a dataset: sizes, classes, shapes, duplicates, unreadable files and, where the truth is known, noise.
//!
//! Items are read once, in parallel, and forgotten; kept are 32 bytes per item to find duplicates, and the first few of every
//! kind of finding. The report does not depend on the number of threads.

mod duplicates;
mod features;
mod images;
mod labels;
mod text;

pub use crate::readable::Failure;
pub use duplicates::{Duplicates, Group, Shared, shared};
pub use features::{Features, Range};
pub use images::{Images, ShapeCount};
pub use labels::{ClassCount, Confusion, Labels, Noise};

use crate::{Dataset, Items};
use serde::Serialize;

/// What to look at, and how much of it to tell.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many findings of each kind are told one by one; all are counted.
    pub examples: usize,
    /// Whether the items are read. Without it only labels are looked at, which takes no time.
    pub items: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { examples: 20, items: true }
    }
}

/// What was found. `Display` gives text for people, `Serialize` the same for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Name of the dataset.
    pub name: String,
    /// How many items.
    pub items: usize,
    /// Labels and classes.
    pub labels: Labels,
    /// How given and true labels differ, where the truth is known.
    pub noise: Option<Noise>,
    /// The pictures, if the items are pictures and were read.
    pub images: Option<Images>,
    /// The feature vectors, if the items are such and were read.
    pub features: Option<Features>,
    /// Items that could not be read.
    pub unreadable: Unreadable,
    /// Items that are the same byte by byte.
    pub duplicates: Option<Duplicates>,
}

/// Items that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// How many.
    pub count: usize,
    /// The first few.
    pub first: Vec<Failure>,
}

impl Unreadable {
    fn add(&mut self, examples: usize, failure: impl FnOnce() -> Failure) {
        self.count += 1;
        if self.first.len() < examples {
            self.first.push(failure());
        }
    }

    /// Of two in order of items.
    fn join(&mut self, later: Self, examples: usize) {
        self.count += later.count;
        let room = examples.saturating_sub(self.first.len());
        self.first.extend(later.first.into_iter().take(room));
    }
}

/// Looks through a dataset. Items that cannot be read are findings, not errors.
pub fn inspect(dataset: &Dataset, options: &Options) -> Report {
    let mut report = Report {
        name: dataset.name().to_owned(),
        items: dataset.len(),
        labels: labels::count(dataset),
        noise: dataset.truth().map(|truth| labels::compare(dataset, truth, options.examples)),
        images: None,
        features: None,
        unreadable: Unreadable::default(),
        duplicates: None,
    };
    if !options.items {
        return report;
    }
    let prints = match dataset.items() {
        Items::Images(store) => {
            let (images, unreadable, prints) = images::look(store.as_ref(), options.examples);
            (report.images, report.unreadable) = (Some(images), unreadable);
            prints
        }
        Items::Features(store) => {
            let (features, unreadable, prints) = features::look(store.as_ref(), options.examples);
            (report.features, report.unreadable) = (Some(features), unreadable);
            prints
        }
    };
    report.duplicates = Some(duplicates::find(prints, dataset.given(), options.examples));
    report
}
