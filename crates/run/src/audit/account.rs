//! What an audit has found, whoever judged: what its files, its page and its words are made from.

use super::evidence::Evidence;
use super::flags::{Flags, SourceFlags, by_source};
use super::votes::Agreed;
use crate::recipe::Recipe;
use crate::{Material, Result};
use negscale::Taxonomy;
use negscale_audit::{Audit, Correction, Finding, Measures, NoiseEstimate};
use negscale_report::Judging;
use negscale_similarity::LabelNoise;
use std::path::Path;

/// What an audit has found.
pub struct Account<'a> {
    /// Its settings.
    pub recipe: &'a Recipe,
    /// Its data.
    pub material: &'a Material,
    /// Where its files are; nowhere if nothing is written.
    pub place: Option<&'a Path>,
    /// Every label, ranked.
    pub audit: &'a Audit,
    /// How many are wrong; nothing if no prediction was recorded.
    pub estimate: Option<&'a NoiseEstimate>,
    /// The class tree.
    pub tree: Option<&'a Taxonomy>,
    /// What speaks against labels.
    pub evidence: Evidence<'a>,
    /// Why labels are flagged.
    pub flags: Flags,
    /// Who judged, for people.
    pub method: String,
    /// How it went.
    pub judging: Judging,
    /// What the reader should know first.
    pub notes: Vec<String>,
    /// What annotators agree on, where there are several.
    pub agreed: Option<Agreed<'a>>,
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
    /// One of its files, if it is written.
    pub fn file(&self, name: &str) -> Option<String> {
        Some(self.place?.join(name).display().to_string())
    }

    /// Names of the classes.
    pub fn classes(&self) -> &[String] {
        self.material.train.classes()
    }

    /// Why a flagged label is doubted, most telling first.
    pub fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = self.evidence.reasons(finding, self.classes(), self.estimate);
        reasons.push(self.flags.reason(finding, self.classes()));
        reasons
    }

    /// Flags by source, where the data says where labels come from; none where nothing can be said.
    pub fn sources(&self) -> Vec<SourceFlags<'_>> {
        let sources = self.material.train.sources().filter(|_| self.cannot_judge().is_none());
        sources.map_or_else(Vec::new, |sources| by_source(self.audit, sources, self.judged()))
    }

    /// What a correction changes and what is expected of it.
    pub fn correction(&self) -> Correction {
        let (rate, interval) =
            self.judged().map_or((0.0, [0.0, 1.0]), |judged| (judged.rate, judged.interval));
        self.audit.correction(rate, interval)
    }

    /// Why nothing can be said, if so.
    pub fn cannot_judge(&self) -> Option<&str> {
        self.estimate.and_then(|estimate| estimate.cannot_judge.as_deref())
    }

    /// What labels are believed to say about the class tree, if there is one and anything can be said.
    pub fn noise_on_tree(&self) -> Result<Option<LabelNoise>> {
        let (Some(estimate), Some(tree)) = (self.judged(), self.tree) else { return Ok(None) };
        Ok(Some(LabelNoise::estimated(&estimate.joint, tree, self.recipe.thresholds()?)?))
    }

    /// The estimate, unless nothing can be said.
    pub fn judged(&self) -> Option<&NoiseEstimate> {
        self.estimate.filter(|estimate| estimate.cannot_judge.is_none())
    }
}
