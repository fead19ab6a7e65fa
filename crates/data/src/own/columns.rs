//! What each column of a table is: a feature, the label, the true label, an id, or nothing.
//!
//! Columns that were asked for come first. Else the label is in the column with a usual name, or in the last; the true label in
//! `true_label`; all others are features. A column that only tells items apart (by its name, or because it counts up) is never a
//! feature without a word: a network would learn the order of the table from it.

use super::header::{self, LABELS, TRUTH};
use negscale_records::did_you_mean;

/// The word for `id_column` that says that there is none.
pub(super) const NO_ID: &str = "none";

/// What is asked for of the columns of a table. All may be left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout<'a> {
    /// Name of the label's column.
    pub label: Option<&'a str>,
    /// Name of the true label's column; `true_label` is found without being asked for.
    pub truth: Option<&'a str>,
    /// Name of the column of ids, or `none`.
    pub id: Option<&'a str>,
    /// Name of the column of sources.
    pub source: Option<&'a str>,
    /// Name of the column of texts, in place of features.
    pub text: Option<&'a str>,
    /// Names of columns of labels by several annotators, in place of one column of labels.
    pub annotators: &'a [String],
    /// Names of the features; all others without it.
    pub features: &'a [String],
    /// Names of columns that mean nothing here.
    pub ignored: &'a [String],
    /// All columns are features (the labels are elsewhere), but for those named here.
    pub unlabelled: bool,
}

/// What the columns are, by their places.
#[derive(Debug, PartialEq)]
pub(super) struct Roles {
    pub given: Option<usize>,
    pub truth: Option<usize>,
    pub id: Option<usize>,
    pub source: Option<usize>,
    pub text: Option<usize>,
    pub annotators: Vec<usize>,
    /// Columns that were taken for ids by their names, without being asked for.
    pub guessed: Vec<usize>,
    pub features: Vec<usize>,
}

impl Layout<'_> {
    /// Whether columns are asked for by names that are no numbers.
    pub(super) fn is_named(&self) -> bool {
        let id = self.id.filter(|&id| id != NO_ID);
        let one = [self.label, self.truth, id, self.source, self.text].into_iter().flatten();
        let several = self.features.iter().chain(self.ignored).chain(self.annotators).map(String::as_str);
        one.chain(several).any(|name| name.parse::<usize>().is_err())
    }

    /// What columns of these names are, or what is wrong.
    pub(super) fn assign(&self, names: &[&str]) -> Result<Roles, String> {
        let find = |name: &str| names.iter().position(|other| *other == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| {
                let some: Vec<&str> = names.iter().take(20).copied().collect();
                let near = did_you_mean(name, names.iter().copied());
                format!("no column `{name}`: {near}the header has {}", some.join(", "))
            })
        };
        let all = |names: &[String]| names.iter().map(|name| need(name)).collect::<Result<Vec<_>, _>>();
        let (chosen, ignored) = (all(self.features)?, all(self.ignored)?);
        let one = |name: Option<&str>| name.map(need).transpose();
        let (label, truth, id) =
            (one(self.label)?, one(self.truth)?, one(self.id.filter(|&id| id != NO_ID))?);
        let (source, text, annotators) = (one(self.source)?, one(self.text)?, all(self.annotators)?);
        if text.is_some() && !chosen.is_empty() {
            return Err("texts have no columns of features: leave out feature_columns, or text_column".into());
        }
        let roles = [
            ("label_column", label),
            ("truth_column", truth),
            ("id_column", id),
            ("source_column", source),
            ("text_column", text),
        ];
        let by_annotators = annotators.iter().map(|&place| ("label_columns", Some(place)));
        let roles: Vec<(&str, Option<usize>)> = roles.into_iter().chain(by_annotators).collect();
        for (at, (setting, place)) in roles.iter().enumerate() {
            let Some(place) = place else { continue };
            let lists = [("feature_columns", &chosen), ("ignore_columns", &ignored)];
            let twice = lists.iter().find(|(_, list)| list.contains(place)).map(|(other, _)| *other);
            let twice = twice.or_else(|| {
                roles[..at].iter().find(|(_, other)| *other == Some(*place)).map(|(other, _)| *other)
            });
            if let Some(other) = twice {
                return Err(format!(
                    "column `{}` is in both {setting} and {other}: leave it out of one",
                    names[*place]
                ));
            }
        }
        if let Some(&at) = chosen.iter().find(|at| ignored.contains(at)) {
            return Err(format!("column `{}` is in both feature_columns and ignore_columns", names[at]));
        }
        let is_free = |at: &usize| {
            roles.iter().all(|(_, place)| *place != Some(*at))
                && !chosen.contains(at)
                && !ignored.contains(at)
        };
        let truth = truth.or_else(|| find(TRUTH).filter(is_free));
        let looks = |at: &usize| self.id != Some(NO_ID) && is_free(at) && header::is_id(names[*at]);
        let guessed: Vec<usize> = (0..names.len()).filter(looks).collect();
        let is_free = |at: &usize| is_free(at) && truth != Some(*at) && !guessed.contains(at);
        let given = match label {
            None if !self.unlabelled && annotators.is_empty() => header::find(names.iter().copied(), &LABELS)
                .filter(is_free)
                .or_else(|| (0..names.len()).rev().find(is_free)),
            asked => asked,
        };
        let features = match chosen.is_empty() {
            true if text.is_some() => Vec::new(),
            true => (0..names.len()).filter(|at| is_free(at) && given != Some(*at)).collect(),
            false => chosen.clone(),
        };
        if features.is_empty() && text.is_none() {
            return Err("there is no column of features besides the labels".into());
        }
        if given.is_none() && annotators.is_empty() && !self.unlabelled {
            return Err("there is no column of labels besides the features: name it with --label-column, or give a file with --labels".into());
        }
        let id = id.or(guessed.first().copied());
        Ok(Roles { given, truth, id, source, text, annotators, guessed, features })
    }
}

/// What is said of a column that was taken for one of ids.
pub(super) fn note_of_id(name: &str) -> String {
    let name =
        if name.is_empty() { "without a name".to_owned() } else { format!("`{}`", name.escape_debug()) };
    format!(
        "column {name} is used as ids, not as a feature; --id-column none makes it a feature, --ignore-columns leaves it out"
    )
}

/// Finds columns that do nothing but count the rows.
pub(super) struct Counting {
    next: Vec<Option<f32>>,
    rows: usize,
}

impl Counting {
    /// Fewer rows may count up by chance.
    const ROWS: usize = 5;

    /// Nothing seen yet, of so many columns.
    pub fn new(columns: usize) -> Self {
        Self { next: vec![None; columns], rows: 0 }
    }

    /// Another row.
    pub fn add(&mut self, row: &[f32]) {
        for (next, &value) in self.next.iter_mut().zip(row) {
            let goes_on = self.rows == 0 || *next == Some(value);
            *next = (goes_on && value.fract() == 0.0).then_some(value + 1.0);
        }
        self.rows += 1;
    }

    /// The first column that counts.
    pub fn found(&self) -> Option<usize> {
        (0..self.next.len()).find(|&at| self.counts(at))
    }

    /// Whether a column counts.
    pub fn counts(&self, at: usize) -> bool {
        // From 2^24 on, one more is the same number.
        self.rows >= Self::ROWS && self.next[at].is_some_and(|next| next.abs() < 16_777_216.0)
    }
}

/// What is said of a column that counts.
pub(super) fn refuse_counting(name: &str) -> String {
    format!(
        "column {name} only counts the rows: name it with --id-column if it is an id, leave it out with --ignore-columns, or use --id-column none \
         if it is a feature"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(names: &[&str], layout: Layout) -> Result<Roles, String> {
        layout.assign(names)
    }

    #[test]
    fn ids_labels_and_features_are_told_apart_by_name_or_as_asked() {
        let plain = Layout::default();
        let roles = assign(&["id", "a", "b", "label"], plain).unwrap();
        assert_eq!((roles.given, roles.id, roles.features), (Some(3), Some(0), vec![1, 2]));
        let roles = assign(&["", "a", "row_id", "label"], plain).unwrap();
        assert_eq!((roles.id, roles.guessed, roles.features), (Some(0), vec![0, 2], vec![1]));
        let roles = assign(&["a", "target", "b", "true_label", "sample_id"], plain).unwrap();
        assert_eq!(
            (roles.given, roles.truth, roles.id, roles.features),
            (Some(1), Some(3), Some(4), vec![0, 2])
        );
        let roles = assign(&["id", "a", "label"], Layout { id: Some("none"), ..plain }).unwrap();
        assert_eq!((roles.id, roles.features), (None, vec![0, 1]));
        let roles = assign(&["name", "id", "a", "label"], Layout { id: Some("name"), ..plain }).unwrap();
        assert_eq!((roles.id, roles.guessed, roles.features), (Some(0), vec![1], vec![2]));
        let (some, ignored) = (["b".to_owned()], ["a".to_owned()]);
        let roles = assign(&["a", "b", "c"], Layout { features: &some, ..plain }).unwrap();
        assert_eq!((roles.given, roles.features), (Some(2), vec![1]));
        let roles = assign(&["a", "b", "c"], Layout { ignored: &ignored, ..plain }).unwrap();
        assert_eq!((roles.given, roles.features), (Some(2), vec![1]));
        let roles = assign(&["a", "b"], Layout { unlabelled: true, ..plain }).unwrap();
        assert_eq!((roles.given, roles.features), (None, vec![0, 1]));
    }

    #[test]
    fn names_that_are_not_there_or_contradict_one_another_are_refused() {
        let plain = Layout::default();
        let some = ["a".to_owned()];
        for (layout, part) in [
            (Layout { label: Some("kind"), ..plain }, "no column `kind`: the header has a, b"),
            (Layout { features: &some, ignored: &some, ..plain }, "both feature_columns and ignore_columns"),
            (Layout { features: &some, label: Some("a"), ..plain }, "both label_column and feature_columns"),
            (Layout { id: Some("a"), label: Some("a"), ..plain }, "both id_column and label_column"),
            (Layout { ignored: &some, ..plain }, "no column of features"),
        ] {
            let error = assign(&["a", "b"], layout).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_column_counts_if_every_row_is_one_more() {
        let mut counting = Counting::new(3);
        for row in 0..6 {
            counting.add(&[0.5, row as f32 * 2.0, row as f32 + 7.0]);
        }
        assert_eq!(counting.found(), Some(2));
        counting.add(&[0.5, 0.0, 7.0]);
        assert_eq!(counting.found(), None);
    }
}
