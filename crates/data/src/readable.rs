//! Pictures that cannot be read: found before anything is learnt from the others, all at once.

use crate::views::ChannelSums;
use crate::{Dataset, Error, ImageStore, Items, Result, Splits};
use rayon::prelude::*;
use serde::Serialize;

/// How many are told one by one; all are counted.
pub(crate) const TOLD: usize = 20;

/// An item that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Its number.
    pub index: usize,
    /// Where it is, if it has a place of its own.
    pub origin: Option<String>,
    /// Why.
    pub reason: String,
}

impl Failure {
    /// A picture of a store that failed with an error.
    pub fn new(store: &dyn ImageStore, index: usize, error: &Error) -> Self {
        let origin = store.origin(index);
        let reason = if origin.is_some() { error.reason() } else { error.to_string() };
        Self { index, origin, reason }
    }

    /// Where it is, or which it is.
    pub fn place(&self) -> String {
        self.origin.clone().unwrap_or_else(|| format!("item {}", self.index))
    }
}

/// A look at every item: what cannot be read, in order, and the sums over the pixels of the others.
///
/// Pictures whose size their format fixes were measured when they were opened, so only others are decoded, on all threads;
/// features are checked where they are read.
#[derive(Default)]
pub(crate) struct Look {
    pub failures: Vec<Failure>,
    sums: Option<ChannelSums>,
}

impl Look {
    pub fn at(items: &Items) -> Self {
        let Items::Images(store) = items else { return Self::default() };
        if store.shape().is_some() {
            return Self::default();
        }
        let one = |index| match store.load(index).and_then(ChannelSums::of) {
            Ok(sums) => Self { failures: Vec::new(), sums: Some(sums) },
            Err(error) => Self { failures: vec![Failure::new(store.as_ref(), index, &error)], sums: None },
        };
        (0..store.len()).into_par_iter().map(one).reduce(Self::default, Self::join)
    }

    /// Of two in order of items.
    fn join(mut self, later: Self) -> Self {
        self.failures.extend(later.failures);
        self.sums = match (self.sums, later.sums) {
            (Some(sums), Some(more)) => Some(sums.join(more)),
            (sums, more) => sums.or(more),
        };
        self
    }

    /// The data set is that of the items that can be read: what was measured of them need not be measured again.
    fn remember(self, dataset: &Dataset) -> Vec<Failure> {
        if let Some(sums) = self.sums {
            dataset.remember_channel_sums(sums);
        }
        self.failures
    }
}

impl Splits {
    fn parts(&self) -> impl Iterator<Item = &Dataset> {
        [Some(&self.train), self.test.as_ref(), self.second_test.as_ref()].into_iter().flatten()
    }

    /// Refuses data with pictures that cannot be read, naming them.
    pub fn check_readable(&self) -> Result<()> {
        let mut failures = Vec::new();
        for part in self.parts() {
            let look = Look::at(part.items());
            if look.failures.is_empty() {
                look.remember(part);
            } else {
                failures.extend(look.failures);
            }
        }
        let items = self.parts().map(Dataset::len).sum();
        if failures.is_empty() { Ok(()) } else { Err(Error::Unreadable { failures, items }) }
    }

    /// The same data without pictures that cannot be read; these are listed in `left_out`.
    pub fn without_unreadable(mut self) -> Result<Self> {
        let items = self.parts().map(Dataset::len).sum();
        let mut failures = Vec::new();
        for part in
            [Some(&mut self.train), self.test.as_mut(), self.second_test.as_mut()].into_iter().flatten()
        {
            let look = Look::at(part.items());
            let found = &look.failures;
            if !found.is_empty() && found.len() == part.len() {
                return Err(Error::Unreadable { items: part.len(), failures: look.failures });
            }
            if !found.is_empty() {
                *part = part.subset(&others(found, part.len()))?;
            }
            failures.extend(look.remember(part));
        }
        self.notes.extend(note(&failures, items));
        self.left_out.extend(failures);
        Ok(self)
    }
}

/// The numbers of the items that can be read.
pub(crate) fn others(failures: &[Failure], items: usize) -> Vec<usize> {
    let mut failures = failures.iter().map(|failure| failure.index).peekable();
    (0..items).filter(|i| failures.next_if_eq(i).is_none()).collect()
}

/// What is said of those that are left out.
pub(crate) fn note(failures: &[Failure], items: usize) -> Option<String> {
    let first = failures.first()?.place();
    let more = if failures.len() == 1 { "" } else { " and others" };
    let count = failures.len();
    Some(format!("{count} of {items} images cannot be read and are skipped: {first}{more}"))
}

/// What an error says of all.
pub(crate) fn tell(failures: &[Failure], items: usize) -> String {
    let mut text = format!("{} of {items} images cannot be read:", failures.len());
    for failure in failures.iter().take(TOLD) {
        text += &format!("\n  {}: {}", failure.place(), failure.reason);
    }
    if failures.len() > TOLD {
        text += &format!("\n  and {} more", failures.len() - TOLD);
    }
    if failures.len() == items {
        return text + "\nReplace them, or use other data";
    }
    text + "\nReplace or remove them, or skip them with --skip-unreadable (in a recipe: skip_unreadable = true)"
}
