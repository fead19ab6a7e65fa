//! What the page is made from.

use std::path::Path;

use askama::Template;
use negscale_atomic_file::write_bytes;

use crate::error::{Error, Result};
use crate::histogram::Separation;
use crate::matrix::CountMatrix;
use crate::page::Page;
use crate::plot::RecallCurve;
use crate::relations::Relations;
use crate::summary::SummaryRow;
use crate::thumbnail::Thumbnail;
use negscale_records::EpochRecord;

/// Everything a reader of a run should see. All text is shown as text, whatever it contains; what is empty or `None`
/// is left out of the page.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// Title of the page.
    pub title: String,
    /// When, as the reader should see it.
    pub when: String,
    /// The resolved settings as TOML text.
    pub settings: String,
    /// One record per epoch.
    pub records: Vec<EpochRecord>,
    /// The figures on top; [`summarise`](crate::summarise) makes those that follow from the records.
    pub summary: Vec<SummaryRow>,
    /// Names of the classes; a class without one is shown by its number.
    pub class_names: Vec<String>,
    /// Confusion matrix, and what its rows are.
    pub confusion: Option<(ConfusionRows, CountMatrix)>,
    /// True class (row) by given label (column), where the truth is known.
    pub noise: Option<CountMatrix>,
    /// Whether wrong labels name related classes.
    pub relations: Option<Relations>,
    /// Clean probabilities of the training samples.
    pub separation: Option<Separation>,
    /// How well the list of suspicious labels finds wrong ones, where the truth is known; without it, clean probabilities are taken.
    pub ranking: Option<RecallCurve>,
    /// How many labels look wrong, whether listed here or not; `None` if nobody counted.
    pub flagged: Option<usize>,
    /// The most suspicious labels, the worst first; 100 of them are shown.
    pub suspicious: Vec<Suspicious>,
    /// The command that repeats the run.
    pub command: String,
    /// What it ran on.
    pub hardware: String,
    /// Version of the code.
    pub version: String,
}

/// What the rows of a confusion matrix are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfusionRows {
    /// Labels as given, wrong ones among them.
    Given,
    /// True classes.
    True,
}

/// A label that is probably wrong.
#[derive(Debug, Clone, Default)]
pub struct Suspicious {
    /// Number of the sample.
    pub index: usize,
    /// Where it came from, if it has a name.
    pub path: Option<String>,
    /// Class it is labelled as.
    pub given: usize,
    /// Class it looks like.
    pub suggested: usize,
    /// Probability that the label is right.
    pub clean_probability: f64,
    /// Probability of the suggested class.
    pub suggested_probability: f64,
    /// Distance between the two classes in the class tree.
    pub tree_distance: Option<f64>,
    /// True class, where known.
    pub truth: Option<usize>,
    /// What it looks like.
    pub thumbnail: Option<Thumbnail>,
}

impl RunReport {
    /// The page as one HTML text that needs no network.
    ///
    /// # Errors
    /// A thumbnail could not be encoded.
    pub fn to_html(&self) -> Result<String> {
        Ok(Page::of(self)?.render()?)
    }

    /// Writes the page as a whole.
    ///
    /// # Errors
    /// A thumbnail could not be encoded or the file could not be written.
    pub fn write_html(&self, path: &Path) -> Result<()> {
        write_bytes(path, self.to_html()?.as_bytes()).map_err(|e| Error::io(path, e))
    }
}
