//! The tree that claims nothing, and the tree that claims that all classes are unrelated.

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::FreshNames;
use crate::Result;

/// Groups above a class of [`Taxonomy::unrelated`]: $D = 2 (7 + 1) = 16$, further than any two classes of a built-in tree.
const FAR: usize = 7;

impl Taxonomy {
    /// A tree for classes of which no relation is known: $D(a, b) = 4$ for every pair, which is
    /// neutral at the default thresholds (3, 5), so the plug-in touches no pair.
    ///
    /// The classes do not hang directly below the root. That would make every distance 2, and 2 means
    /// *related* everywhere else: it would claim that all classes are close relatives, the opposite of
    /// knowing nothing. So each class sits in a group of its own.
    pub fn flat(class_names: &[impl AsRef<str>]) -> Result<Self> {
        apart("flat", class_names, 1)
    }

    /// A tree in which every two classes are unrelated: $D(a, b) = 16$ for every pair, above every $\eta_{\max}$ below 16.
    /// The plug-in then treats all pairs of different classes alike: a control for what the shape of a tree adds.
    ///
    /// It is [flat](Self::flat) too, but each class sits below seven groups of its own instead of one.
    pub fn unrelated(class_names: &[impl AsRef<str>]) -> Result<Self> {
        apart("unrelated", class_names, FAR)
    }
}

/// Every class below so many groups of its own.
fn apart(tree: &str, class_names: &[impl AsRef<str>], groups: usize) -> Result<Taxonomy> {
    let names = || class_names.iter().map(AsRef::as_ref);
    let mut fresh = FreshNames::besides(names());
    let mut twigs = Vec::with_capacity((groups + 1) * class_names.len() + 1);
    if !class_names.is_empty() {
        twigs.push(Twig::new(fresh.name("all classes".to_owned()), None, None));
    }
    for (class, name) in names().enumerate() {
        let mut above = 0;
        for _ in 0..groups {
            twigs.push(Twig::new(fresh.name(format!("only {}", name.trim())), Some(above), None));
            above = twigs.len() - 1;
        }
        twigs.push(Twig::new(name, Some(above), Some(class)));
    }
    grow(tree, twigs)
}
