//! Labels by several annotators: who called which sample what.
//!
//! Only labels that were given take space. All labels of one class by one annotator share a *slot*, because a model of annotators
//! treats them alike; there are at most $A\,C$ slots, and no more than labels.

use crate::{Error, Result};

/// Labels of N samples by A annotators, some of them missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    classes: usize,
    /// Where each sample's labels begin, and the end.
    starts: Vec<usize>,
    /// The slot of each label, by sample, then by annotator.
    slots: Vec<u32>,
    /// Annotator and class of each slot, in this order.
    owners: Vec<(u32, u32)>,
    /// Where each annotator's slots begin, and the end.
    firsts: Vec<usize>,
    /// Where each slot's samples begin, and the end; and the samples.
    members: (Vec<usize>, Vec<u32>),
}

/// One label: sample, annotator, class.
type Triple = (u32, u32, u32);

fn wrong<T>(problem: String) -> Result<T> {
    Err(Error::Samples { what: "labels", problem })
}

impl Labels {
    /// Labels sample after sample (N x A), `None` where an annotator gave none.
    ///
    /// # Errors
    /// If the labels are no whole rows, or one is not below `classes`.
    pub fn from_rows(labels: &[Option<u32>], annotators: usize, classes: usize) -> Result<Self> {
        if annotators == 0 || !labels.len().is_multiple_of(annotators) {
            return wrong(format!(
                "{} places are no whole rows of {annotators} annotators: give one place for every sample and annotator, empty where there is no label",
                labels.len()
            ));
        }
        let given = labels.iter().enumerate().filter_map(|(at, label)| Some((at, (*label)?)));
        let triples = given.map(|(at, class)| (at / annotators, at % annotators, class));
        Self::from_triples(labels.len() / annotators, annotators, classes, triples)
    }

    /// Labels annotator after annotator, a column for each, `None` where one gave none.
    ///
    /// # Errors
    /// If there is no column, columns differ in length, or a label is not below `classes`.
    pub fn from_columns<C: AsRef<[Option<u32>]>>(columns: &[C], classes: usize) -> Result<Self> {
        let Some(samples) = columns.first().map(|column| column.as_ref().len()) else {
            return wrong("no column of labels: give one for every annotator".into());
        };
        if let Some(at) = columns.iter().position(|column| column.as_ref().len() != samples) {
            let length = columns[at].as_ref().len();
            return wrong(format!(
                "annotator {at} has {length} places and annotator 0 has {samples}: every column needs a place for every sample"
            ));
        }
        let of_column = |(annotator, column): (usize, &C)| {
            let given = column.as_ref().iter().enumerate();
            let given = given.filter_map(move |(sample, class)| Some((sample, annotator, (*class)?)));
            given.collect::<Vec<_>>()
        };
        let triples = columns.iter().enumerate().flat_map(of_column);
        Self::from_triples(samples, columns.len(), classes, triples)
    }

    /// Labels one by one, in any order: sample, annotator, class. The form for many annotators who each saw few samples.
    ///
    /// # Errors
    /// If a sample, annotator or class is not below its number, or an annotator labelled a sample twice.
    pub fn from_triples(
        samples: usize,
        annotators: usize,
        classes: usize,
        triples: impl IntoIterator<Item = (usize, usize, u32)>,
    ) -> Result<Self> {
        if classes == 0 {
            return wrong("no classes: give their number".into());
        }
        let most = u32::MAX as usize;
        if samples >= most || annotators >= most || classes >= most {
            return wrong(format!(
                "{samples} samples, {annotators} annotators and {classes} classes: at most {most} of each are supported"
            ));
        }
        let mut all: Vec<Triple> = Vec::new();
        for (sample, annotator, class) in triples {
            if sample >= samples || annotator >= annotators {
                return wrong(format!(
                    "sample {sample} by annotator {annotator}: there are {samples} samples and {annotators} annotators, counted from 0"
                ));
            }
            if class as usize >= classes {
                return wrong(format!(
                    "label {class} of sample {sample} by annotator {annotator} is not a class: there are {classes}, counted from 0"
                ));
            }
            all.push((sample as u32, annotator as u32, class));
        }
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1)) {
            let (sample, annotator, _) = twice[0];
            return wrong(format!("annotator {annotator} labelled sample {sample} twice: keep one label"));
        }
        if all.len() >= most {
            return wrong(format!("{} labels: at most {most} are supported", all.len()));
        }
        Ok(Self::arrange(samples, annotators, classes, &all))
    }

    /// Labels from triples in order, each sample and annotator once.
    fn arrange(samples: usize, annotators: usize, classes: usize, all: &[Triple]) -> Self {
        let mut owners: Vec<(u32, u32)> =
            all.iter().map(|&(_, annotator, class)| (annotator, class)).collect();
        owners.sort_unstable();
        owners.dedup();
        let slot = |&(_, annotator, class): &Triple| {
            owners.partition_point(|&owner| owner < (annotator, class)) as u32
        };
        let slots: Vec<u32> = all.iter().map(slot).collect();
        let starts = begins(samples, all.iter().map(|label| label.0));
        let firsts = begins(annotators, owners.iter().map(|owner| owner.0));
        let places = begins(owners.len(), slots.iter().copied());
        let (mut next, mut members) = (places.clone(), vec![0; all.len()]);
        for (&slot, label) in slots.iter().zip(all) {
            let at = &mut next[slot as usize];
            members[*at] = label.0;
            *at += 1;
        }
        Self { classes, starts, slots, owners, firsts, members: (places, members) }
    }

    /// Samples N.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.starts.len() - 1
    }

    /// Annotators A.
    #[must_use]
    pub fn annotators(&self) -> usize {
        self.firsts.len() - 1
    }

    /// Classes C.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Labels that were given.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no label was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A sample's labels: annotator and class, by annotator.
    pub fn of_sample(&self, sample: usize) -> impl ExactSizeIterator<Item = (usize, u32)> + '_ {
        let owner = |&slot: &u32| self.owners[slot as usize];
        self.slots_of(sample).iter().map(owner).map(|(annotator, class)| (annotator as usize, class))
    }

    /// Slots of a sample's labels.
    pub(super) fn slots_of(&self, sample: usize) -> &[u32] {
        &self.slots[self.starts[sample]..self.starts[sample + 1]]
    }

    /// Annotator and class of every slot, in this order.
    pub(super) fn owners(&self) -> &[(u32, u32)] {
        &self.owners
    }

    /// Slots of an annotator.
    pub(super) fn slots_by(&self, annotator: usize) -> std::ops::Range<usize> {
        self.firsts[annotator]..self.firsts[annotator + 1]
    }

    /// Samples with the label of a slot.
    pub(super) fn members(&self, slot: usize) -> &[u32] {
        &self.members.1[self.members.0[slot]..self.members.0[slot + 1]]
    }

    /// Labels an annotator gave.
    pub(super) fn given_by(&self, annotator: usize) -> usize {
        let slots = self.slots_by(annotator);
        self.members.0[slots.end] - self.members.0[slots.start]
    }
}

/// Where each of `groups` begins in a row of group numbers that could be sorted, and the end.
fn begins(groups: usize, numbers: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0; groups + 1];
    numbers.for_each(|number| starts[number as usize + 1] += 1);
    for at in 0..groups {
        starts[at + 1] += starts[at];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_columns_and_triples_are_the_same_labels() {
        let rows = [Some(1), None, Some(0), Some(2), None, Some(2)];
        let labels = Labels::from_rows(&rows, 2, 3).unwrap();
        assert_eq!(
            Labels::from_columns(&[[Some(1), Some(0), None], [None, Some(2), Some(2)]], 3).unwrap(),
            labels
        );
        let triples = [(2, 1, 2), (0, 0, 1), (1, 1, 2), (1, 0, 0)];
        assert_eq!(Labels::from_triples(3, 2, 3, triples).unwrap(), labels);
        assert_eq!((labels.samples(), labels.annotators(), labels.classes(), labels.len()), (3, 2, 3, 4));
        assert_eq!(labels.of_sample(1).collect::<Vec<_>>(), [(0, 0), (1, 2)]);
        assert_eq!(labels.owners(), [(0, 0), (0, 1), (1, 2)]);
        assert_eq!(labels.members(2), [1, 2]);
        assert_eq!((labels.given_by(0), labels.given_by(1)), (2, 2));
    }

    #[test]
    fn what_are_no_labels_is_refused_with_its_place() {
        let told = |result: Result<Labels>| result.unwrap_err().to_string();
        assert!(told(Labels::from_rows(&[None; 5], 2, 3)).contains("5 places are no whole rows of 2"));
        assert!(told(Labels::from_rows(&[], 0, 3)).contains("0 annotators"));
        assert!(
            told(Labels::from_rows(&[None, Some(3)], 2, 3)).contains("label 3 of sample 0 by annotator 1")
        );
        assert!(told(Labels::from_columns::<Vec<_>>(&[], 3)).contains("one for every annotator"));
        assert!(told(Labels::from_columns(&[vec![None], vec![]], 3)).contains("annotator 1 has 0 places"));
        assert!(told(Labels::from_triples(2, 2, 2, [(2, 0, 0)])).contains("sample 2"));
        assert!(
            told(Labels::from_triples(2, 2, 2, [(1, 0, 0), (0, 0, 0), (1, 0, 1)])).contains("sample 1 twice")
        );
        assert!(told(Labels::from_triples(2, 2, 0, [])).contains("no classes"));
    }
}
