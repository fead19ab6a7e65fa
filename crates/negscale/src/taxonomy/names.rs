//! Names of nodes: keeping them unique, matching them forgivingly, and finding the one that was meant.

use std::collections::{HashMap, HashSet};

/// Case, spaces, `_` and `-` are where spellings of one class differ between copies of a data set.
pub(super) fn loose(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// What a name stands for in a [`NameIndex`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Match {
    /// Position in the list.
    At(usize),
    /// Several entries differ only in case or separators, and none is spelt exactly so.
    Ambiguous(usize, usize),
    /// No such entry.
    Absent,
}

/// Finds entries of a list by exact spelling first, by loose spelling second.
pub(super) struct NameIndex<'a> {
    exact: HashMap<&'a str, usize>,
    loose: HashMap<String, Match>,
}

impl<'a> NameIndex<'a> {
    pub(super) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut index = Self { exact: HashMap::new(), loose: HashMap::new() };
        for (i, name) in names.enumerate() {
            index.exact.entry(name).or_insert(i);
            index
                .loose
                .entry(loose(name))
                .and_modify(|found| {
                    if let Match::At(first) = *found {
                        *found = Match::Ambiguous(first, i);
                    }
                })
                .or_insert(Match::At(i));
        }
        index
    }

    pub(super) fn find(&self, name: &str) -> Match {
        match self.exact.get(name) {
            Some(&i) => Match::At(i),
            None => self.loose.get(&loose(name)).copied().unwrap_or(Match::Absent),
        }
    }
}

/// The candidate most like `name`, if it is like it at all: at most a third of the letters differ.
/// Looks at ten thousand candidates and 64 letters at most, for a hint must not take long.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = loose(name).chars().take(64).collect();
    candidates
        .take(10_000)
        .map(|candidate| (edits(&wanted, &loose(candidate).chars().take(64).collect::<Vec<_>>()), candidate))
        .min_by_key(|&(edits, _)| edits)
        .filter(|&(edits, _)| edits <= (wanted.len() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, one row of the table at a time.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Hands out names for the inner nodes we invent, stepping aside for names already taken.
pub(super) struct FreshNames(HashSet<String>);

impl FreshNames {
    pub(super) fn besides<'a>(taken: impl Iterator<Item = &'a str>) -> Self {
        Self(taken.map(|name| name.trim().to_owned()).collect())
    }

    pub(super) fn name(&mut self, wish: String) -> String {
        let mut name = wish.clone();
        let mut copy = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wish} #{copy}");
            copy += 1;
        }
        name
    }
}

/// The first few names, and how many more there are.
pub(super) fn shortlist<'a>(names: impl ExactSizeIterator<Item = &'a str>, show: usize) -> String {
    let more = names.len().saturating_sub(show);
    let mut list = names.take(show).collect::<Vec<_>>().join(", ");
    if more > 0 {
        list += &format!(", +{more}");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_spelling_wins_over_loose_spelling() {
        let index = NameIndex::new(["Cat", "cat", "guinea_pig"].into_iter());
        assert_eq!(index.find("cat"), Match::At(1));
        assert_eq!(index.find("CAT"), Match::Ambiguous(0, 1));
        assert_eq!(index.find("Guinea Pig"), Match::At(2));
        assert_eq!(index.find("wolf"), Match::Absent);
    }

    #[test]
    fn the_nearest_name_is_found_and_strangers_are_not_suggested() {
        let names = ["automobile", "airplane", "ship"];
        assert_eq!(nearest("aeroplane", names.into_iter()), Some("airplane"));
        assert_eq!(nearest("automobil", names.into_iter()), Some("automobile"));
        assert_eq!(nearest("zebra", names.into_iter()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
    }

    #[test]
    fn fresh_names_step_aside() {
        let mut fresh = FreshNames::besides(["only cat"].into_iter());
        assert_eq!(fresh.name("only cat".into()), "only cat #2");
        assert_eq!(fresh.name("only cat".into()), "only cat #3");
        assert_eq!(fresh.name("root".into()), "root");
    }
}
