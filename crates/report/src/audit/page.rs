//! The page: every number already a text, so that the templates only place and escape.

use askama::Template;

use super::cards::{Group, Small, WorstCard, groups, outliers};
use super::parts::{Estimate, NextStep};
use super::{AuditReport, tables, words};
use crate::card::{MOST_CARDS, class_name};
use crate::error::Result;
use crate::histogram::{self, Histogram, Separation};
use crate::matrix::{MOST_COLUMNS, MatrixView, lay_out};
use crate::number::{count, duration, place, plain, share};
use crate::plot::{Caption, Plot, Recall};
use crate::relations::RelationView;
use crate::scale::round_steps;
use crate::shown::Shown;
use crate::summary::Tile;

#[derive(Template)]
#[template(path = "audit.html")]
pub(super) struct Page<'a> {
    audit: &'a AuditReport,
    heading: String,
    facts: Vec<String>,
    /// The one number, and the rest of the sentence.
    answer: (Option<String>, String),
    estimate: Option<(String, Interval)>,
    classes: Option<(Shown, Option<Shown>)>,
    confusions: Option<(Shown, Option<Shown>)>,
    sources: Option<(Shown, Option<Shown>)>,
    matrix: Option<MatrixView>,
    relations: Option<RelationView>,
    worst_title: &'static str,
    worst_note: String,
    worst: Vec<WorstCard>,
    next: &'a [NextStep],
    correction: Vec<String>,
    groups: Vec<Group>,
    groups_note: String,
    outliers: Vec<Small>,
    outliers_note: String,
    annotators: Option<(Shown, Option<Shown>)>,
    histogram: Option<Histogram>,
    ranking: Option<Plot>,
    tiles: Vec<Tile<'a>>,
    judging: Option<Judged<'a>>,
}

struct Judged<'a> {
    title: &'static str,
    words: &'a [String],
    experts: Option<Shown>,
    facts: Vec<(&'static str, String)>,
}

/// The estimate as a drawing: places along the axis.
struct Interval {
    low: String,
    width: String,
    rate: String,
    ticks: Vec<(String, String)>,
    description: String,
}

impl Interval {
    const LEFT: f64 = 14.0;
    const LENGTH: f64 = 432.0;

    /// `None` unless all numbers are shares.
    fn of(estimate: &Estimate) -> Option<Self> {
        let Estimate { rate, interval: [low, high] } = *estimate;
        if ![rate, low, high].iter().all(|number| (0.0..=1.0).contains(number)) {
            return None;
        }
        let ticks = round_steps(0.0, high.max(rate).max(1e-4), 4.0);
        let end = ticks.last().copied().unwrap_or(1.0);
        let at = |number: f64| Self::LEFT + number / end * Self::LENGTH;
        Some(Self {
            low: place(at(low)),
            width: place((at(high) - at(low)).max(1.0)),
            rate: place(at(rate)),
            ticks: ticks
                .iter()
                .map(|tick| (place(at(*tick)), format!("{} %", plain((tick * 1e6).round() / 1e4))))
                .collect(),
            description: format!(
                "Estimate {} within an interval from {} to {}",
                share(rate),
                share(low),
                share(high)
            ),
        })
    }
}

impl<'a> Page<'a> {
    pub fn of(audit: &'a AuditReport) -> Result<Self> {
        // What depends on a judgement is there only if there is one.
        let judged = audit.cannot_judge.is_none().then_some(audit).filter(|audit| audit.samples > 0);
        let shown = judged
            .map_or(&[][..], |audit| &audit.worst[..audit.worst.len().min(MOST_CARDS).min(audit.flagged)]);
        let names = &audit.class_names;
        Ok(Self {
            audit,
            heading: if audit.title.is_empty() { "Untitled audit".to_owned() } else { audit.title.clone() },
            facts: facts(audit),
            answer: words::answer(audit),
            estimate: judged.and_then(|audit| {
                let estimate = audit.estimate.as_ref()?;
                Some((words::estimate(estimate), Interval::of(estimate)?))
            }),
            classes: judged.and_then(tables::classes).map(Shown::folded),
            confusions: judged.and_then(tables::confusions).map(Shown::folded),
            sources: judged.and_then(|audit| tables::sources(&audit.sources)).map(Shown::folded),
            matrix: judged.and_then(|audit| {
                let matrix = audit.matrix.as_ref().filter(|matrix| matrix.classes() <= MOST_COLUMNS)?;
                lay_out(matrix, |class| class_name(names, class), "given", "probable")
            }),
            relations: judged.and_then(|audit| audit.relations.as_ref()).map(RelationView::of),
            worst_title: match shown.len() {
                MOST_CARDS if audit.flagged > MOST_CARDS => "The hundred worst",
                _ => "Labels that look wrong",
            },
            worst_note: if shown.is_empty() { String::new() } else { words::worst(shown, audit.flagged) },
            worst: shown.iter().map(|item| WorstCard::of(item, names)).collect::<Result<_>>()?,
            next: &audit.next,
            correction: judged
                .and_then(|audit| audit.correction.as_ref())
                .map_or_else(Vec::new, |correction| words::correction(correction, audit.samples)),
            groups: groups(&audit.duplicates, names)?,
            groups_note: format!(
                "{} {}",
                words::duplicates(&audit.duplicates),
                tables::more(audit.duplicates.len(), ["group", "groups"])
            ),
            outliers: outliers(&audit.outliers, names)?,
            outliers_note: format!(
                "Samples that fit no class, the strangest first. {}",
                tables::more(audit.outliers.len(), ["outlier", "outliers"])
            ),
            annotators: tables::annotators(&audit.annotators).map(Shown::folded),
            histogram: judged.and_then(|audit| histogram::draw(audit.scores.as_ref()?, &histogram::SCORE)),
            ranking: judged.and_then(ranking),
            tiles: judged.map_or_else(Vec::new, |audit| Tile::all(&audit.measures)),
            judging: judging(audit),
        })
    }

    /// Whether there is anything to say on where wrong labels are.
    fn has_places(&self) -> bool {
        self.classes.is_some() || self.confusions.is_some() || self.sources.is_some() || self.matrix.is_some()
    }

    /// Whether there is anything to repeat the audit by.
    fn has_origin(&self) -> bool {
        let AuditReport { command, version, hardware, when, settings, .. } = self.audit;
        [command, version, hardware, when, settings].iter().any(|text| !text.is_empty())
    }
}

fn facts(audit: &AuditReport) -> Vec<String> {
    let several = |number: usize, one: &str, many: &str| {
        format!("{} {}", count(number as u64), if number == 1 { one } else { many })
    };
    let classes = audit.class_names.len().max(audit.classes.len());
    let seconds = audit.judging.as_ref().and_then(|judging| judging.seconds);
    let facts = [
        audit.when.clone(),
        several(audit.samples, "label", "labels"),
        if classes == 0 { String::new() } else { several(classes, "class", "classes") },
        seconds.map_or_else(String::new, duration),
        audit.hardware.clone(),
    ];
    facts.into_iter().filter(|fact| !fact.is_empty()).collect()
}

fn judging(audit: &AuditReport) -> Option<Judged<'_>> {
    let judging = audit.judging.as_ref()?;
    let facts = [("Exponent", judging.exponent.map(plain)), ("Time", judging.seconds.map(duration))];
    let judged = Judged {
        title: if audit.cannot_judge.is_some() { "What was tried" } else { "How labels were judged" },
        words: &judging.words,
        experts: tables::experts(&judging.experts),
        facts: facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect(),
    };
    let is_empty = judged.words.is_empty() && judged.experts.is_none() && judged.facts.is_empty();
    (!is_empty).then_some(judged)
}

/// How well the list finds wrong labels.
fn ranking(audit: &AuditReport) -> Option<Plot> {
    let base = match &audit.scores {
        Some(Separation::Known { right, wrong }) if !wrong.is_empty() => {
            Some(wrong.len() as f64 / (right.len() + wrong.len()) as f64)
        }
        _ => None,
    };
    let caption = Caption::new(
        "Wrong labels found",
        "Labels listed by score: how many of the listed ones are wrong (precision), and how many of the wrong ones are listed (recall).",
        "wrong labels that are listed (recall)",
        "listed labels that are wrong (precision)",
    );
    Recall { caption, curves: vec![audit.ranking.clone()?], base }.draw()
}
