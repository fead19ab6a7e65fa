//! Whether the first line of a table is a header: certain, or asked for.
//!
//! A header is certain where a column that was asked for or a usual name stands in the first line, or where a column holds
//! numbers everywhere but there. That there is none is certain where every field of the first line is a number, or where its label is
//! given to another item as well. Otherwise nobody can tell `species, rose, tulip` from three labels, and guessing wrong
//! would move every label by one.

use serde::{Deserialize, Serialize};

/// Whether tables begin with a header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// As the file tells; where it does not, an error.
    #[default]
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is an item.
    No,
}

impl std::str::FromStr for Header {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Self::Auto),
            "yes" => Ok(Self::Yes),
            "no" => Ok(Self::No),
            _ => Err(format!("`{word}` is not known; write yes, no or auto")),
        }
    }
}

impl Header {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Yes => "yes",
            Self::No => "no",
        }
    }
}

/// What to do where it cannot be told.
pub(super) const ASK: &str =
    "use --header yes or --header no (`header` in a recipe), or name the column of labels `label`";

/// Names of columns of labels, the best first.
pub(super) const LABELS: [&str; 7] =
    ["label", "labels", "target", "targets", "class", "given_label", "noisy_label"];
/// Name of the column of true labels that is found without being asked for.
pub(super) const TRUTH: &str = "true_label";
/// Names of columns of places.
pub(crate) const PATHS: [&str; 4] = ["path", "file_name", "filename", "file"];
/// Name of the column of items' numbers.
pub(crate) const INDEX: &str = "index";

/// Where a column of one of these names is, the first name first; large and small letters are the same.
pub(crate) fn find<'a>(fields: impl Iterator<Item = &'a str> + Clone, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| fields.clone().position(|field| field.eq_ignore_ascii_case(name)))
}

/// Whether a column of this name tells items apart and nothing else about them.
pub(super) fn is_id(name: &str) -> bool {
    const IDS: [&str; 9] = ["", "id", "index", "idx", "row", "rowid", "row_number", "uuid", "guid"];
    let name = name.to_ascii_lowercase();
    // pandas writes its index under no name and reads that as `Unnamed: 0`.
    IDS.contains(&name.as_str()) || name.ends_with("_id") || name.starts_with("unnamed: ")
}

/// Whether one of the fields is a name by which columns go, and no label: those of one letter could be either.
pub(super) fn has_usual_name<'a>(fields: impl Iterator<Item = &'a str> + Clone) -> bool {
    let known = LABELS.iter().chain(&PATHS).chain([&TRUTH, &INDEX]);
    let usual = |field: &str| known.clone().any(|name| field.eq_ignore_ascii_case(name));
    let is_named_id = |field: &str| !field.is_empty() && is_id(field);
    fields.clone().any(usual) || (fields.clone().count() > 1 && fields.into_iter().any(is_named_id))
}

/// What is seen of the lines below the first, column by column.
pub(super) struct Below {
    numbers: Vec<bool>,
    rows: usize,
}

/// Whether it is a number.
pub(super) fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

impl Below {
    /// Nothing yet, of so many columns.
    pub fn new(columns: usize) -> Self {
        Self { numbers: vec![true; columns], rows: 0 }
    }

    /// Another line.
    pub fn add<'a>(&mut self, fields: impl Iterator<Item = &'a str>) {
        self.rows += 1;
        for (numbers, field) in self.numbers.iter_mut().zip(fields) {
            *numbers = *numbers && is_number(field);
        }
    }

    /// Whether the first line is a header, if that is certain. `again` says that its label occurs below.
    pub fn is_header<'a>(&self, first: impl Iterator<Item = &'a str> + Clone, again: bool) -> Option<bool> {
        if again || first.clone().all(is_number) {
            return Some(false);
        }
        let differs = |(field, numbers): (&str, &bool)| *numbers && !is_number(field);
        let differing = self.rows > 0 && first.clone().zip(&self.numbers).any(differs);
        (differing || has_usual_name(first)).then_some(true)
    }
}
