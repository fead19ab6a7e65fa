//! Labels: how often each class is given, and how given and true labels differ.

use crate::Dataset;
use serde::Serialize;
use std::collections::BTreeMap;

/// Labels and classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// Smallest given label, if there are items.
    pub lowest: Option<u32>,
    /// Largest given label, if there are items.
    pub highest: Option<u32>,
    /// Classes that no item is given, by number.
    pub unused: Vec<u32>,
    /// Every class, in order.
    pub classes: Vec<ClassCount>,
}

/// How many items a class has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// Its name.
    pub name: String,
    /// Items with it as given label.
    pub given: usize,
    /// Items with it as true label, where the truth is known.
    pub truth: Option<usize>,
}

/// How given and true labels differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// Items whose given label is not the true one.
    pub wrong: usize,
    /// Share of these among all items, 0 to 1.
    pub rate: f64,
    /// Per true class, the share of its items with another given label; nothing for a class without items.
    pub rates: Vec<Option<f64>>,
    /// Items with true label (row) and given label (column). Absent for more than 1,000 classes.
    pub counts: Option<Vec<Vec<usize>>>,
    /// The most frequent mistakes, the most frequent first.
    pub confusions: Vec<Confusion>,
}

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// True label.
    pub truth: u32,
    /// Given label.
    pub given: u32,
    /// How often.
    pub count: usize,
}

const LARGEST_MATRIX: usize = 1000;

fn tally(labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.iter().filter_map(|&label| counts.get_mut(label as usize).map(|n| *n += 1)).count();
    counts
}

/// Counts labels.
pub(super) fn count(dataset: &Dataset) -> Labels {
    let given = tally(dataset.given(), dataset.classes().len());
    let truth = dataset.truth().map(|truth| tally(truth, dataset.classes().len()));
    let used = given.iter().enumerate();
    Labels {
        lowest: dataset.given().iter().min().copied(),
        highest: dataset.given().iter().max().copied(),
        unused: used.filter(|(_, count)| **count == 0).map(|(class, _)| class as u32).collect(),
        classes: dataset
            .classes()
            .iter()
            .enumerate()
            .map(|(at, name)| ClassCount {
                name: name.clone(),
                given: given[at],
                truth: truth.as_ref().map(|counts| counts[at]),
            })
            .collect(),
    }
}

/// Compares given and true labels.
pub(super) fn compare(dataset: &Dataset, truth: &[u32], examples: usize) -> Noise {
    let classes = dataset.classes().len();
    // few of the possible pairs occur where there are many classes
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (&truth, &given) in truth.iter().zip(dataset.given()) {
        *pairs.entry((truth, given)).or_default() += 1;
    }
    let (mut of_class, mut wrong_of_class) = (vec![0usize; classes], vec![0usize; classes]);
    let mut counts = (classes <= LARGEST_MATRIX).then(|| vec![vec![0; classes]; classes]);
    let mut confusions = Vec::new();
    for (&(truth, given), &count) in &pairs {
        of_class[truth as usize] += count;
        if let Some(counts) = &mut counts {
            counts[truth as usize][given as usize] = count;
        }
        if truth != given {
            wrong_of_class[truth as usize] += count;
            confusions.push(Confusion { truth, given, count });
        }
    }
    confusions.sort_by_key(|confusion| std::cmp::Reverse(confusion.count));
    confusions.truncate(examples);
    let wrong: usize = wrong_of_class.iter().sum();
    Noise {
        wrong,
        rate: if truth.is_empty() { 0.0 } else { wrong as f64 / truth.len() as f64 },
        rates: of_class
            .iter()
            .zip(&wrong_of_class)
            .map(|(&all, &wrong)| (all > 0).then(|| wrong as f64 / all as f64))
            .collect(),
        counts,
        confusions,
    }
}
