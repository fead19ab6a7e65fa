//! The tree that claims nothing.

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::FreshNames;
use crate::Result;

impl Taxonomy {
    /// A tree for classes of which no relation is known: $D(a, b) = 4$ for every pair, which is
    /// neutral at the default thresholds (3, 5), so the plug-in touches no pair.
    ///
    /// The classes do not hang directly below the root. That would make every distance 2, and 2 means
    /// *related* everywhere else: it would claim that all classes are close relatives, the opposite of
    /// knowing nothing. So each class sits in a group of its own.
    pub fn flat(class_names: &[impl AsRef<str>]) -> Result<Self> {
        let names = || class_names.iter().map(AsRef::as_ref);
        let mut fresh = FreshNames::besides(names());
        let mut twigs = Vec::with_capacity(2 * class_names.len() + 1);
        if !class_names.is_empty() {
            twigs.push(Twig::new(fresh.name("all classes".to_owned()), None, None));
        }
        for (class, name) in names().enumerate() {
            twigs.push(Twig::new(fresh.name(format!("only {}", name.trim())), Some(0), None));
            twigs.push(Twig::new(name, Some(twigs.len() - 1), Some(class)));
        }
        grow("flat", twigs)
    }
}
