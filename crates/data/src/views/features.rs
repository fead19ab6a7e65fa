//! Views of feature vectors: jitter and dropout.
//!
//! With m_j and s_j the mean and standard deviation of feature j over the data set, a view first adds sigma s_j n_j, n_j standard
//! normal, then with chance p replaces feature j by m_j, which is what one would guess without having seen it. Standardised
//! output is (x_j - m_j) / s_j, so there a dropped feature is 0.
//!
//! Views of vectors are made at every step and would cost as much as the small network that looks at them, so randomness is spent
//! sparingly: 16 bits a feature. Normals are 4,096 equally likely values ([`normals`](super::normals)), chances multiples of 2^-16.

use super::normals::Normals;
use crate::draw::Draw;
use crate::{Error, FeatureStore, Result};
use serde::{Deserialize, Serialize};

/// How far a view strays from the features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// Deviation of the added noise, in units of each feature's own standard deviation.
    #[serde(default)]
    pub sigma: f32,
    /// Chance that a feature is dropped.
    #[serde(default)]
    pub dropout: f32,
}

impl Stray {
    /// Not at all.
    pub const NONE: Self = Self { sigma: 0.0, dropout: 0.0 };

    /// Refuses values outside their ranges: sigma from 0 to 1000, dropout from 0 to below 1.
    pub fn checked(self) -> Result<Self> {
        let refuse = |what, value: f32, requirement: &str| {
            Err(Error::Setting { what, value: value.to_string(), requirement: requirement.into() })
        };
        if !(0.0..=1000.0).contains(&self.sigma) {
            return refuse("jitter", self.sigma, "must be from 0 to 1000 standard deviations");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse("dropout", self.dropout, "must be a chance from 0 to below 1");
        }
        Ok(self)
    }
}

/// Mean and standard deviation of each feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations; 1 for a feature that never changes, so that it can be divided by.
    pub std: Vec<f32>,
}

impl Moments {
    /// Measured in one pass (Welford's update, double precision); a number that is not finite is an error.
    pub fn measure(store: &dyn FeatureStore) -> Result<Self> {
        let dim = store.dim();
        let (mut row, mut mean, mut square) = (vec![0f32; dim], vec![0f64; dim], vec![0f64; dim]);
        for index in 0..store.len() {
            store.read(index, &mut row)?;
            let n = index as f64 + 1.0;
            for j in 0..dim {
                let x = row[j] as f64;
                if !x.is_finite() {
                    return Err(Error::Setting {
                        what: "feature",
                        value: x.to_string(),
                        requirement: format!(
                            "feature {j} of item {index} must be a finite number: mend or remove it"
                        ),
                    });
                }
                let before = x - mean[j];
                mean[j] += before / n;
                square[j] += before * (x - mean[j]);
            }
        }
        let n = store.len().max(1) as f64;
        // Relative to the mean, less than single precision can tell is no change at all.
        let std = square.iter().zip(&mean).map(|(s, m)| {
            let std = (s / n).sqrt();
            if std > m.abs() * 1e-7 && std > f32::MIN_POSITIVE as f64 { std as f32 } else { 1.0 }
        });
        Ok(Self { std: std.collect(), mean: mean.iter().map(|&m| m as f32).collect() })
    }

    fn checked(&self) -> Result<()> {
        let usable = self.mean.len() == self.std.len()
            && self.mean.iter().all(|m| m.is_finite())
            && self.std.iter().all(|s| s.is_normal() && *s > 0.0);
        if usable {
            return Ok(());
        }
        Err(Error::Setting {
            what: "moments",
            value: format!("{} means, {} deviations", self.mean.len(), self.std.len()),
            requirement: "every feature needs a finite mean and a standard deviation above 0".into(),
        })
    }
}

/// How feature vectors are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSettings {
    /// Of the data set to learn from; a test set is shown by the same ones.
    pub moments: Moments,
    /// Whether the output is (x - mean) / std.
    pub standardise: bool,
    /// The weak view.
    pub weak: Stray,
    /// The strong view.
    pub strong: Stray,
}

impl FeatureSettings {
    /// Standardised; weak: jitter 0.1; strong: jitter 0.3 and dropout 0.2.
    pub fn new(moments: Moments) -> Self {
        Self {
            moments,
            standardise: true,
            weak: Stray { sigma: 0.1, dropout: 0.0 },
            strong: Stray { sigma: 0.3, dropout: 0.2 },
        }
    }

    /// Numbers per vector.
    pub fn dim(&self) -> usize {
        self.moments.mean.len()
    }

    /// Itself, if every setting is in its range.
    pub fn checked(self) -> Result<Self> {
        self.moments.checked()?;
        self.weak.checked()?;
        self.strong.checked()?;
        Ok(self)
    }

    /// Turns a vector into its view, in place.
    pub(super) fn show(&self, stray: Stray, draw: &mut Draw, row: &mut [f32]) {
        let Moments { mean, std } = &self.moments;
        if stray.sigma > 0.0 {
            let sigma = stray.sigma;
            each_of_16_bits(draw, row.iter_mut().zip(std), |bits, (x, std)| {
                *x += sigma * std * Normals::get(bits);
            });
        }
        if stray.dropout > 0.0 {
            let dropped = f64::from(stray.dropout) * 65536.0;
            each_of_16_bits(draw, row.iter_mut().zip(mean), |bits, (x, mean)| {
                if f64::from(bits) + 0.5 < dropped {
                    *x = *mean;
                }
            });
        }
        if self.standardise {
            for ((x, mean), std) in row.iter_mut().zip(mean).zip(std) {
                *x = (*x - mean) / std;
            }
        }
    }
}

/// Gives every item 16 random bits of its own, four items to a word.
fn each_of_16_bits<T>(draw: &mut Draw, mut items: impl Iterator<Item = T>, mut give: impl FnMut(u16, T)) {
    loop {
        let word = draw.bits();
        for part in 0..4 {
            let Some(item) = items.next() else { return };
            give((word >> (16 * part)) as u16, item);
        }
    }
}
