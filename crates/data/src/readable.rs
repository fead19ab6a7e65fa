//! Pictures that cannot be read: found before anything is learnt from the others, all at once.

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
    pub(crate) fn new(store: &dyn ImageStore, index: usize, error: &Error) -> Self {
        let origin = store.origin(index);
        let reason = if origin.is_some() { error.reason() } else { error.to_string() };
        Self { index, origin, reason }
    }

    /// Where it is, or which it is.
    pub fn place(&self) -> String {
        self.origin.clone().unwrap_or_else(|| format!("item {}", self.index))
    }
}

/// What cannot be read, in order. Pictures whose size their format fixes were measured when they were opened, so only others
/// are decoded, on all threads; features are checked where they are read.
pub fn unreadable(items: &Items) -> Vec<Failure> {
    match items {
        Items::Images(store) if store.shape().is_none() => (0..store.len())
            .into_par_iter()
            .filter_map(|i| store.load(i).err().map(|error| Failure::new(store.as_ref(), i, &error)))
            .collect(),
        _ => Vec::new(),
    }
}

impl Splits {
    fn parts(&self) -> impl Iterator<Item = &Dataset> {
        [Some(&self.train), self.test.as_ref(), self.second_test.as_ref()].into_iter().flatten()
    }

    /// Refuses data with pictures that cannot be read, naming them.
    pub fn check_readable(&self) -> Result<()> {
        let failures: Vec<Failure> = self.parts().flat_map(|part| unreadable(part.items())).collect();
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
            let found = unreadable(part.items());
            if !found.is_empty() && found.len() == part.len() {
                return Err(Error::Unreadable { items: part.len(), failures: found });
            }
            if !found.is_empty() {
                *part = part.subset(&others(&found, part.len()))?;
            }
            failures.extend(found);
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
