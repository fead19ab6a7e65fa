//! Labels that are known to fit the class tree, and how its classes stand to each other.

use crate::{Error, Result};
use negscale::Taxonomy;
use negscale::taxonomy::{Relation, Thresholds};

/// Place of a relation in lists of four: same, related, neutral, unrelated.
pub(crate) fn place(relation: Relation) -> usize {
    match relation {
        Relation::Same => 0,
        Relation::Related => 1,
        Relation::Neutral => 2,
        Relation::Unrelated => 3,
    }
}

/// Places of the relations of all pairs of classes, C x C.
pub(crate) fn relations(tree: &Taxonomy, thresholds: Thresholds) -> Vec<u8> {
    tree.distances().as_slice().iter().map(|&d| place(thresholds.relation(d)) as u8).collect()
}

/// Labels as given, true labels where they are known, and the relation of any two classes.
#[derive(Debug, Clone)]
pub struct Labels<'a> {
    given: &'a [u32],
    truth: Option<&'a [u32]>,
    classes: usize,
    /// C x C places of relations.
    relations: Vec<u8>,
}

impl<'a> Labels<'a> {
    /// Refuses labels that name no class of the tree, and true labels that are not as many.
    pub fn new(
        given: &'a [u32],
        truth: Option<&'a [u32]>,
        tree: &Taxonomy,
        thresholds: Thresholds,
    ) -> Result<Self> {
        if let Some(truth) = truth
            && truth.len() != given.len()
        {
            let (got, need) = (truth.len(), given.len());
            return Err(Error::size(
                "true labels",
                format!("there are {got}"),
                format!("{need} labels are given"),
            ));
        }
        let classes = tree.classes();
        for (what, labels) in [("label", Some(given)), ("true label", truth)] {
            let Some(labels) = labels else { continue };
            if let Some(sample) = labels.iter().position(|&label| label as usize >= classes) {
                let (label, tree) = (labels[sample], tree.name().to_owned());
                return Err(Error::Label { what, sample, label, tree, classes });
            }
        }
        Ok(Self { given, truth, classes, relations: relations(tree, thresholds) })
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Number of classes C.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Labels as given.
    pub fn given(&self) -> &'a [u32] {
        self.given
    }

    /// True labels, where they are known.
    pub fn truth(&self) -> Option<&'a [u32]> {
        self.truth
    }

    /// Share of labels that differ from the truth, where it is known.
    pub fn wrong(&self) -> Option<f64> {
        let wrong = self.given.iter().zip(self.truth?).filter(|(given, truth)| given != truth).count();
        (!self.is_empty()).then(|| wrong as f64 / self.len() as f64)
    }

    /// C x C places of relations.
    pub(crate) fn relations(&self) -> &[u8] {
        &self.relations
    }

    /// Place of the relation of two classes.
    pub(crate) fn relation(&self, a: u32, b: u32) -> usize {
        usize::from(self.relations[a as usize * self.classes + b as usize])
    }

    /// Refuses as many rows as there are no labels.
    pub(crate) fn fit(&self, what: &'static str, rows: usize) -> Result<()> {
        if rows == self.len() {
            return Ok(());
        }
        Err(Error::size(what, format!("there are {rows}"), format!("there are {} labels", self.len())))
    }
}
