//! A frozen audit with all that it takes to score rows: names of classes, the sample it was fitted to, and the score from which labels are
//! flagged.
//!
//! A row is judged by the models of its fold ([`Sample::fold`]), whether it was in the sample or not. So models never judge a label that
//! they were fitted to, and rows inside and outside of the sample are judged alike.

use super::FrozenAudit;
use crate::shards::{RowScore, RowScorer, Sample};
use crate::{Error, NoiseEstimate, Result, Verdict};
use serde::{Deserialize, Serialize};

/// What the sample says of all labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleEstimate {
    /// Rows in the sample.
    pub rows: u64,
    /// How many of them are flagged.
    pub flagged: u64,
    /// Share of wrong labels.
    pub rate: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Why nothing can be said about the labels, if so.
    pub cannot_judge: Option<String>,
}

impl SampleEstimate {
    /// From the estimate of a sample in which so many labels are flagged.
    #[must_use]
    pub fn new(estimate: &NoiseEstimate, flagged: usize) -> Self {
        Self {
            rows: estimate.given_counts.iter().sum::<usize>() as u64,
            flagged: flagged as u64,
            rate: estimate.rate,
            interval: estimate.interval,
            cannot_judge: estimate.cannot_judge.clone(),
        }
    }
}

/// What a [model](AuditModel) was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AboutModel {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Which rows it was fitted to, and in which fold a row is.
    pub sample: Sample,
    /// The score from which a label is flagged; without one, none is.
    pub cut_off: Option<f64>,
    /// What the sample says of all labels.
    pub estimate: SampleEstimate,
    /// Whatever whoever fitted it wants to know again: where rows are, settings.
    pub settings: serde_json::Value,
    /// Version of the program.
    pub version: String,
}

/// Models, and what they were made of.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditModel {
    pub(super) frozen: FrozenAudit,
    pub(super) about: AboutModel,
}

impl AuditModel {
    /// Puts them together.
    ///
    /// # Errors
    /// If folds or classes do not fit, or the score is no score.
    pub fn new(frozen: FrozenAudit, about: AboutModel) -> Result<Self> {
        let wrong = |problem| Err(Error::Samples { what: "model", problem });
        let (folds, classes) = (about.sample.folds() as usize, about.classes.len());
        if frozen.folds() != folds {
            return wrong(format!("models of {} folds for a sample of {folds}", frozen.folds()));
        }
        if frozen.classes() != classes {
            return wrong(format!("{classes} names for {} classes", frozen.classes()));
        }
        match about.cut_off {
            Some(score) if !(0.0..=1.0).contains(&score) => {
                wrong(format!("labels cannot be flagged from a score of {score} on: it must be from 0 to 1"))
            }
            _ => Ok(Self { frozen, about }),
        }
    }

    /// What it was made of.
    #[must_use]
    pub fn about(&self) -> &AboutModel {
        &self.about
    }

    /// Numbers of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.frozen.dim()
    }

    fn row_score(&self, mut verdict: Verdict) -> RowScore {
        let is_suspicious = self.about.cut_off.is_some_and(|least| verdict.score >= least);
        let flag = verdict.settle(is_suspicious);
        RowScore {
            score: verdict.score as f32,
            suggested: verdict.suggested,
            suggested_probability: verdict.suggested_probability,
            flag,
        }
    }
}

impl RowScorer for AuditModel {
    fn classes(&self) -> usize {
        self.frozen.classes()
    }

    fn score(&self, rows: &[f32], ids: &[u64], given: &[u32], out: &mut Vec<RowScore>) -> Result<()> {
        let dim = self.dim();
        if rows.len() != ids.len() * dim || given.len() != ids.len() {
            let problem =
                format!("{} numbers and {} labels for {} rows of {dim}", rows.len(), given.len(), ids.len());
            return Err(Error::Samples { what: "rows", problem });
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.frozen.folds()];
        for (at, &id) in ids.iter().enumerate() {
            members[self.about.sample.fold(id) as usize].push(at);
        }
        let nothing = RowScore { score: 0.0, suggested: 0, suggested_probability: 0.0, flag: false };
        out.resize(ids.len(), nothing);
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for (fold, members) in members.iter().enumerate() {
            values.clear();
            members.iter().for_each(|&at| values.extend_from_slice(&rows[at * dim..(at + 1) * dim]));
            labels.clear();
            labels.extend(members.iter().map(|&at| given[at]));
            let found = self.frozen.judge(fold, &values, &labels)?;
            for ((&at, found), &given) in members.iter().zip(&found).zip(&labels) {
                out[at] = self.row_score(Verdict::of_alternative(found, given));
            }
        }
        Ok(())
    }
}
