//! The page: every number already a text, so that the templates only place and escape.

use askama::Template;

use crate::card::{Card, MOST_CARDS, class_name, note};
use crate::chart::{Chart, Curve, line_chart};
use crate::error::Result;
use crate::histogram::{self, Histogram, Separation};
use crate::matrix::{MatrixView, lay_out};
use crate::number::{duration, plain};
use crate::plot::{Caption, Plot, Recall, RecallCurve};
use crate::relations::RelationView;
use crate::run::{ConfusionRows, RunReport};
use crate::scale::Scale;
use crate::summary::Tile;
use negscale_records::EpochRecord;

#[derive(Template)]
#[template(path = "report.html")]
pub(crate) struct Page<'a> {
    run: &'a RunReport,
    heading: String,
    tiles: Vec<Tile<'a>>,
    duration: String,
    charts: Vec<Chart>,
    histogram: Option<Histogram>,
    audit: Option<Plot>,
    relations: Option<RelationView>,
    confusion: Option<MatrixView>,
    noise: Option<MatrixView>,
    cards: Vec<Card>,
    cards_note: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl<'a> Page<'a> {
    pub(crate) fn of(run: &'a RunReport) -> Result<Self> {
        let shown = &run.suspicious[..run.suspicious.len().min(MOST_CARDS)];
        let (columns, rows) = all_numbers(&run.records);
        let seconds: f64 = run.records.iter().map(|r| r.seconds).filter(|s| s.is_finite()).sum();
        Ok(Self {
            run,
            heading: if run.title.is_empty() { "Untitled run".to_owned() } else { run.title.clone() },
            tiles: Tile::all(&run.summary),
            duration: if run.records.is_empty() { String::new() } else { duration(seconds) },
            charts: charts(&run.records),
            histogram: run.separation.as_ref().and_then(|values| histogram::draw(values, &histogram::CLEAN)),
            audit: audit(run),
            relations: run.relations.as_ref().map(RelationView::of),
            confusion: run.confusion.as_ref().and_then(|(rows, matrix)| {
                let rows = if *rows == ConfusionRows::Given { "given" } else { "true" };
                lay_out(matrix, |class| class_name(&run.class_names, class), rows, "predicted")
            }),
            noise: run
                .noise
                .as_ref()
                .and_then(|m| lay_out(m, |class| class_name(&run.class_names, class), "true", "given")),
            cards: shown.iter().map(|item| Card::of(item, &run.class_names)).collect::<Result<_>>()?,
            cards_note: note(shown, run.flagged),
            columns,
            rows,
        })
    }
}

fn charts(records: &[EpochRecord]) -> Vec<Chart> {
    type Measured = fn(&EpochRecord) -> Option<f64>;
    let epochs: Vec<u64> = records.iter().map(|r| r.epoch).collect();
    let curves = |of: &[(&str, Measured)]| -> Vec<Curve> {
        of.iter()
            .map(|(name, get)| Curve { name: (*name).to_owned(), values: records.iter().map(get).collect() })
            .collect()
    };
    let mut terms: Vec<&String> = records.iter().flat_map(|r| r.losses.keys()).collect();
    terms.sort();
    terms.dedup();
    let losses = terms.into_iter().map(|name| Curve {
        name: name.clone(),
        values: records.iter().map(|r| r.losses.get(name).copied()).collect(),
    });
    let accuracies = curves(&[
        ("test", |r| r.test_accuracy),
        ("training, labels as given", |r| r.train_accuracy),
        ("noisy validation", |r| r.validation_accuracy),
    ]);
    let fits = curves(&[
        ("clean labels, as given", |r| r.fit_clean),
        ("wrong labels, as given: memorised", |r| r.fit_wrong_given),
        ("wrong labels, true class: recovered", |r| r.fit_wrong_true),
    ]);
    let signals =
        curves(&[("separation AUC", |r| r.separation_auc), ("noise estimate", |r| r.noise_estimate)]);
    let selection = curves(&[
        ("precision: right among those selected as clean", |r| r.selection_precision),
        ("recall: selected as clean among the right ones", |r| r.selection_recall),
    ]);
    let rates = curves(&[("learning rate", |r| Some(r.learning_rate))]);
    let drawn = [
        line_chart(
            "accuracy",
            "Accuracy",
            "How often predictions agree with labels.",
            Scale::Percent,
            &epochs,
            accuracies,
        ),
        line_chart(
            "memorisation",
            "Memorisation",
            "Wrong labels predicted as given were memorised; those predicted as their true class were recovered.",
            Scale::FullPercent,
            &epochs,
            fits,
        ),
        line_chart("loss", "Loss terms", "Mean over each epoch.", Scale::Plain, &epochs, losses.collect()),
        line_chart("rate", "Learning rate", "At the end of each epoch.", Scale::Plain, &epochs, rates),
        line_chart(
            "signals",
            "Right against wrong labels",
            "How well clean probabilities separate right from wrong labels (AUC), and the estimated share of wrong labels.",
            Scale::Unit,
            &epochs,
            signals,
        ),
        line_chart(
            "selection",
            "Selection",
            "Precision: of the labels selected as clean, the share that is right. Recall: of the right labels, the share selected as clean.",
            Scale::Percent,
            &epochs,
            selection,
        ),
    ];
    let noted = NOTED.into_iter().map(|(begin, id, title, note)| {
        line_chart(id, title, note, Scale::Plain, &epochs, noted(records, begin))
    });
    drawn.into_iter().chain(noted).flatten().collect()
}

/// Notes that are drawn by epoch: the prefix of their names, and anchor, title and note of their chart. A note belongs to the
/// longest prefix that fits.
const NOTED: [(&str, &str, &str, &str); 7] = [
    (
        "similarity ",
        "similarity",
        "Similarity of features",
        "Mean cosine of pairs of samples, by how their given classes are related.",
    ),
    (
        "similarity true ",
        "similarity-true",
        "Similarity by true classes",
        "Mean cosine of pairs of samples, by how their true classes are related.",
    ),
    (
        "similarity clean-clean ",
        "similarity-clean-clean",
        "Similarity of clean-clean pairs",
        "Both labels are right; by how the true classes are related.",
    ),
    (
        "similarity clean-noisy ",
        "similarity-clean-noisy",
        "Similarity of clean-noisy pairs",
        "One label is right, one wrong; by how the true classes are related.",
    ),
    (
        "similarity cross-noise ",
        "similarity-cross-noise",
        "Similarity of cross-noise pairs",
        "A right label and a wrong one of the same class; by how the true classes are related.",
    ),
    (
        "step change ",
        "steps",
        "Change of similarity per step",
        "Mean absolute change of a pair's cosine over one training step.",
    ),
    (
        "drift ",
        "drift",
        "Change of similarity to first order",
        "Mean absolute change of a pair's cosine per size of a gradient step on free features.",
    ),
];
/// Relations in the order of the tree, before all other names.
const RELATIONS: [&str; 5] = ["same", "related", "neutral", "unrelated", "different"];

/// A curve for each note with this prefix, named by the rest.
fn noted(records: &[EpochRecord], begin: &str) -> Vec<Curve> {
    let belongs = |name: &str| {
        let begins = NOTED.iter().map(|noted| noted.0).filter(|begin| name.starts_with(begin));
        begins.max_by_key(|begin| begin.len()) == Some(begin)
    };
    let mut names: Vec<&str> = records.iter().flat_map(|r| r.more.keys()).map(String::as_str).collect();
    names.retain(|name| belongs(name));
    let relation = |name: &str| RELATIONS.iter().position(|known| *known == &name[begin.len()..]);
    names.sort_unstable_by_key(|name| (relation(name).unwrap_or(RELATIONS.len()), *name));
    names.dedup();
    let curve = |name: &str| Curve {
        name: name[begin.len()..].to_owned(),
        values: records.iter().map(|r| r.more.get(name).copied()).collect(),
    };
    names.into_iter().map(curve).collect()
}

/// How well wrong labels are found, where the truth is known.
fn audit(run: &RunReport) -> Option<Plot> {
    let Separation::Known { right, wrong } = run.separation.as_ref()? else { return None };
    let all = right.len() + wrong.len();
    let curve = run.ranking.clone().or_else(|| {
        let scores: Vec<f64> = right.iter().chain(wrong).map(|clean| -f64::from(*clean)).collect();
        let is_wrong: Vec<bool> = (0..all).map(|at| at >= right.len()).collect();
        RecallCurve::of("by clean probability", &scores, &is_wrong)
    })?;
    let caption = Caption::new(
        "Wrong labels found",
        "Labels listed by suspicion: how many of the listed ones are wrong (precision), and how many of the wrong ones are listed (recall).",
        "wrong labels that are listed (recall)",
        "listed labels that are wrong (precision)",
    );
    Recall { caption, curves: vec![curve], base: Some(wrong.len() as f64 / all as f64) }.draw()
}

/// The table behind the charts: a column per number that was ever recorded.
fn all_numbers(records: &[EpochRecord]) -> (Vec<String>, Vec<Vec<String>>) {
    let scalars: Vec<Vec<(String, f64)>> = records.iter().map(EpochRecord::scalars).collect();
    let mut columns: Vec<String> = Vec::new();
    for (tag, _) in scalars.iter().flatten() {
        if !columns.contains(tag) {
            columns.push(tag.clone());
        }
    }
    let rows = records.iter().zip(&scalars).map(|(record, scalars)| {
        let cell = |tag: &String| scalars.iter().find(|s| s.0 == *tag).map_or(String::new(), |s| plain(s.1));
        std::iter::once(record.epoch.to_string()).chain(columns.iter().map(cell)).collect()
    });
    let rows = rows.collect();
    (columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_on_similarity_are_drawn_by_kind_of_pair_and_in_the_order_of_relations() {
        let mut record = EpochRecord::new(0, 1.0, 0.1);
        for name in ["unrelated", "same", "related", "true same", "clean-clean same", "odd"] {
            record.more.insert(format!("similarity {name}"), 0.5);
        }
        record.more.insert("step change same".into(), 0.1);
        record.more.insert("test top-5".into(), 0.9);
        let names = |begin| {
            noted(std::slice::from_ref(&record), begin).into_iter().map(|c| c.name).collect::<Vec<_>>()
        };
        assert_eq!(names("similarity "), ["same", "related", "unrelated", "odd"]);
        assert_eq!(names("similarity true "), ["same"]);
        assert_eq!(names("similarity cross-noise "), [""; 0]);
        assert_eq!(names("step change "), ["same"]);
        let ids: Vec<&str> = charts(&[record]).iter().map(|chart| chart.id).collect();
        assert_eq!(ids, ["rate", "similarity", "similarity-true", "similarity-clean-clean", "steps"]);
    }
}
