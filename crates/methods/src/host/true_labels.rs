//! True labels for methods that need some: how many, and which methods.
//!
//! A method that uses true labels has a setting `true_labels`. The trainer then draws this many training samples by the seed and hands them over
//! ([`HostContext::truths`](crate::host::HostContext::truths)); all other methods get none, and what is reported of a method says how many it had.

use super::Card;
use crate::settings::require;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The setting by which a method asks for true labels.
const KEY: &str = "true_labels";
/// A whole number of samples is cut down to one of so many.
const AT_MOST_ONE_OF: usize = 10;

/// A number of samples: whole, or a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// So many, but not more than a tenth of all.
    Whole(usize),
    /// This share of all, above 0 and at most 1/2.
    Share(f64),
}

impl Count {
    /// How many of so many, at least one.
    pub fn of(self, samples: usize) -> usize {
        let count = match self {
            Self::Whole(count) => count.min(samples / AT_MOST_ONE_OF),
            Self::Share(share) => (share * samples as f64).round() as usize,
        };
        count.max(1)
    }

    /// Refuses none at all, and more than half.
    pub fn check(self, name: &'static str) -> Result<()> {
        match self {
            Self::Whole(count) => require(name, count as f64, count >= 1, "must be at least 1"),
            Self::Share(share) => {
                let fits = share > 0.0 && share <= 0.5;
                require(name, share, fits, "a share must be above 0 and at most 0.5")
            }
        }
    }
}

impl Card {
    /// How many true labels the method asks for by default, if it does.
    pub fn wants_truth(&self) -> Option<Count> {
        let value = (self.settings)().remove(KEY)?;
        #[expect(clippy::expect_used, reason = "a default is made from a `Count`; a test asks every card")]
        Some(value.try_into().expect("the default number of true labels"))
    }

    /// How many of so many samples' true labels the method is to be told, with these settings of its own.
    pub fn true_labels(&self, given: &toml::Table, samples: usize) -> Result<usize> {
        let Some(default) = self.wants_truth() else { return Ok(0) };
        let count: Count = match given.get(KEY) {
            None => default,
            Some(value) => value.clone().try_into().map_err(|_| Error::Settings {
                place: format!("[{}]", self.id),
                problem: format!("`{KEY}` = {value}: it must be a whole number of samples or a share of all"),
            })?,
        };
        count.check(KEY)?;
        Ok(count.of(samples))
    }
}
