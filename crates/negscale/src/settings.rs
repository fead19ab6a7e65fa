//! Settings of the plug-in, with the paper's letters and defaults.

use crate::taxonomy::Thresholds;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How sums over pairs become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Means over what the paper sums: entries of $F^\top F - I$, unrelated pairs, related pairs.
    #[default]
    Mean,
    /// The paper to the letter. At a batch of 128 the global term is near $10^6$ beside a cross-entropy
    /// of 2, so the weights must be tiny for training to survive.
    Sum,
}

/// Where the unrelated pairs of a batch come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairSource {
    /// The class tree: $D > \eta_{\max}$.
    #[default]
    Tree,
    /// As many pairs as the tree gives, drawn uniformly from all pairs of the batch (the paper's
    /// ablation "random selection").
    Random,
}

/// Which labels decide the pair sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    /// The labels as given, $\tilde y$ (the paper).
    #[default]
    Given,
    /// The labels that the host currently believes.
    Refurbished,
}

/// What is subtracted from the features before they are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// Nothing: for features that can be negative.
    #[default]
    None,
    /// The running mean of the class means, for features that cannot be negative (after a ReLU), whose
    /// cosines would otherwise never fall below 0.
    ClassBalanced,
}

/// Settings of [`NegScale`](crate::NegScale). `Settings::default()` is the paper's, with means for sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// $\lambda$, weight of SNOP.
    pub lambda: f64,
    /// $\mu$, weight of DCSA.
    pub mu: f64,
    /// $\eta_{\min}$: classes at a distance from 1 to this are related.
    pub eta_min: u32,
    /// $\eta_{\max}$: classes further apart than this are unrelated.
    pub eta_max: u32,
    /// `false`: ablation without SNOP.
    pub snop: bool,
    /// `false`: ablation without DCSA.
    pub dcsa: bool,
    /// Weight of the global term inside SNOP (1 in the paper).
    pub global: f64,
    /// Weight of the local term inside SNOP (1 in the paper).
    pub local: f64,
    /// Means or sums.
    pub reduction: Reduction,
    /// Unrelated pairs by the tree or at random.
    pub pairs: PairSource,
    /// Seed of the random pairs.
    pub seed: u64,
    /// Whether $p = i$ and $q = j$ are allowed in $\delta_{ij}$ (as the paper writes it).
    pub self_anchor: bool,
    /// Whether the gradient flows through $\delta_{ij}$ too.
    pub delta_gradient: bool,
    /// Labels that decide the pair sets.
    pub targets: Targets,
    /// Whether the plug-in already acts while the host warms up.
    pub during_warm_up: bool,
    /// Whether only what is above 0 in the features counts, as after a ReLU (then no two samples are less than orthogonal).
    pub rectify: bool,
    /// What is subtracted from the features first.
    pub centre: Centre,
    /// Share of the old value when a running class mean meets a new batch.
    pub centre_momentum: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            mu: 1.0,
            eta_min: 3,
            eta_max: 5,
            snop: true,
            dcsa: true,
            global: 1.0,
            local: 1.0,
            reduction: Reduction::Mean,
            pairs: PairSource::Tree,
            seed: 0,
            self_anchor: true,
            delta_gradient: false,
            targets: Targets::Given,
            during_warm_up: false,
            rectify: false,
            centre: Centre::None,
            centre_momentum: 0.9,
        }
    }
}

impl Settings {
    /// The settings, if every one of them is in its range.
    pub fn checked(self) -> Result<Self> {
        let weights =
            [("lambda", self.lambda), ("mu", self.mu), ("global", self.global), ("local", self.local)];
        for (name, value) in weights {
            if !(value.is_finite() && value >= 0.0) {
                let requirement = "a weight must be a finite number, 0 or more";
                return Err(Error::Setting { name, value: value.to_string(), requirement });
            }
        }
        self.thresholds()?;
        if !(0.0..1.0).contains(&self.centre_momentum) {
            return Err(Error::Setting {
                name: "centre_momentum",
                value: self.centre_momentum.to_string(),
                requirement: "a share of the old value, from 0 up to but not including 1",
            });
        }
        Ok(self)
    }

    /// $(\eta_{\min}, \eta_{\max})$, if in order.
    pub fn thresholds(&self) -> Result<Thresholds> {
        Thresholds::new(self.eta_min, self.eta_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_are_those_of_the_paper() {
        let s = Settings::default().checked().unwrap();
        assert_eq!((s.lambda, s.mu, s.eta_min, s.eta_max), (1.0, 1.0, 3, 5));
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let base = Settings::default;
        for (settings, name) in [
            (Settings { lambda: -1.0, ..base() }, "lambda"),
            (Settings { mu: f64::NAN, ..base() }, "mu"),
            (Settings { global: f64::INFINITY, ..base() }, "global"),
            (Settings { local: -0.5, ..base() }, "local"),
            (Settings { eta_min: 6, ..base() }, "eta_min"),
            (Settings { centre_momentum: 1.0, ..base() }, "centre_momentum"),
        ] {
            assert!(settings.checked().unwrap_err().to_string().contains(name), "{name}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_and_a_missing_one_takes_its_default() {
        assert!(serde_json::from_str::<Settings>(r#"{"lamda": 1}"#).is_err());
        let s: Settings =
            serde_json::from_str(r#"{"mu": 0.5, "reduction": "sum", "pairs": "random"}"#).unwrap();
        assert_eq!((s.mu, s.lambda, s.reduction, s.pairs), (0.5, 1.0, Reduction::Sum, PairSource::Random));
    }
}
