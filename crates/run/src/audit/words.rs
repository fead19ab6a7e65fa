//! What people see at the end of an audit.

use super::account::Account;
use super::evidence::percent;
use super::flags::write_sources;

/// Rows of each table.
const SHOWN: usize = 5;

/// A short summary: how many labels are wrong, in which classes, and what they should probably be.
pub fn describe(account: &Account) -> String {
    let classes = account.classes();
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    let samples = account.audit.findings().len();
    if let Some(why) = account.cannot_judge() {
        line(format!("the labels cannot be judged: {why}"));
    } else {
        line(format!("{} of {samples} labels look wrong", account.audit.flagged()));
    }
    if let Some(estimate) = account.judged() {
        let [low, high] = estimate.interval;
        line(format!(
            "estimated share of wrong labels: {} ({} to {})",
            percent(estimate.rate),
            percent(low),
            percent(high)
        ));
        let correction = account.correction();
        let file = if account.place.is_some() { "corrected.csv" } else { "a correction" };
        if let Some(precision) = correction.expected_precision {
            line(format!(
                "{file} changes {} labels; {} of the changes are expected to be right",
                correction.changed,
                percent(precision)
            ));
        } else if let Some(why) = correction.unknown {
            line(format!(
                "{file} changes {} labels; how many of the changes are right is not known: {why}",
                correction.changed
            ));
        }
        let mut worst: Vec<usize> = (0..classes.len()).filter(|&c| estimate.given_counts[c] > 0).collect();
        worst.sort_by(|&a, &b| estimate.wrong_by_given[b].total_cmp(&estimate.wrong_by_given[a]));
        line(format!("\n{:<28}{:>8}{:>12}", "labelled", "samples", "wrong"));
        for &class in worst.iter().take(SHOWN) {
            let wrong = percent(estimate.wrong_by_given[class]);
            line(format!("{:<28}{:>8}{wrong:>12}", shorten(&classes[class]), estimate.given_counts[class]));
        }
        let confusions = estimate.confusions();
        if !confusions.is_empty() {
            line(format!("\n{:<28}{:<28}{:>8}{:>10}", "probably", "labelled", "samples", "distance"));
        }
        for (true_class, given, count) in confusions.into_iter().take(SHOWN) {
            let distance =
                account.tree.map_or("-".into(), |tree| tree.distance(given, true_class).to_string());
            let (probably, labelled) = (shorten(&classes[true_class]), shorten(&classes[given]));
            line(format!("{probably:<28}{labelled:<28}{count:>8.0}{distance:>10}"));
        }
        line(write_sources(&account.sources()));
    }
    if let Some(agreed) = &account.agreed {
        line(agreed.words(account.material.train.given()));
    }
    account.notes.iter().for_each(|note| line(format!("note: {note}")));
    if let Some(measures) = &account.measures {
        line(known(&[
            ("share of wrong labels", measures.noise_true),
            ("average precision", measures.average_precision),
            ("flags that are correct", measures.flag_precision),
            ("wrong labels flagged", measures.flag_recall),
            ("true class suggested", measures.suggestion_accuracy),
        ]));
    }
    text
}

/// How good an audit is, where the truth is known.
pub(super) fn known(measures: &[(&str, Option<f64>)]) -> String {
    let mut text = "compared with the known truth\n".to_owned();
    for (name, value) in measures.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        text += &format!("  {name:<26}{:>8}\n", percent(value));
    }
    text
}

/// In words: whether the estimated share of wrong labels, and the upper end of its interval, are above what is allowed.
pub fn check(most: f64, rate: f64, high: f64) -> String {
    let most_in_words = percent(most);
    if rate > most {
        format!("check: above {most_in_words}\n")
    } else if high > most {
        format!("check: not above {most_in_words}, but its interval is\n")
    } else {
        format!("check: not above {most_in_words}\n")
    }
}

/// A name that fits into its column, without control characters.
pub(super) fn shorten(name: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    if name.chars().count() <= 26 {
        return name.chars().map(clean).collect();
    }
    name.chars().take(25).map(clean).chain(['…']).collect()
}
