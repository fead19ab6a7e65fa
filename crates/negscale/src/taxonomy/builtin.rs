//! The trees that come with the crate, as files in `trees/`.

use super::Taxonomy;
use super::names::nearest;
use crate::{Error, Result};

/// Writes the list of names and the table of texts from one list, so that they cannot disagree.
macro_rules! trees {
    ($($name:literal)*) => {
        const NAMES: &[&str] = &[$($name),*];
        const TEXTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../trees/", $name, ".tsv")))),*];
    };
}

trees! {
    "cifar10"
    "cifar10-flat"
    "cifar10-contracted"
    "cifar10-wordnet"
    "cifar100"
    "cifar100-three-level"
    "animal10n"
    "webvision50"
    "fashion-mnist"
}

impl Taxonomy {
    /// A tree that comes with the crate.
    ///
    /// | name | data set and tree |
    /// |---|---|
    /// | `cifar10` | CIFAR-10 |
    /// | `cifar10-flat` | the same without the carnivore group: all classes at one depth |
    /// | `cifar10-contracted` | the same with bird and frog directly below vertebrate |
    /// | `cifar10-wordnet` | WordNet with single-child nodes removed, for comparison |
    /// | `cifar100` | CIFAR-100, published grouping 2/4/8/20/100 |
    /// | `cifar100-three-level` | CIFAR-100, published grouping 8/20/100 |
    /// | `animal10n` | ANIMAL-10N |
    /// | `webvision50` | mini-WebVision, the first 50 ILSVRC classes |
    /// | `fashion-mnist` | Fashion-MNIST |
    pub fn builtin(name: &str) -> Result<Self> {
        match TEXTS.iter().find(|(known, _)| *known == name) {
            Some((known, text)) => Self::from_tsv(known, text),
            None => Err(Error::UnknownTree {
                name: name.to_owned(),
                nearest: nearest(name, NAMES.iter().copied()).map(str::to_owned),
                known: NAMES.join(", "),
            }),
        }
    }

    /// The names [`builtin`](Self::builtin) knows.
    pub fn builtin_names() -> &'static [&'static str] {
        NAMES
    }
}
