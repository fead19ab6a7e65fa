//! Are the errors semantic? Wrong labels by how their classes are related, on the page of a run and of an audit.

use crate::number::{count, percent, place, together};
use crate::shown::{Cell, Shown};

/// Wrong labels, and pairs of samples, of one relation of two classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RelationRow {
    /// `related`, `neutral` or `unrelated`.
    pub relation: String,
    /// Share of the wrong labels.
    pub share: f64,
    /// The share that chance would give.
    pub chance: f64,
    /// 95 % interval of the one by the other.
    pub interval: [f64; 2],
    /// Of the pairs of samples whose given labels have this relation, the share that truly has it; and the share of all pairs that has.
    pub pairs: Option<[f64; 2]>,
}

/// How often wrong labels name related classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Relations {
    /// The answer in a sentence.
    pub words: String,
    /// How many wrong labels were counted.
    pub labels: usize,
    /// Whether true labels were known; else it is what was believed.
    pub by_truth: bool,
    /// The relations that classes can have.
    pub rows: Vec<RelationRow>,
}

/// The same, every number a text.
pub(crate) struct RelationView {
    pub answer: String,
    pub table: Option<Shown>,
    pub precisions: Vec<String>,
}

impl RelationView {
    pub fn of(relations: &Relations) -> Self {
        let table = |row: &RelationRow| {
            let ratio = row.share / row.chance;
            let [ratio, low, high] = [ratio, row.interval[0], row.interval[1]]
                .map(|ratio| if ratio.is_finite() { place_two(ratio) } else { "–".to_owned() });
            vec![
                Cell::words(row.relation.clone()),
                Cell::number(percent(row.share, 1)).with_bar(row.share, 1.0),
                Cell::number(percent(row.chance, 1)),
                Cell::number(format!("{ratio} times")),
                Cell::number(format!("{low} to {high}")),
            ]
        };
        let truly =
            if relations.by_truth { "given and true class are" } else { "given and probable class are" };
        let head = [truly, "of the wrong labels", "by chance", "ratio", "95 % interval"];
        let note = format!("{} wrong labels were counted.", count(relations.labels as u64));
        let precision = |row: &RelationRow| {
            let [precision, chance] = row.pairs?;
            Some(together(&format!(
                "Of the pairs of samples that given labels call {}, {} are; of all pairs {}.",
                row.relation,
                percent(precision, 1),
                percent(chance, 1)
            )))
        };
        Self {
            answer: relations.words.clone(),
            table: Shown::from_rows(&head, relations.rows.iter().map(table).collect(), note),
            precisions: relations.rows.iter().filter_map(precision).collect(),
        }
    }
}

/// A ratio: one digit after the point, two below one.
fn place_two(ratio: f64) -> String {
    if ratio < 1.0 { format!("{ratio:.2}") } else { place(ratio) }
}
