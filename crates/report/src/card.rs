//! Cards of suspicious labels, for the page of a run and for that of an audit.

use crate::error::{Error, Result};
use crate::number::{count, percent, plain};
use crate::run::Suspicious;
use crate::thumbnail::Thumbnail;

/// How many suspicious labels a page shows.
pub(crate) const MOST_CARDS: usize = 100;

/// Name of a class, or its number.
pub(crate) fn class_name(names: &[String], class: usize) -> String {
    match names.get(class).map(|name| name.trim()) {
        None | Some("") => format!("class {class}"),
        Some(name) => name.to_owned(),
    }
}

/// A picture's address, naming the item if that fails.
pub(crate) fn picture(thumbnail: Option<&Thumbnail>, index: usize) -> Result<Option<String>> {
    let address = thumbnail.map(Thumbnail::address).transpose();
    address.map_err(|source| Error::Png { index, source })
}

/// What a label looks like, or that nothing fits better.
pub(crate) fn suggestion(names: &[String], given: usize, suggested: usize) -> String {
    if given == suggested { "another class".to_owned() } else { class_name(names, suggested) }
}

/// How a suggestion compares with the truth: a kind, and words.
pub(crate) fn verdict(
    names: &[String],
    truth: usize,
    given: usize,
    suggested: usize,
) -> (&'static str, String) {
    if truth == given {
        ("right", "false alarm: the label is right".to_owned())
    } else if truth == suggested {
        ("found", "wrong label, right suggestion".to_owned())
    } else {
        ("other", format!("wrong label, truly {}", class_name(names, truth)))
    }
}

/// A sentence on how good the shown labels (given, suggested, truth) are, where the truth is known.
pub(crate) fn checked(shown: impl Iterator<Item = (usize, usize, Option<usize>)>) -> Option<String> {
    let known: Vec<(usize, usize, usize)> =
        shown.filter_map(|(given, suggested, truth)| Some((given, suggested, truth?))).collect();
    let wrong = known.iter().filter(|(given, _, truth)| truth != given).count();
    let right = known.iter().filter(|(given, suggested, truth)| truth != given && truth == suggested).count();
    (!known.is_empty()).then(|| {
        format!(
            "Of these, checked against the truth, {wrong} of {} are wrong and {right} suggestions are right.",
            known.len()
        )
    })
}

pub(crate) struct Meter {
    pub text: String,
    /// Percent of the bar.
    pub length: u32,
}

impl Meter {
    pub fn of(probability: f64) -> Self {
        // The cast makes NaN an empty bar.
        Self { text: percent(probability, 1), length: (probability.clamp(0.0, 1.0) * 100.0).round() as u32 }
    }
}

/// A card on the page of a run.
pub(crate) struct Card {
    pub index: String,
    pub path: Option<String>,
    pub given: String,
    pub suggested: String,
    pub clean: Meter,
    pub probability: Meter,
    pub distance: Option<String>,
    pub verdict: Option<(&'static str, String)>,
    pub picture: Option<String>,
}

impl Card {
    pub fn of(item: &Suspicious, names: &[String]) -> Result<Self> {
        Ok(Self {
            index: count(item.index as u64),
            path: item.path.clone(),
            given: class_name(names, item.given),
            suggested: suggestion(names, item.given, item.suggested),
            clean: Meter::of(item.clean_probability),
            probability: Meter::of(item.suggested_probability),
            distance: item.tree_distance.map(plain),
            verdict: item.truth.map(|truth| verdict(names, truth, item.given, item.suggested)),
            picture: picture(item.thumbnail.as_ref(), item.index)?,
        })
    }
}

/// How many labels look wrong, how many are shown and, where the truth is known, how good these are.
pub(crate) fn note(shown: &[Suspicious], flagged: Option<usize>) -> String {
    let most = match shown.len() {
        0 => return String::new(),
        1 => "the most suspicious one is shown".to_owned(),
        many => format!("the {many} most suspicious are shown"),
    };
    let mut words = match flagged {
        None => "The most suspicious labels, the worst first.".to_owned(),
        Some(0) => format!("No label looks wrong; {most}."),
        Some(1) => format!("1 label looks wrong; {most}."),
        Some(many) if many == shown.len() => {
            format!("{} labels look wrong, the most suspicious first.", count(many as u64))
        }
        Some(many) => format!("{} labels look wrong; {most}.", count(many as u64)),
    };
    if let Some(sentence) = checked(shown.iter().map(|item| (item.given, item.suggested, item.truth))) {
        words = format!("{words} {sentence}");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_tells_how_many_are_flagged_not_how_many_are_listed() {
        let shown = vec![Suspicious::default(); 3];
        assert_eq!(
            note(&shown, Some(1234)),
            "1\u{202f}234 labels look wrong; the 3 most suspicious are shown."
        );
        assert_eq!(note(&shown, Some(3)), "3 labels look wrong, the most suspicious first.");
        assert_eq!(note(&shown, Some(1)), "1 label looks wrong; the 3 most suspicious are shown.");
        assert_eq!(note(&shown, Some(0)), "No label looks wrong; the 3 most suspicious are shown.");
        assert_eq!(note(&shown, None), "The most suspicious labels, the worst first.");
        assert_eq!(note(&[], Some(5)), "");
    }

    #[test]
    fn a_doubted_label_without_a_better_one_is_said_to_be_another_class() {
        let names = ["cat".to_owned(), "dog".to_owned()];
        assert_eq!(suggestion(&names, 0, 1), "dog");
        assert_eq!(suggestion(&names, 0, 0), "another class");
    }
}
