//! Where labels come from: a source for each item, a label by each of several annotators, or a review.

use crate::{Error, Result};

/// The source of every item's label: a camera, a site, a batch, a person; whatever a column says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    names: Vec<String>,
    of: Vec<u32>,
}

impl Sources {
    /// From the names of sources, and the number of its source for every item.
    ///
    /// # Errors
    /// If a number has no name.
    pub fn new(names: Vec<String>, of: Vec<u32>) -> Result<Self> {
        if let Some(at) = of.iter().position(|&source| source as usize >= names.len()) {
            let problem = format!("source {} of item {at} has no name: there are {}", of[at], names.len());
            return Err(Error::Labels { dataset: "sources".into(), problem });
        }
        Ok(Self { names, of })
    }

    /// Names of the sources, in the order in which they first occur; an empty one is that of items without any.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The source of every item, as its place among the names.
    #[must_use]
    pub fn of_items(&self) -> &[u32] {
        &self.of
    }

    /// The name of an item's source.
    #[must_use]
    pub fn name(&self, item: usize) -> Option<&str> {
        Some(&self.names[*self.of.get(item)? as usize])
    }

    pub(crate) fn pick(&self, chosen: &[usize]) -> Self {
        Self { names: self.names.clone(), of: chosen.iter().map(|&item| self.of[item]).collect() }
    }
}

/// Labels by several annotators, not all of whom need have labelled every item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotators {
    names: Vec<String>,
    columns: Vec<Vec<Option<u32>>>,
}

impl Annotators {
    /// From the names of annotators and the labels that each of them gave.
    ///
    /// # Errors
    /// If names and columns are not equally many, columns are not equally long, or an item has no label at all.
    pub fn new(names: Vec<String>, columns: Vec<Vec<Option<u32>>>) -> Result<Self> {
        let wrong = |problem: String| Err(Error::Labels { dataset: "annotators".into(), problem });
        let items = columns.first().map_or(0, Vec::len);
        if names.len() != columns.len() || columns.iter().any(|column| column.len() != items) {
            return wrong("every annotator needs a column, and all columns the same items".into());
        }
        if let Some(item) = (0..items).find(|&item| columns.iter().all(|column| column[item].is_none())) {
            return wrong(format!("item {item} has no label by anybody: add one, or remove the item"));
        }
        Ok(Self { names, columns })
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The labels that each of them gave, in the order of items.
    #[must_use]
    pub fn columns(&self) -> &[Vec<Option<u32>>] {
        &self.columns
    }

    /// The class that most of them give to each item; among equals, that of the earliest annotator.
    #[must_use]
    pub fn majority(&self) -> Vec<u32> {
        let items = self.columns.first().map_or(0, Vec::len);
        let vote = |item: usize| {
            let labels = || self.columns.iter().filter_map(|column| column[item]);
            let (mut best, mut most) = (0, 0);
            for class in labels() {
                let votes = labels().filter(|&other| other == class).count();
                if votes > most {
                    (best, most) = (class, votes);
                }
            }
            best
        };
        (0..items).map(vote).collect()
    }

    pub(crate) fn pick(&self, chosen: &[usize]) -> Self {
        let pick = |column: &Vec<Option<u32>>| chosen.iter().map(|&item| column[item]).collect();
        Self { names: self.names.clone(), columns: self.columns.iter().map(pick).collect() }
    }
}

/// What a review changed in labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reviewed {
    /// Labels that were looked at and kept.
    pub kept: usize,
    /// That were looked at and changed.
    pub changed: usize,
    /// Samples that were dropped, and are left out.
    pub dropped: usize,
    /// Labels that were looked at without a decision.
    pub unsure: usize,
    /// Labels that nobody looked at and the audit changed.
    pub by_audit: usize,
    /// Where true labels are known: share of right labels before among all, and now among those that are left.
    pub right: Option<[f64; 2]>,
}

impl std::fmt::Display for Reviewed {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { kept, changed, dropped, unsure, by_audit, right } = self;
        write!(
            f,
            "a review changed {changed} labels, kept {kept}, left {unsure} as unsure, and dropped {dropped} samples, which are left out; "
        )?;
        write!(f, "the audit changed {by_audit} more that nobody looked at")?;
        match right {
            Some([before, now]) => {
                write!(f, "; labels that are right: {:.1} % before, {:.1} % now", 100.0 * before, 100.0 * now)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotators(columns: &[&[Option<u32>]]) -> Result<Annotators> {
        let names = (0..columns.len()).map(|at| at.to_string()).collect();
        Annotators::new(names, columns.iter().map(|column| column.to_vec()).collect())
    }

    #[test]
    fn most_votes_win_and_the_earliest_annotator_among_equals() {
        let all = |labels: [u32; 4]| labels.map(Some);
        let columns = [all([2, 0, 1, 0]), all([1, 1, 1, 1]), all([0, 1, 1, 1]), all([0, 0, 2, 0])];
        let columns: Vec<&[Option<u32>]> = columns.iter().map(|column| &column[..]).collect();
        assert_eq!(annotators(&columns).unwrap().majority(), [0, 0, 1, 0]);
        assert_eq!(annotators(&[&[Some(2)], &[Some(1)]]).unwrap().majority(), [2]);
    }

    #[test]
    fn who_did_not_label_an_item_has_no_vote_and_somebody_must() {
        let some =
            annotators(&[&[None, Some(1), None], &[Some(2), None, Some(0)], &[Some(2), Some(0), None]]);
        assert_eq!(some.unwrap().majority(), [2, 1, 0]);
        let error = annotators(&[&[Some(1), None], &[Some(0), None]]).unwrap_err().to_string();
        assert!(error.contains("item 1 has no label"), "{error}");
        assert!(annotators(&[&[Some(1), None], &[Some(0)]]).is_err());
    }

    #[test]
    fn sources_are_picked_with_their_items() {
        let sources = Sources::new(vec!["a".into(), "b".into()], vec![0, 1, 1]).unwrap();
        assert_eq!(sources.pick(&[2, 0]).of_items(), [1, 0]);
        assert_eq!((sources.name(1), sources.name(3)), (Some("b"), None));
        assert!(Sources::new(vec!["a".into()], vec![1]).is_err());
    }
}
