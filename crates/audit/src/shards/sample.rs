//! Which rows models are fitted to.
//!
//! A row is in the sample if the hash of its id is at most its class's threshold, so neither the order of rows nor shards matter, and whoever
//! has the id and the label of a row knows. With $n_c$ rows of class c among n, and N wanted, class c gives each of its rows the chance
//! $r_c = \min(1, \max(N / n, m / n_c))$: the same share of every class, but about m rows (`at_least`) of rare ones. How many come
//! is random, within a few $\sqrt N$. A second hash deals rows into folds.

use super::RowSource;
use crate::crossfit::draw::mix;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Purposes of hashes; part of every stored sample.
const MEMBER: u64 = 0x73616d_706c65;
const FOLD: u64 = 0x666f6c64;

/// How a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSettings {
    /// Rows wanted, N.
    pub rows: u64,
    /// Rows wanted of every class that has them, m.
    pub at_least: u64,
    /// Folds.
    pub folds: u32,
    /// Seed of the hashes.
    pub seed: u64,
}

/// A rule that says of every row whether it is in the sample, and in which fold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    seed: u64,
    folds: u32,
    /// By class: the largest hash that is in.
    thresholds: Vec<u64>,
}

/// A number for an id that is text: the first eight bytes of its SHA-256.
#[must_use]
pub fn text_id(id: &str) -> u64 {
    let hash = Sha256::digest(id.as_bytes());
    hash.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Sample {
    /// The rule for rows with these labels, all below `classes`.
    ///
    /// # Errors
    /// If there are fewer than two folds or no rows are wanted.
    pub fn new(given: &[u32], classes: usize, settings: SampleSettings) -> Result<Self> {
        let SampleSettings { rows: wanted, at_least, folds, seed } = settings;
        if folds < 2 {
            let value = folds.to_string();
            return Err(Error::Range { setting: "folds", value, wanted: "at least 2" });
        }
        if wanted == 0 {
            return Err(Error::Range { setting: "rows", value: "0".into(), wanted: "at least 1" });
        }
        let mut counts = vec![0u64; classes];
        for (row, &label) in given.iter().enumerate() {
            let Some(count) = counts.get_mut(label as usize) else {
                let problem = format!("that of row {row} is {label}, but there are {classes} classes");
                return Err(Error::Samples { what: "labels", problem });
            };
            *count += 1;
        }
        let share = wanted as f64 / (given.len() as f64).max(1.0);
        let threshold = |&count: &u64| match share.max(at_least as f64 / (count as f64).max(1.0)) {
            rate if rate >= 1.0 => u64::MAX,
            rate => (rate * 2f64.powi(64)) as u64,
        };
        Ok(Self { seed, folds, thresholds: counts.iter().map(threshold).collect() })
    }

    /// Whether a row is in the sample.
    #[must_use]
    pub fn contains(&self, id: u64, given: u32) -> bool {
        let threshold = self.thresholds.get(given as usize);
        threshold.is_some_and(|&threshold| mix(mix(self.seed, MEMBER), id) <= threshold)
    }

    /// The fold of a row: models of this fold did not see it.
    #[must_use]
    pub fn fold(&self, id: u64) -> u32 {
        let hash = mix(mix(self.seed, FOLD), id);
        // The upper half of a product is uniform below the factor.
        ((u128::from(hash) * u128::from(self.folds)) >> 64) as u32
    }

    /// How many folds.
    #[must_use]
    pub fn folds(&self) -> u32 {
        self.folds
    }

    /// The chance of a row of a class: who fits models can weigh classes back by it.
    #[must_use]
    pub fn rate(&self, class: u32) -> f64 {
        self.thresholds.get(class as usize).map_or(0.0, |&threshold| threshold as f64 / 2f64.powi(64))
    }

    /// Numbers of the rows in the sample, rising.
    #[must_use]
    pub fn select(&self, source: &(impl RowSource + ?Sized)) -> Vec<u64> {
        let rows = (0..).zip(source.given());
        rows.filter(|&(row, &given)| self.contains(source.id(row), given)).map(|(row, _)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: SampleSettings = SampleSettings { rows: 5_000, at_least: 100, folds: 5, seed: 1 };

    /// 100,000 rows, of which 50 are of class 2 and 300 of class 3.
    fn labels() -> Vec<u32> {
        (0..100_000)
            .map(|row| {
                if row < 50 {
                    2
                } else if row < 350 {
                    3
                } else {
                    row % 2
                }
            })
            .collect()
    }

    #[test]
    fn samples_are_as_large_as_wanted_and_rare_classes_are_in_them() {
        let labels = labels();
        let sample = Sample::new(&labels, 5, SETTINGS).unwrap();
        let mut counts = [0u32; 5];
        let mut folds = [0u32; 5];
        for (id, &label) in (0..).zip(&labels) {
            if sample.contains(id, label) {
                counts[label as usize] += 1;
                folds[sample.fold(id) as usize] += 1;
            }
        }
        assert_eq!(counts[2], 50);
        assert!((60..140).contains(&counts[3]), "{counts:?}");
        assert!((4_700..5_300).contains(&(counts[0] + counts[1])), "{counts:?}");
        assert!(folds.iter().all(|&fold| (900..1_200).contains(&fold)), "{folds:?}");
        assert!((sample.rate(0) - 0.05).abs() < 1e-9 && sample.rate(2) == 1.0 && sample.rate(9) == 0.0);
    }

    #[test]
    fn whether_a_row_is_in_depends_on_its_id_and_label_alone() {
        let labels = labels();
        let sample = Sample::new(&labels, 5, SETTINGS).unwrap();
        let mut moved = labels.clone();
        moved.rotate_left(777);
        assert_eq!(Sample::new(&moved, 5, SETTINGS).unwrap(), sample);
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        let other = Sample::new(&labels, 5, SampleSettings { seed: 2, ..SETTINGS }).unwrap();
        assert!((0..10_000).any(|id| sample.contains(id, 0) != other.contains(id, 0)));
        // Folds say nothing about who is in.
        let members = (0..100_000).filter(|&id| sample.contains(id, 0));
        assert!((800..1_200).contains(&members.filter(|&id| sample.fold(id) == 0).count()));
        assert_eq!(text_id("a"), 0xca97_8112_ca1b_bdca);
    }

    #[test]
    fn all_rows_are_in_where_more_are_wanted_and_settings_are_checked() {
        let all = Sample::new(&[0, 1, 1], 2, SampleSettings { rows: 3, ..SETTINGS }).unwrap();
        assert!((0..1_000).all(|id| all.contains(id, 0)));
        assert!(Sample::new(&[0], 1, SampleSettings { folds: 1, ..SETTINGS }).is_err());
        assert!(Sample::new(&[0], 1, SampleSettings { rows: 0, ..SETTINGS }).is_err());
        assert!(Sample::new(&[3], 1, SETTINGS).unwrap_err().to_string().contains("row 0 is 3"));
        assert!(Sample::new(&[], 0, SETTINGS).is_ok());
    }
}
