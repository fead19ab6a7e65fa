//! Settings of the plug-in, with the paper's letters and defaults.

use crate::taxonomy::Thresholds;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How sums over pairs become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub enum Centre {
    /// Nothing: for features that can be negative.
    #[default]
    None,
    /// The running mean of the class means, for features that cannot be negative (after a ReLU), whose
    /// cosines would otherwise never fall below 0.
    ClassBalanced,
}

/// Settings of [`NegScale`](crate::NegScale). `Settings::default()` is the paper's, with means for sums.
///
/// Each setting has a field and a method `with_...`; ranges are checked by [`checked`](Self::checked), which
/// [`NegScale::new`](crate::NegScale::new) calls. As a file (serde) the settings are a table in which every key may be missing.
///
/// ```
/// use negscale::{Centre, Settings};
///
/// let settings = Settings::default().with_lambda(0.5).with_dcsa(false).with_centre(Centre::ClassBalanced);
/// assert_eq!((settings.lambda, settings.mu), (0.5, 1.0));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
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
    /// Whether labels that a training method guesses are weighed by how often, among wrong labels, their relation to the given label
    /// occurs. It adds nothing to the loss; what trains a method does it.
    pub posterior: bool,
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
            posterior: false,
            rectify: false,
            centre: Centre::None,
            centre_momentum: 0.9,
        }
    }
}

/// Writes a method `with_...` for each field.
macro_rules! setters {
    ($($with:ident $field:ident: $kind:ty;)*) => {
        impl Settings {
            $(
                #[doc = concat!("The same with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $with(self, $field: $kind) -> Self {
                    Self { $field, ..self }
                }
            )*
        }
    };
}

setters! {
    with_lambda lambda: f64;
    with_mu mu: f64;
    with_eta_min eta_min: u32;
    with_eta_max eta_max: u32;
    with_snop snop: bool;
    with_dcsa dcsa: bool;
    with_global global: f64;
    with_local local: f64;
    with_reduction reduction: Reduction;
    with_pairs pairs: PairSource;
    with_seed seed: u64;
    with_self_anchor self_anchor: bool;
    with_delta_gradient delta_gradient: bool;
    with_targets targets: Targets;
    with_during_warm_up during_warm_up: bool;
    with_posterior posterior: bool;
    with_rectify rectify: bool;
    with_centre centre: Centre;
    with_centre_momentum centre_momentum: f64;
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
            (base().with_lambda(-1.0), "lambda"),
            (base().with_mu(f64::NAN), "mu"),
            (base().with_global(f64::INFINITY), "global"),
            (base().with_local(-0.5), "local"),
            (base().with_eta_min(6), "eta_min"),
            (base().with_centre_momentum(1.0), "centre_momentum"),
        ] {
            assert!(settings.checked().unwrap_err().to_string().contains(name), "{name}");
        }
    }

    #[test]
    fn every_key_has_a_method_that_sets_it_and_nothing_else() {
        let changed = Settings {
            lambda: 2.0,
            mu: 3.0,
            eta_min: 1,
            eta_max: 7,
            snop: false,
            dcsa: false,
            global: 4.0,
            local: 5.0,
            reduction: Reduction::Sum,
            pairs: PairSource::Random,
            seed: 6,
            self_anchor: false,
            delta_gradient: true,
            targets: Targets::Refurbished,
            during_warm_up: true,
            posterior: true,
            rectify: true,
            centre: Centre::ClassBalanced,
            centre_momentum: 0.5,
        };
        let built = Settings::default()
            .with_lambda(2.0)
            .with_mu(3.0)
            .with_eta_min(1)
            .with_eta_max(7)
            .with_snop(false)
            .with_dcsa(false)
            .with_global(4.0)
            .with_local(5.0)
            .with_reduction(Reduction::Sum)
            .with_pairs(PairSource::Random)
            .with_seed(6)
            .with_self_anchor(false)
            .with_delta_gradient(true)
            .with_targets(Targets::Refurbished)
            .with_during_warm_up(true)
            .with_posterior(true)
            .with_rectify(true)
            .with_centre(Centre::ClassBalanced)
            .with_centre_momentum(0.5);
        assert_eq!(built, changed);
    }

    #[test]
    fn an_unknown_key_is_refused_and_a_missing_one_takes_its_default() {
        assert!(serde_json::from_str::<Settings>(r#"{"lamda": 1}"#).is_err());
        let s: Settings =
            serde_json::from_str(r#"{"mu": 0.5, "reduction": "sum", "pairs": "random"}"#).unwrap();
        assert_eq!((s.mu, s.lambda, s.reduction, s.pairs), (0.5, 1.0, Reduction::Sum, PairSource::Random));
    }
}
