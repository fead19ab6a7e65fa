//! What the page is told of rows.

use crate::content::Content;
use crate::samples::{Sample, Samples};
use crate::session::{Group, Session};
use serde::Serialize;

/// A row to look at. Whether it is flagged is not told.
#[derive(Debug, Serialize)]
pub struct Shown {
    row: u64,
    path: String,
    given: String,
    suggested: String,
    others: Vec<String>,
    picture: bool,
    columns: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
}

/// What the audit says of a row.
#[derive(Debug, Serialize)]
pub struct Evidence {
    flagged: bool,
    score: f32,
    suggested: Option<f32>,
    given: Option<f32>,
    distance: Option<u32>,
    reasons: Vec<String>,
}

impl Evidence {
    /// Of this row.
    pub fn of(sample: &Sample) -> Self {
        let reasons = sample.reasons.split("; ").filter(|reason| !reason.is_empty());
        Self {
            flagged: sample.flagged,
            score: sample.score,
            suggested: sample.probabilities[0],
            given: sample.probabilities[1],
            distance: sample.tree_distance,
            reasons: reasons.map(str::to_owned).collect(),
        }
    }
}

impl Shown {
    /// Without its columns, which are read from the data.
    pub fn of(samples: &Samples, sample: &Sample, has_evidence: bool) -> Self {
        let name = |class: u32| samples.name(class).to_owned();
        Self {
            row: sample.row,
            path: sample.path.clone(),
            given: name(sample.given),
            suggested: name(sample.suggested),
            others: samples.others(sample).into_iter().map(name).collect(),
            picture: false,
            columns: Vec::new(),
            evidence: has_evidence.then(|| Evidence::of(sample)),
        }
    }

    /// With what the data have.
    pub fn with(mut self, content: &Content) -> Self {
        self.picture = content.is_pictures();
        self.columns = content.columns(self.row);
        self
    }
}

/// A group by the names of its classes.
#[derive(Debug, Serialize)]
pub struct ShownGroup {
    given: u32,
    suggested: u32,
    names: [String; 2],
    all: usize,
    left: usize,
}

impl ShownGroup {
    /// Of this group.
    pub fn of(session: &Session, group: Group) -> Self {
        let Group { given, suggested, all, left } = group;
        let names = [given, suggested].map(|class| session.samples.name(class).to_owned());
        Self { given, suggested, names, all, left }
    }
}
