//! The class tree of a plug-in: given, or learnt in the run.

use crate::{Error, Result};
use negscale::Taxonomy;
use negscale::taxonomy::{LearntSettings, class_means};
use negscale_data::Dataset;
use negscale_nets::Scan;

/// Where the class tree comes from.
#[derive(Debug, Clone)]
pub enum Tree {
    /// Given.
    Given(Taxonomy),
    /// Learnt from the mean features of the classes after the first epoch; until then the plug-in is off.
    Learnt(LearntSettings),
    /// Learnt in this run.
    Grown(Taxonomy),
}

impl Tree {
    /// The tree, if there is one.
    pub fn taxonomy(&self) -> Option<&Taxonomy> {
        match self {
            Tree::Given(tree) | Tree::Grown(tree) => Some(tree),
            Tree::Learnt(_) => None,
        }
    }

    /// Refuses data that the tree cannot be used for.
    pub(crate) fn check(&self, data: &Dataset) -> Result<()> {
        let classes = data.classes().len();
        let problem = match self {
            Tree::Given(tree) | Tree::Grown(tree) => {
                if tree.classes() == classes {
                    return Ok(());
                }
                format!("the class tree `{}` has {} classes, the data {classes}", tree.name(), tree.classes())
            }
            Tree::Learnt(_) => {
                let empty = (0..classes).find(|&class| !data.given().contains(&(class as u32)));
                let Some(empty) = empty else { return Ok(()) };
                let name = &data.classes()[empty];
                format!(
                    "no sample is labelled `{name}`, so a class tree cannot be learnt; give a tree, or remove the class"
                )
            }
        };
        Err(Error::Settings { place: "tree".into(), problem })
    }

    /// The tree that the features of the classes suggest.
    pub(crate) fn grow(&self, classes: &[String], scan: &Scan, given: &[u32]) -> Result<Taxonomy> {
        let settings = if let Tree::Learnt(settings) = self { *settings } else { LearntSettings::default() };
        let labels: Vec<usize> = given.iter().map(|&label| label as usize).collect();
        let means = class_means(classes, &scan.features, scan.dim, &labels)?;
        Ok(Taxonomy::learnt(classes, &means, &settings)?)
    }
}
