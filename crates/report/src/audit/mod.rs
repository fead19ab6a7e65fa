//! The page of an audit: how many labels are wrong, where, whether they are mixed up with related classes, which are the worst, and
//! what to do.

mod cards;
mod page;
mod parts;
mod tables;
mod words;

use std::path::Path;

use askama::Template;
use negscale_atomic_file::write_bytes;

use crate::error::{Error, Result};
use crate::histogram::Separation;
use crate::matrix::CountMatrix;
use crate::plot::RecallCurve;
use crate::relations::Relations;
use crate::summary::SummaryRow;
pub use parts::{
    AnnotatorRow, ClassRow, ConfusionRow, Correction, Estimate, Expert, Judging, Member, NextStep, Outlier,
    SourceRow, WorstLabel,
};

/// Everything the owner of a dataset should see of an audit. All text is shown as text, whatever it contains; what is empty or `None`
/// is left out of the page. Lists may be complete: the page shows the worst rows and says how many more there are.
#[derive(Debug, Clone, Default)]
pub struct AuditReport {
    /// Title of the page.
    pub title: String,
    /// When, as the reader should see it.
    pub when: String,
    /// How many labels were looked at.
    pub samples: usize,
    /// How many of them look wrong.
    pub flagged: usize,
    /// The estimated share of wrong labels.
    pub estimate: Option<Estimate>,
    /// Why nothing can be said about these labels, as the end of a sentence. Then all that depends on a judgement is left out.
    pub cannot_judge: Option<String>,
    /// Sentences the reader should know before believing the rest.
    pub notes: Vec<String>,
    /// Names of the classes; a class without one is shown by its number.
    pub class_names: Vec<String>,
    /// Every class, in any order.
    pub classes: Vec<ClassRow>,
    /// When a label is flagged, in a sentence.
    pub flag_rule: String,
    /// Which class is given for which, in any order.
    pub confusions: Vec<ConfusionRow>,
    /// Given class (row) by probable class (column), labels that do not look wrong on the diagonal; drawn for up to 30 classes.
    pub matrix: Option<CountMatrix>,
    /// Where labels come from, if the data say so.
    pub sources: Vec<SourceRow>,
    /// Whether wrong labels name related classes.
    pub relations: Option<Relations>,
    /// Flagged labels, most suspicious first; 100 of them are shown, and never more than are [flagged](Self::flagged).
    pub worst: Vec<WorstLabel>,
    /// What to do next, in order.
    pub next: Vec<NextStep>,
    /// What corrected labels would change.
    pub correction: Option<Correction>,
    /// Groups of samples that are nearly the same.
    pub duplicates: Vec<Vec<Member>>,
    /// Samples that fit no class, the strangest first.
    pub outliers: Vec<Outlier>,
    /// Who gave the labels, in any order.
    pub annotators: Vec<AnnotatorRow>,
    /// Scores of all labels: the probabilities that they are wrong.
    pub scores: Option<Separation>,
    /// How labels were judged.
    pub judging: Option<Judging>,
    /// How good the audit is, where the truth is known.
    pub measures: Vec<SummaryRow>,
    /// How well the list finds wrong labels, where the truth is known.
    pub ranking: Option<RecallCurve>,
    /// The resolved settings as TOML text.
    pub settings: String,
    /// The command that repeats the audit.
    pub command: String,
    /// What it ran on.
    pub hardware: String,
    /// Version of the code.
    pub version: String,
}

impl AuditReport {
    /// The page as one HTML text that needs no network.
    ///
    /// # Errors
    /// A thumbnail could not be encoded.
    pub fn to_html(&self) -> Result<String> {
        Ok(page::Page::of(self)?.render()?)
    }

    /// Writes the page as a whole.
    ///
    /// # Errors
    /// A thumbnail could not be encoded or the file could not be written.
    pub fn write_html(&self, path: &Path) -> Result<()> {
        write_bytes(path, self.to_html()?.as_bytes()).map_err(|e| Error::io(path, e))
    }
}
