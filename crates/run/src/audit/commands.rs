//! Commands for people to copy: the same data again, and training on its corrected labels.

use negscale_data::own::{Header, OwnOptions};
use std::path::Path;

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn flag(name: &str, value: Option<&str>) -> String {
    value.map_or(String::new(), |value| format!(" {name} {}", quoted(value)))
}

fn list(name: &str, values: &[String]) -> String {
    flag(name, (!values.is_empty()).then(|| values.join(",")).as_deref())
}

fn path(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

/// Flags with which the same data is audited again.
pub fn again(own: &OwnOptions) -> String {
    [
        flag("--labels", path(own.labels.as_deref()).as_deref()),
        flag("--header", (own.header != Header::Auto).then(|| own.header.word())),
        flag("--label-column", own.label_column.as_deref()),
        list("--label-columns", &own.label_columns),
        flag("--source-column", own.source_column.as_deref()),
        flag("--truth-column", own.truth_column.as_deref()),
        flag("--text-column", own.text_column.as_deref()),
        both(own),
        list("--ignore-columns", &own.ignore_columns),
    ]
    .concat()
}

/// The command that trains on corrected labels.
pub fn train(data: &str, own: &OwnOptions, corrected: &str) -> String {
    // In a table, what was a label or a source is no feature.
    let mut ignored = own.ignore_columns.clone();
    let mut label = None;
    if own.labels.is_none() {
        ignored.extend(own.label_columns.iter().chain(&own.source_column).cloned());
        label = own.label_column.as_deref();
    }
    let flags = [flag("--label-column", label), both(own), list("--ignore-columns", &ignored)].concat();
    format!("negscale train --data {} --labels {}{flags}", quoted(data), quoted(corrected))
}

/// The command that looks through what an audit flagged.
pub fn review(place: &Path) -> String {
    format!("negscale review {}", quoted(&place.display().to_string()))
}

/// The command that audits the data as part of a pipeline; `more` is what else it needs.
pub fn check(data: &str, own: &OwnOptions, more: &str, most: f64) -> String {
    format!("negscale audit {}{}{more} --check {most:.2}", quoted(data), again(own))
}

/// What audits and trainings have in common.
fn both(own: &OwnOptions) -> String {
    [
        flag("--array", own.array.as_deref()),
        list("--feature-columns", &own.feature_columns),
        flag("--id-column", own.id_column.as_deref()),
        flag("--class-names", path(own.class_names.as_deref()).as_deref()),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_columns_that_the_data_needs_and_quote_what_a_shell_would_take_apart() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let table = OwnOptions {
            label_column: Some("my kind".into()),
            source_column: Some("site".into()),
            ignore_columns: names(&["note"]),
            ..OwnOptions::default()
        };
        assert_eq!(
            check("t.csv", &table, "", 0.051),
            "negscale audit t.csv --label-column 'my kind' --source-column site --ignore-columns note --check 0.05"
        );
        assert_eq!(
            train("t.csv", &table, "out/c.csv"),
            "negscale train --data t.csv --labels out/c.csv --label-column 'my kind' --ignore-columns note,site"
        );
        let votes = OwnOptions { label_columns: names(&["a", "b"]), ..OwnOptions::default() };
        assert!(train("t.csv", &votes, "c.csv").ends_with("--labels c.csv --ignore-columns a,b"));
        let beside = OwnOptions { labels: Some("l's.csv".into()), ..table };
        assert!(again(&beside).starts_with(" --labels 'l'\\''s.csv' --label-column"));
        assert!(train("x.npy", &beside, "c.csv").ends_with("--labels c.csv --ignore-columns note"));
    }
}
