//! From what a file says about an item ("cat", 3, "3.0") to the number of its class.
//!
//! The rules, in order:
//! 1. Where names of classes are known (a names file, the folders, Hugging Face metadata), text is looked up among them, and a
//!    number counts into them from 0.
//! 2. Without names, if every label is a whole number, the numbers are the classes: 0 to the largest, also those that do not occur.
//! 3. Otherwise the distinct words of the training part, sorted, are the classes.
//!
//! The test part and the true labels are read by the same vocabulary, so a word means the same class everywhere.

use std::collections::HashMap;

/// More classes than this are taken for a mistake (row numbers or measurements in place of labels).
pub const MAX_CLASSES: usize = 1 << 20;

/// One label per item as it stands in the file; each distinct word is kept once.
#[derive(Debug, Clone, Default)]
pub struct Column {
    distinct: Vec<String>,
    known: HashMap<String, u32>,
    rows: Vec<u32>,
    numbers: bool,
}

impl Column {
    /// An empty column; `numbers` says that the file's own type is a number, so that "3" cannot be a name.
    pub fn new(numbers: bool) -> Self {
        Self { numbers, ..Self::default() }
    }

    /// Adds the label of the next item.
    pub fn push(&mut self, word: &str) {
        let id = match self.known.get(word) {
            Some(&id) => id,
            None => {
                let id = self.distinct.len() as u32;
                self.distinct.push(word.to_owned());
                self.known.insert(word.to_owned(), id);
                id
            }
        };
        self.rows.push(id);
    }

    /// Adds the labels of another column.
    pub fn append(&mut self, other: &Column) {
        self.numbers &= other.numbers;
        other.words().for_each(|word| self.push(word));
    }

    /// The labels of some items, all of which must be there.
    pub(super) fn subset(&self, chosen: &[usize]) -> Self {
        let mut some = Self::new(self.numbers);
        chosen.iter().for_each(|&row| some.push(&self.distinct[self.rows[row] as usize]));
        some
    }

    /// Marks that labels came as text, even if others came as numbers.
    pub fn mark_text(&mut self) {
        self.numbers = false;
    }

    /// How many labels.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The labels as they stand in the file.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|&id| self.distinct[id as usize].as_str())
    }

    fn first_row(&self, id: usize) -> usize {
        self.rows.iter().position(|&row| row as usize == id).unwrap_or(0)
    }
}

/// A whole number, also when written as 3.0.
fn whole(word: &str) -> Option<i64> {
    word.parse().ok().or_else(|| {
        let value: f64 = word.parse().ok()?;
        (value.fract() == 0.0 && value.abs() < 2f64.powi(53)).then_some(value as i64)
    })
}

/// Whether a word is a number that cannot be a class.
fn measures(word: &str) -> bool {
    let numeric = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    word.eq_ignore_ascii_case("nan") || (numeric && whole(word).is_none() && word.parse::<f64>().is_ok())
}

/// The classes, and how a label finds its own.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    names: Vec<String>,
    places: HashMap<String, u32>,
}

impl Vocabulary {
    /// From names that are known.
    pub fn named(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() || names.len() > MAX_CLASSES {
            return Err(format!("{} class names: there must be 1 to {MAX_CLASSES}", names.len()));
        }
        let mut places = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            if let Some(before) = places.insert(name.clone(), at as u32) {
                return Err(format!(
                    "class name `{name}` stands at {before} and again at {at}: names must differ"
                ));
            }
        }
        Ok(Self { names, places })
    }

    /// From the labels of the training part themselves.
    pub fn of(columns: &[&Column]) -> Result<Self, String> {
        let words = || columns.iter().flat_map(|column| column.distinct.iter());
        if let Some(word) = words().find(|word| measures(word)) {
            return Err(format!(
                "label `{word}` is no class: labels are whole numbers or names; is it the right column?"
            ));
        }
        let numbers: Option<Vec<i64>> = words().map(|word| whole(word)).collect();
        let names = match numbers {
            Some(numbers) => {
                let (least, most) =
                    numbers.iter().fold((0, 0), |(least, most), &n| (n.min(least), n.max(most)));
                if least < 0 {
                    return Err(format!(
                        "label {least} is negative: number the classes from 0, or write the labels as names"
                    ));
                }
                if most >= MAX_CLASSES as i64 {
                    return Err(format!(
                        "label {most}: numbers count classes from 0 and may not reach {MAX_CLASSES}; is it the right column?"
                    ));
                }
                (0..=most).map(|n| n.to_string()).collect()
            }
            None => {
                let mut names: Vec<String> = words().cloned().collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        Self::named(names)
    }

    /// Class of every label.
    pub fn apply(&self, column: &Column) -> Result<Vec<u32>, String> {
        let place = |word: &String| {
            let by_number = || {
                whole(word).and_then(|n| u32::try_from(n).ok()).filter(|&n| (n as usize) < self.names.len())
            };
            if column.numbers { by_number() } else { self.places.get(word).copied().or_else(by_number) }
        };
        let classes: Vec<u32> = (column.distinct.iter().enumerate())
            .map(|(id, word)| {
                place(word).ok_or_else(|| {
                    let (row, count) = (column.first_row(id), self.names.len());
                    let some: Vec<&str> = self.names.iter().take(5).map(String::as_str).collect();
                    let more = if count > 5 { ", ..." } else { "" };
                    format!(
                        "label `{word}` of item {row} names none of the {count} classes ({}{more})",
                        some.join(", ")
                    )
                })
            })
            .collect::<Result<_, String>>()?;
        Ok(column.rows.iter().map(|&id| classes[id as usize]).collect())
    }

    /// Names of the classes.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(words: &[&str]) -> Column {
        let mut column = Column::new(false);
        words.iter().for_each(|word| column.push(word));
        column
    }

    #[test]
    fn words_are_sorted_into_classes() {
        let labels = column(&["dog", "cat", "dog"]);
        let vocabulary = Vocabulary::of(&[&labels]).unwrap();
        assert_eq!(vocabulary.apply(&labels).unwrap(), [1, 0, 1]);
        assert_eq!(vocabulary.into_names(), ["cat", "dog"]);
    }

    #[test]
    fn numbers_count_classes_in_numeric_order_and_keep_gaps() {
        let labels = column(&["10", "2", "3.0"]);
        let vocabulary = Vocabulary::of(&[&labels]).unwrap();
        assert_eq!(vocabulary.apply(&labels).unwrap(), [10, 2, 3]);
        assert_eq!(vocabulary.into_names().len(), 11);
    }

    #[test]
    fn typed_numbers_count_into_names_even_where_names_look_like_numbers() {
        let names = || vec!["1".to_string(), "0".to_string()];
        let mut typed = Column::new(true);
        typed.push("0");
        assert_eq!(Vocabulary::named(names()).unwrap().apply(&typed).unwrap(), [0]);
        assert_eq!(Vocabulary::named(names()).unwrap().apply(&column(&["0"])).unwrap(), [1]);
    }

    #[test]
    fn labels_that_cannot_be_classes_are_refused() {
        for words in [&["-1", "1"][..], &["0.5"], &["nan", "a"], &["99999999999"]] {
            assert!(Vocabulary::of(&[&column(words)]).is_err(), "{words:?}");
        }
        assert!(Vocabulary::named(vec!["a".into(), "a".into()]).unwrap_err().contains("`a`"));
        let error = Vocabulary::of(&[&column(&["a"])]).unwrap().apply(&column(&["a", "b"])).unwrap_err();
        assert!(error.contains("`b` of item 1"), "{error}");
    }
}
