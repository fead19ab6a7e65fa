//! The sentences of the page.

use super::parts::{Correction, Estimate, Member};
use super::{AuditReport, WorstLabel};
use crate::card::checked;
use crate::number::{count, percent, share_digits, together};

/// How many labels are wrong: the one number, if there is one, and the rest of the sentence.
pub(super) fn answer(audit: &AuditReport) -> (Option<String>, String) {
    let all = count(audit.samples as u64);
    if let Some(why) = &audit.cannot_judge {
        let why = why.trim();
        let end = if why.ends_with(['.', '!', '?']) { "" } else { "." };
        return match why {
            "" => (None, "These labels cannot be judged.".to_owned()),
            _ => (None, format!("These labels cannot be judged: {why}{end}")),
        };
    }
    match (audit.flagged, audit.samples) {
        (_, 0) => (None, "There are no labels.".to_owned()),
        (0, 1) => (None, "The only label does not look wrong.".to_owned()),
        (0, _) => (None, format!("None of {all} labels looks wrong.")),
        (1, _) => (Some("1".to_owned()), format!("label looks wrong of {all}.")),
        (many, _) => (Some(count(many as u64)), format!("labels look wrong of {all}.")),
    }
}

/// The estimate as one statement, all of its numbers with the digits of the first.
pub(super) fn estimate(of: &Estimate) -> String {
    let [rate, low, high] =
        [of.rate, of.interval[0], of.interval[1]].map(|number| percent(number, share_digits(of.rate)));
    together(&format!("Estimated share of wrong labels: {rate} ({low} to {high})."))
}

/// How many labels are shown, and how good they are where the truth is known.
pub(super) fn worst(shown: &[WorstLabel], flagged: usize) -> String {
    let mut words = match shown.len() {
        1 if flagged == 1 => "This label looks wrong.".to_owned(),
        many if many == flagged => format!("All {many} labels that look wrong, the most suspicious first."),
        many => format!(
            "The {many} most suspicious of {} labels that look wrong; audit.csv has them all.",
            count(flagged as u64)
        ),
    };
    words.push_str(" The percentage beside a suggestion is its probability.");
    if let Some(sentence) = checked(shown.iter().map(|item| (item.given, item.suggested, item.truth))) {
        words = format!("{words} {sentence}");
    }
    words
}

/// What corrected labels would change.
pub(super) fn correction(of: &Correction, samples: usize) -> Vec<String> {
    let file = if of.file.is_empty() { "corrected.csv" } else { &of.file };
    let changed = match of.changed {
        0 => "no label".to_owned(),
        1 => "1 label".to_owned(),
        many => format!("{} labels", count(many as u64)),
    };
    let mut sentences = vec![match of.expected_precision {
        Some(precision) if of.changed > 0 => {
            format!(
                "{file} changes {changed}; an estimated {} of these changes are right.",
                percent(precision, 1)
            )
        }
        _ => match of.unknown.as_deref().filter(|_| of.changed > 0) {
            Some(why) => {
                format!("{file} changes {changed}; how many of these changes are right is not known: {why}.")
            }
            None => format!("{file} changes {changed}."),
        },
    }];
    let right = |number: f64| {
        // The cast makes negative numbers none.
        let share = percent(number / samples as f64, 1);
        format!("{} ({share})", count(number.round() as u64))
    };
    let expected = [("as given", of.right_before), ("corrected", of.right_after)];
    let expected: Vec<String> = expected
        .into_iter()
        .filter_map(|(when, number)| {
            Some(format!("{} {when}", right(number.filter(|n| n.is_finite() && samples > 0)?)))
        })
        .collect();
    if !expected.is_empty() {
        sentences.push(format!(
            "Expected right labels of {}: {}.",
            count(samples as u64),
            expected.join(", ")
        ));
    }
    sentences.iter().map(|sentence| together(sentence)).collect()
}

/// Whether labels of a group differ.
pub(super) fn disagree(group: &[Member]) -> bool {
    group.iter().any(|member| member.label != group[0].label)
}

/// Whether a group is in more than one split, as far as splits are known.
pub(super) fn crosses(group: &[Member]) -> bool {
    let mut splits = group.iter().map(|member| &member.split).filter(|split| !split.is_empty());
    let first = splits.next();
    splits.any(|split| Some(split) != first)
}

/// All groups of near-duplicates in a few sentences.
pub(super) fn duplicates(groups: &[Vec<Member>]) -> String {
    let several = |number: usize| match number {
        1 => "1 group".to_owned(),
        _ => format!("{} groups", count(number as u64)),
    };
    let number = |is: fn(&[Member]) -> bool| groups.iter().filter(|group| is(group)).count();
    let samples: usize = groups.iter().map(Vec::len).sum();
    let mut words =
        format!("{} of near-duplicates, {} samples in all.", several(groups.len()), count(samples as u64));
    let (apart, across) = (number(disagree), number(crosses));
    if apart > 0 {
        words.push_str(&format!(
            " In {} labels disagree, so that at least one of them is wrong.",
            several(apart)
        ));
    }
    if across > 0 {
        let verb = if across == 1 { "is" } else { "are" };
        words.push_str(&format!(
            " {} {verb} in more than one split, which makes results on the test set too good.",
            several(across)
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_has_the_same_digits_in_all_its_numbers() {
        let words = |rate, interval| estimate(&Estimate { rate, interval }).replace('\u{a0}', " ");
        assert!(words(0.031, [0.024, 0.0406]).ends_with("3.1 % (2.4 % to 4.1 %)."));
        assert!(words(0.0071, [0.0008, 0.0152]).ends_with("0.71 % (0.08 % to 1.52 %)."));
    }

    #[test]
    fn groups_of_duplicates_are_summed_up() {
        let member = |label, split: &str| Member { label, split: split.into(), ..Member::default() };
        let groups = [
            vec![member(0, "train"), member(1, "train")],
            vec![member(0, "train"), member(0, "test"), member(0, "")],
            vec![member(2, ""), member(2, "train")],
        ];
        let words = duplicates(&groups);
        assert!(
            words.starts_with("3 groups of near-duplicates, 7 samples in all. In 1 group labels disagree")
        );
        assert!(words.contains("1 group is in more than one split"));
        assert_eq!(duplicates(&groups[2..]), "1 group of near-duplicates, 2 samples in all.");
        assert!(!disagree(&[]) && !crosses(&[]));
    }

    #[test]
    fn a_correction_tells_what_is_known_and_no_more() {
        let all = Correction {
            file: String::new(),
            changed: 1,
            expected_precision: Some(0.9),
            unknown: None,
            right_before: Some(90.0),
            right_after: Some(95.6),
        };
        let words = correction(&all, 100).join(" ").replace('\u{a0}', " ");
        assert!(
            words.starts_with(
                "corrected.csv changes 1 label; an estimated 90.0 % of these changes are right."
            )
        );
        assert!(
            words.ends_with("Expected right labels of 100: 90 (90.0 %) as given, 96 (95.6 %) corrected.")
        );
        let unknown = Correction { changed: 3, unknown: Some("too few".into()), ..Correction::default() };
        assert_eq!(
            correction(&unknown, 100),
            ["corrected.csv changes 3 labels; how many of these changes are right is not known: too few."]
        );
        let odd = Correction { right_after: Some(f64::NAN), ..Correction::default() };
        assert_eq!(correction(&odd, 100), ["corrected.csv changes no label."]);
    }
}
