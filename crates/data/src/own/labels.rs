//! From what a file says about an item ("cat", 3, "3.0") to the number of its class.
//!
//! The rules, in order:
//! 1. Where names of classes are known (a names file, the folders, Hugging Face metadata), text is looked up among them. Numbers
//!    count into them from 0: those of a file that knows numbers from text, and others if one of them is no name.
//! 2. Without names, if every label is a whole number, the numbers that occur are the classes, in their order; the number is the
//!    name. So 0, 450000 and 900000 are three classes, and a class that no item has is none.
//! 3. Otherwise the distinct words, sorted, are the classes.
//!
//! "Occur" means in the training split, as given or true label. The test split is read by the same vocabulary, so a word means the
//! same class everywhere; a class that only the test split has is an error, which a file of class names avoids.

use std::collections::{BTreeSet, HashMap};

/// More classes than this are taken for a mistake (row numbers or measurements in place of labels).
pub const MAX_CLASSES: usize = 1 << 20;

/// One label per item as it stands in the file; each distinct word is kept once.
#[derive(Debug, Clone, Default)]
pub struct Column {
    distinct: Vec<String>,
    known: HashMap<String, u32>,
    rows: Vec<u32>,
    numbers: bool,
    names: bool,
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

    /// Adds the label of an item before all others.
    pub fn push_front(&mut self, word: &str) {
        self.push(word);
        self.rows.rotate_right(1);
    }

    /// Whether an item has this label.
    pub fn has(&self, word: &str) -> bool {
        self.known.contains_key(word)
    }

    /// The place of every item's label among the [distinct](Self::distinct) ones.
    pub(crate) fn places(&self) -> &[u32] {
        &self.rows
    }

    /// Every label once.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = &str> {
        self.distinct.iter().map(String::as_str)
    }

    /// The labels of these items, in this order.
    pub(super) fn pick(&self, order: &[usize]) -> Self {
        Self {
            distinct: self.distinct.clone(),
            known: self.known.clone(),
            rows: order.iter().map(|&row| self.rows[row]).collect(),
            ..*self
        }
    }

    /// Adds the labels of another column.
    pub fn append(&mut self, other: &Column) {
        self.numbers &= other.numbers;
        other.words().for_each(|word| self.push(word));
    }

    /// Marks that labels came as text, even if others came as numbers.
    pub fn mark_text(&mut self) {
        self.numbers = false;
    }

    /// Whether some label came as text.
    pub(super) fn is_text(&self) -> bool {
        !self.numbers
    }

    /// Marks that the labels are names of classes and never count into them, whatever they look like.
    pub fn mark_names(&mut self) {
        self.names = true;
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

    /// The label of an item.
    pub(super) fn word(&self, row: usize) -> &str {
        &self.distinct[self.rows[row] as usize]
    }

    fn first_row(&self, id: usize) -> Option<usize> {
        self.rows.iter().position(|&row| row as usize == id)
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
    /// The names are numbers that occur as labels, in their order.
    numbers: bool,
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
                    "class name `{name}` appears at {before} and again at {at}: names must differ"
                ));
            }
        }
        Ok(Self { names, places, numbers: false })
    }

    /// From the labels of the training split themselves.
    pub fn of(columns: &[&Column]) -> Result<Self, String> {
        // A blank is nobody's label.
        let words = || columns.iter().flat_map(|column| &column.distinct).filter(|word| !word.is_empty());
        if let Some(word) = words().find(|word| measures(word)) {
            return Err(format!(
                "label `{word}` is not a class: labels are whole numbers or names; is it the right column?"
            ));
        }
        let numbers: Option<BTreeSet<i64>> = words().map(|word| whole(word)).collect();
        let is_numbers = numbers.is_some();
        let names = match numbers {
            Some(numbers) => {
                if let Some(least) = numbers.first().filter(|&&least| least < 0) {
                    return Err(format!(
                        "label {least} is negative: number the classes from 0, or write the labels as names"
                    ));
                }
                numbers.iter().map(i64::to_string).collect()
            }
            None => {
                let mut names: Vec<String> = words().cloned().collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        Ok(Self { numbers: is_numbers, ..Self::named(names)? })
    }

    /// Of classes whose names were made elsewhere: numbers in their order are taken for labels that occurred.
    pub fn of_classes(names: &[String]) -> Result<Self, String> {
        let numbers: Option<Vec<i64>> =
            names.iter().map(|name| whole(name).filter(|n| n.to_string() == *name)).collect();
        let numbers = numbers.is_some_and(|numbers| numbers.is_sorted_by(|a, b| a < b));
        Ok(Self { numbers, ..Self::named(names.to_vec())? })
    }

    /// Whether classes are called by the numbers that their items have.
    pub(crate) fn is_numbers(&self) -> bool {
        self.numbers
    }

    /// How many classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Class of every label.
    pub fn apply(&self, column: &Column) -> Result<Vec<u32>, String> {
        let all: Option<Vec<u32>> = self.apply_to_some(column)?.into_iter().collect();
        all.ok_or_else(|| {
            let row = column.words().position(str::is_empty).unwrap_or_default();
            format!("the label of item {row} is blank")
        })
    }

    /// Class of every label that is not blank.
    pub fn apply_to_some(&self, column: &Column) -> Result<Vec<Option<u32>>, String> {
        // Tables take off blanks around a word; a name may begin or end with one.
        let by_trimmed = |word: &str| {
            let mut alike = self.names.iter().zip(0..).filter(|(name, _)| name.trim() == word);
            alike.next().filter(|_| alike.next().is_none()).map(|(_, at)| at)
        };
        let by_name = |word: &str| match self.places.get(word) {
            Some(&at) => Some(at),
            None if self.numbers => whole(word).and_then(|n| self.places.get(&n.to_string())).copied(),
            None => by_trimmed(word),
        };
        let by_number = |word: &str| {
            whole(word).and_then(|n| u32::try_from(n).ok()).filter(|&n| (n as usize) < self.names.len())
        };
        // All labels are names or all count: names may look like numbers, and then no single label tells which it is.
        let words = || column.distinct().filter(|word| !word.is_empty());
        let can_count = !self.numbers && !column.names && words().all(|word| whole(word).is_some());
        let counts = can_count && (column.numbers || !words().all(|word| by_name(word).is_some()));
        let place = |word: &str| if counts { by_number(word) } else { by_name(word) };
        let classes: Vec<Option<u32>> = (column.distinct.iter().enumerate())
            .map(|(id, word)| {
                if word.is_empty() {
                    return Ok(None);
                }
                place(word).map(Some).ok_or_else(|| {
                    let row = column.first_row(id).map_or(String::new(), |row| format!(" of item {row}"));
                    let count = self.names.len();
                    let some: Vec<&str> = self.names.iter().take(5).map(String::as_str).collect();
                    let more = if count > 5 { ", ..." } else { "" };
                    format!("label `{word}`{row} is none of the {count} classes ({}{more})", some.join(", "))
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
    fn numbers_that_occur_are_the_classes_in_numeric_order() {
        for (words, names, classes) in [
            (&["10", "2", "3.0"][..], &["2", "3", "10"][..], &[2, 0, 1][..]),
            (&["900000", "0", "450000", "0"], &["0", "450000", "900000"], &[2, 0, 1, 0]),
            (&["99999999999", "007"], &["7", "99999999999"], &[1, 0]),
        ] {
            let labels = column(words);
            let vocabulary = Vocabulary::of(&[&labels]).unwrap();
            assert_eq!(vocabulary.apply(&labels).unwrap(), classes);
            // What was made of one column reads another of the same numbers, and no others.
            assert_eq!(vocabulary.apply(&column(&names[..1])).unwrap(), [0]);
            assert!(vocabulary.apply(&column(&["1"])).is_err());
            assert_eq!(vocabulary.into_names(), names);
        }
    }

    #[test]
    fn labels_of_a_column_are_all_names_or_all_count() {
        let names = || ["1", "10", "2", " cat"].map(str::to_owned).to_vec();
        let apply = |words: &[&str]| Vocabulary::named(names()).unwrap().apply(&column(words));
        assert_eq!(apply(&["2", "10", "cat"]).unwrap(), [2, 1, 3]);
        assert_eq!(apply(&["0", "1", "2"]).unwrap(), [0, 1, 2]);
        assert!(apply(&["0", "cat"]).is_err());
        let mut folders = column(&["0", "1"]);
        folders.mark_names();
        assert!(Vocabulary::named(names()).unwrap().apply(&folders).is_err());
    }

    #[test]
    fn classes_made_elsewhere_are_read_as_they_were_written() {
        let classes = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).into()).collect() };
        let sparse = Vocabulary::of_classes(&classes(&["0", "450000"])).unwrap();
        assert_eq!(sparse.apply(&column(&["450000", "0"])).unwrap(), [1, 0]);
        let words = Vocabulary::of_classes(&classes(&["cat", "dog"])).unwrap();
        assert_eq!(words.apply(&column(&["1", "0"])).unwrap(), [1, 0]);
        assert_eq!(words.apply(&column(&["dog", "cat"])).unwrap(), [1, 0]);
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
        for words in [&["-1", "1"][..], &["0.5"], &["nan", "a"]] {
            assert!(Vocabulary::of(&[&column(words)]).is_err(), "{words:?}");
        }
        assert!(Vocabulary::named(vec!["a".into(), "a".into()]).unwrap_err().contains("`a`"));
        let error = Vocabulary::of(&[&column(&["a"])]).unwrap().apply(&column(&["a", "b"])).unwrap_err();
        assert!(error.contains("`b` of item 1"), "{error}");
    }
}
