//! What a review said of labels: the columns of a file that `negscale review export` wrote.
//!
//! Such a file has the columns `label`, `given`, `changed` and `review`. The last is `kept`, `changed`, `dropped`, `unsure`, or blank for
//! rows that nobody looked at. Rows that were dropped have a blank label, since no label is right for them, and are left out
//! of the data; the rows that are left are counted from 0 again.

use super::labels::{Column, Vocabulary};
use crate::{Dataset, Result, Reviewed};

/// Columns of an exported file that tell it from any other, beside that of labels.
const MARKS: [&str; 3] = ["review", "given", "changed"];

/// Where the columns of a review are.
pub(super) struct ReviewPlaces {
    /// What was decided.
    pub word: usize,
    /// The label before.
    pub before: usize,
}

impl ReviewPlaces {
    /// Of a header; nothing of a file that is no export, or if another column is asked for as labels.
    pub fn find(header: &[&str], label: usize) -> Option<Self> {
        let place = |name: &str| header.iter().position(|column| *column == name);
        let [word, before, _changed] = MARKS.map(place);
        (header.get(label) == Some(&"label")).then_some(Self { word: word?, before: before? })
    }
}

/// What was decided, and the labels before.
#[derive(Debug)]
pub struct ReviewColumns {
    word: Column,
    before: Column,
    /// Labels that differ from those before although nobody looked at them.
    by_audit: Vec<bool>,
}

impl Default for ReviewColumns {
    fn default() -> Self {
        Self { word: Column::new(false), before: Column::new(false), by_audit: Vec::new() }
    }
}

impl ReviewColumns {
    /// Adds a row, and says whether it was dropped.
    pub(super) fn push(&mut self, word: &str, before: &str, label: &str) -> Result<bool, String> {
        if !["", "kept", "changed", "dropped", "unsure"].contains(&word) {
            return Err(format!(
                "`{}` in the column `review`: it must be kept, changed, dropped, unsure or blank, as `negscale review export` writes it; \
                 rename the column if it means something else",
                word.escape_debug()
            ));
        }
        self.word.push(word);
        self.before.push(before);
        self.by_audit.push(word.is_empty() && label != before);
        Ok(word == "dropped")
    }

    /// These rows, in this order.
    pub(super) fn pick(&self, order: &[usize]) -> Self {
        Self {
            word: self.word.pick(order),
            before: self.before.pick(order),
            by_audit: order.iter().map(|&row| self.by_audit[row]).collect(),
        }
    }

    /// Whether rows were dropped.
    pub(super) fn has_dropped(&self) -> bool {
        self.word.words().any(|word| word == "dropped")
    }

    /// Classes of labels of which those of dropped rows are blank: these are of the first class until they are left out.
    pub(super) fn classes(&self, labels: &Column, vocabulary: &Vocabulary) -> Result<Vec<u32>, String> {
        if !self.has_dropped() {
            return vocabulary.apply(labels);
        }
        Ok(vocabulary.apply_to_some(labels)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Leaves dropped rows out, and says what the review changed; a sentence for people as well.
    pub(super) fn apply(&self, dataset: Dataset, vocabulary: &Vocabulary) -> Result<(Dataset, String)> {
        let words: Vec<&str> = self.word.words().collect();
        let count = |wanted: &str| words.iter().filter(|word| **word == wanted).count();
        let left: Vec<usize> = (0..words.len()).filter(|&row| words[row] != "dropped").collect();
        let right = dataset.truth().map(|truth| {
            let before = known(&self.before, vocabulary);
            let was_right = |row: &usize| before[*row] == Some(truth[*row]);
            let is_right = |row: &&usize| dataset.given()[**row] == truth[**row];
            let after = left.iter().filter(is_right).count() as f64 / left.len().max(1) as f64;
            [(0..words.len()).filter(was_right).count() as f64 / words.len().max(1) as f64, after]
        });
        let reviewed = Reviewed {
            kept: count("kept"),
            changed: count("changed"),
            dropped: count("dropped"),
            unsure: count("unsure"),
            by_audit: self.by_audit.iter().filter(|is| **is).count(),
            right,
        };
        let dataset = if left.len() < words.len() { dataset.subset(&left)? } else { dataset };
        Ok((dataset.with_review(reviewed), reviewed.to_string()))
    }
}

/// Classes of labels that may be of a class that is no more, which have none.
fn known(column: &Column, vocabulary: &Vocabulary) -> Vec<Option<u32>> {
    let class = |word: &str| {
        let mut alone = Column::new(false);
        alone.push(word);
        vocabulary.apply_to_some(&alone).ok()?[0]
    };
    let classes: Vec<Option<u32>> = column.distinct().map(class).collect();
    column.places().iter().map(|&place| classes[place as usize]).collect()
}

#[cfg(test)]
mod tests {
    use crate::own::{OwnOptions, open};
    use crate::{Reviewed, Splits};
    use std::fs;
    use std::path::Path;

    /// Six rows, of which the last is dropped, and what is read of them with these lines.
    fn read(here: &Path, head: &str, lines: &str, truth: Option<&str>) -> crate::Result<Splits> {
        let rows: String = (0..6).map(|row| format!("{row}.5,{}.25\n", row * 2)).collect();
        fs::write(here.join("t.csv"), format!("x,y\n{rows}")).unwrap();
        fs::write(here.join("c.csv"), format!("{head}\n{lines}")).unwrap();
        let labels = Some(here.join("c.csv"));
        open(
            &here.join("t.csv"),
            &OwnOptions { labels, truth_column: truth.map(str::to_owned), ..OwnOptions::default() },
        )
    }

    const HEAD: &str = "index,path,label,given,changed,review,true";
    const LINES: &str = "0,,cat,cat,false,kept,cat\n1,,dog,cat,true,changed,dog\n2,,cat,dog,true,,dog\n\
                         3,,dog,dog,false,unsure,dog\n5,,,'=old,false,dropped,cat\n4,,dog,dog,false,,dog\n";

    #[test]
    fn dropped_rows_are_left_out_and_what_changed_is_told() {
        let here = tempfile::tempdir().unwrap();
        let splits = read(here.path(), HEAD, LINES, Some("true")).unwrap();
        assert_eq!(splits.train.classes(), ["cat", "dog"]);
        assert_eq!(splits.train.given(), [0, 1, 0, 1, 1]);
        let found = *splits.train.review().unwrap();
        // Right before: rows 0, 3, 4 and 2 of 6; now all but row 2 of 5.
        let expected = Reviewed {
            kept: 1,
            changed: 1,
            dropped: 1,
            unsure: 1,
            by_audit: 1,
            right: Some([4.0 / 6.0, 4.0 / 5.0]),
        };
        assert_eq!(found, expected);
        let note = splits.notes.last().unwrap();
        assert!(note.contains("dropped 1 samples") && note.contains("66.7 % before, 80.0 % now"), "{note}");
        // Without true labels nothing is said of how many are right.
        let without = read(here.path(), HEAD, LINES, None).unwrap();
        assert_eq!((without.train.len(), without.train.review().unwrap().right), (5, None));
    }

    #[test]
    fn a_blank_label_that_nobody_dropped_and_an_unknown_word_are_errors_with_their_line() {
        let here = tempfile::tempdir().unwrap();
        let error = |lines: &str| read(here.path(), HEAD, lines, Some("true")).unwrap_err().to_string();
        let blank = error("0,,cat,cat,false,kept,cat\n1,,,cat,false,unsure,cat\n");
        assert!(blank.contains("line 3") && blank.contains("the label is missing"), "{blank}");
        let word = error("0,,cat,cat,false,fine,cat\n");
        assert!(word.contains("line 2") && word.contains("`fine` in the column `review`"), "{word}");
    }

    #[test]
    fn a_column_review_in_any_other_file_means_nothing() {
        let here = tempfile::tempdir().unwrap();
        let lines: String =
            (0..6).map(|row| format!("{row},{},dropped it at once\n", ["a", "b"][row % 2])).collect();
        let splits = read(here.path(), "index,label,review", &lines, None).unwrap();
        assert_eq!((splits.train.len(), splits.train.review()), (6, None));
    }
}
