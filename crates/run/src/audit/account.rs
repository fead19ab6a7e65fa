//! What an audit has found, whoever judged: what its files, its page and its words are made from.

use super::evidence::Evidence;
use super::votes::Agreed;
use crate::Material;
use crate::recipe::Recipe;
use negscale::Taxonomy;
use negscale_audit::{Audit, Measures, NoiseEstimate};
use negscale_report::Judging;
use std::path::Path;

/// What an audit has found.
pub struct Account<'a> {
    /// Its settings.
    pub recipe: &'a Recipe,
    /// Its data.
    pub material: &'a Material,
    /// Where its files are.
    pub place: &'a Path,
    /// Every label, ranked.
    pub audit: &'a Audit,
    /// How many are wrong; nothing if no prediction was recorded.
    pub estimate: Option<&'a NoiseEstimate>,
    /// The class tree.
    pub tree: Option<&'a Taxonomy>,
    /// What speaks against labels.
    pub evidence: Evidence<'a>,
    /// Who judged, for people.
    pub method: String,
    /// How it went.
    pub judging: Judging,
    /// What the reader should know first.
    pub notes: Vec<String>,
    /// What annotators agree on, where there are several.
    pub agreed: Option<Agreed>,
    /// How good it is, where the truth is known.
    pub measures: Option<Measures>,
    /// The share of wrong labels by the means of classes, as a further reading.
    pub by_means: Option<f64>,
    /// Seconds so far.
    pub seconds: f64,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// Its settings as written.
    pub settings: String,
}

impl Account<'_> {
    /// Names of the classes.
    pub fn classes(&self) -> &[String] {
        self.material.train.classes()
    }

    /// Why nothing can be said, if so.
    pub fn cannot_judge(&self) -> Option<&str> {
        self.estimate.and_then(|estimate| estimate.cannot_judge.as_deref())
    }

    /// The estimate, unless nothing can be said.
    pub fn judged(&self) -> Option<&NoiseEstimate> {
        self.estimate.filter(|estimate| estimate.cannot_judge.is_none())
    }
}
