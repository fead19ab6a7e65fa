//! What the page is told of rows.

use crate::content::Content;
use crate::evidence::{Position, position};
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
    /// Where the two classes are in the tree; of a blind row as of any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Position>,
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
    near: Vec<Near>,
}

/// A row near another.
#[derive(Debug, Serialize)]
struct Near {
    row: u64,
    label: String,
    picture: bool,
    words: Option<String>,
}

impl Evidence {
    /// Of this row.
    pub fn of(samples: &Samples, sample: &Sample, content: &Content) -> Self {
        let near = sample.near.iter().map(|neighbour| Near {
            row: neighbour.row,
            label: samples.name(neighbour.class).to_owned(),
            picture: content.is_pictures(),
            words: content.brief(neighbour.row),
        });
        let reasons = sample.reasons.split("; ").filter(|reason| !reason.is_empty());
        Self {
            flagged: sample.flagged,
            score: sample.score,
            suggested: sample.probabilities[0],
            given: sample.probabilities[1],
            distance: sample.tree_distance,
            reasons: reasons.map(str::to_owned).collect(),
            near: near.collect(),
        }
    }
}

impl Shown {
    /// With what the data have.
    pub fn of(samples: &Samples, sample: &Sample, content: &Content, has_evidence: bool) -> Self {
        let name = |class: u32| samples.name(class).to_owned();
        Self {
            row: sample.row,
            path: sample.path.clone(),
            given: name(sample.given),
            suggested: name(sample.suggested),
            others: samples.others(sample).into_iter().map(name).collect(),
            picture: content.is_pictures(),
            columns: content.columns(sample.row),
            tree: samples.tree.as_ref().map(|tree| position(tree, sample.given, sample.suggested)),
            evidence: has_evidence.then(|| Evidence::of(samples, sample, content)),
        }
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
