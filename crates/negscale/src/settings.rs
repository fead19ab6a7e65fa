//! Settings of the plug-in, with the paper's letters and defaults.

use crate::taxonomy::Thresholds;
use crate::{
    Centre, Confidence, DeltaFeatures, Error, LocalDivisor, LocalShape, PairSource, Reduction, Result,
    Similarity, Targets,
};
use serde::{Deserialize, Serialize};

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
    /// Unrelated pairs of SNOP by the tree or at random.
    pub pairs: PairSource,
    /// Unrelated pairs that $\delta$ looks at, by the tree or at random.
    pub delta_pairs: PairSource,
    /// Seed of the random pairs.
    pub seed: u64,
    /// What a similarity is, in the local term and in DCSA.
    pub similarity: Similarity,
    /// Which unrelated pairs the local term acts on.
    pub local_shape: LocalShape,
    /// What the local term is divided by.
    pub local_divisor: LocalDivisor,
    /// Where samples' confidences come from.
    pub confidence: Confidence,
    /// Whether $p = i$ and $q = j$ are allowed in $\delta_{ij}$ (as the paper writes it).
    pub self_anchor: bool,
    /// Whether the gradient flows through $\delta_{ij}$ too.
    pub delta_gradient: bool,
    /// Instead of the nearest sample of a class, $\delta_{ij}$ takes the one at this share of the way from the furthest to the
    /// nearest. 1 is the paper's maximum.
    pub delta_quantile: f64,
    /// The features that $\delta$ is made from.
    pub delta_features: DeltaFeatures,
    /// Weight of the [anchor of class means](crate::anchor); 0 in the paper.
    pub anchor: f64,
    /// Share of the old value when the anchor's running class mean meets a new batch.
    pub anchor_momentum: f64,
    /// Weight of [exclusion](crate::exclusion), which acts on logits; 0 in the paper.
    pub exclusion: f64,
    /// Share $\rho$ of the host's gradient that the gradient of all terms on features is scaled to; 0: as the weights make it (the paper).
    pub balance: f64,
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
            delta_pairs: PairSource::Tree,
            seed: 0,
            similarity: Similarity::Cosine,
            local_shape: LocalShape::Square,
            local_divisor: LocalDivisor::Pairs,
            confidence: Confidence::Prediction,
            self_anchor: true,
            delta_gradient: false,
            delta_quantile: 1.0,
            delta_features: DeltaFeatures::Batch,
            anchor: 0.0,
            anchor_momentum: 0.9,
            exclusion: 0.0,
            balance: 0.0,
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
    with_delta_pairs delta_pairs: PairSource;
    with_seed seed: u64;
    with_similarity similarity: Similarity;
    with_local_shape local_shape: LocalShape;
    with_local_divisor local_divisor: LocalDivisor;
    with_confidence confidence: Confidence;
    with_self_anchor self_anchor: bool;
    with_delta_gradient delta_gradient: bool;
    with_delta_quantile delta_quantile: f64;
    with_delta_features delta_features: DeltaFeatures;
    with_anchor anchor: f64;
    with_anchor_momentum anchor_momentum: f64;
    with_exclusion exclusion: f64;
    with_balance balance: f64;
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
        let weights = [
            ("lambda", self.lambda),
            ("mu", self.mu),
            ("global", self.global),
            ("local", self.local),
            ("anchor", self.anchor),
            ("exclusion", self.exclusion),
            ("balance", self.balance),
        ];
        for (name, value) in weights {
            if !(value.is_finite() && value >= 0.0) {
                let requirement = "a weight must be a finite number, 0 or more";
                return Err(Error::Setting { name, value: value.to_string(), requirement });
            }
        }
        self.thresholds()?;
        let momenta = [("centre_momentum", self.centre_momentum), ("anchor_momentum", self.anchor_momentum)];
        for (name, value) in momenta {
            if !(0.0..1.0).contains(&value) {
                let requirement = "a share of the old value, from 0 up to but not including 1";
                return Err(Error::Setting { name, value: value.to_string(), requirement });
            }
        }
        if !(self.delta_quantile > 0.0 && self.delta_quantile <= 1.0) {
            let (value, requirement) = (self.delta_quantile.to_string(), "a share above 0, up to 1");
            return Err(Error::Setting { name: "delta_quantile", value, requirement });
        }
        if self.delta_features == DeltaFeatures::Epoch && self.delta_gradient {
            let requirement =
                "no gradient flows through features of the epoch's start; set delta_gradient = false";
            return Err(Error::Setting { name: "delta_features", value: "epoch".into(), requirement });
        }
        Ok(self)
    }

    /// Whether the loss is a formula that the paper prints (summed, or as means).
    pub(crate) fn is_printed(&self) -> bool {
        let Self { rectify, centre, delta_gradient, similarity, local_shape, local_divisor, .. } = self;
        let Self { delta_quantile, delta_features, anchor, exclusion, balance, .. } = self;
        !(*rectify || *delta_gradient)
            && *centre == Centre::None
            && (*similarity, *local_shape) == Default::default()
            && (*local_divisor, *delta_features) == Default::default()
            && *delta_quantile == 1.0
            && [anchor, exclusion, balance].iter().all(|weight| **weight == 0.0)
            && (self.pairs == self.delta_pairs || !self.dcsa)
    }

    /// $s = a g + b$ from the cosine $g$, as $(a, b)$.
    pub(crate) fn similarity_of_cosine(&self) -> (f64, f64) {
        match self.similarity {
            Similarity::Cosine => (1.0, 0.0),
            Similarity::Half => (0.5, 0.5),
        }
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
            (base().with_anchor_momentum(-0.1), "anchor_momentum"),
            (base().with_anchor(-1.0), "anchor"),
            (base().with_exclusion(f64::NAN), "exclusion"),
            (base().with_balance(-0.3), "balance"),
            (base().with_delta_quantile(0.0), "delta_quantile"),
            (base().with_delta_features(DeltaFeatures::Epoch).with_delta_gradient(true), "delta_features"),
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
            delta_pairs: PairSource::Random,
            seed: 6,
            similarity: Similarity::Half,
            local_shape: LocalShape::OneSided,
            local_divisor: LocalDivisor::Entries,
            confidence: Confidence::Clean,
            self_anchor: false,
            delta_gradient: true,
            delta_quantile: 0.75,
            delta_features: DeltaFeatures::Epoch,
            anchor: 8.0,
            anchor_momentum: 0.25,
            exclusion: 9.0,
            balance: 0.3,
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
            .with_delta_pairs(PairSource::Random)
            .with_seed(6)
            .with_similarity(Similarity::Half)
            .with_local_shape(LocalShape::OneSided)
            .with_local_divisor(LocalDivisor::Entries)
            .with_confidence(Confidence::Clean)
            .with_self_anchor(false)
            .with_delta_gradient(true)
            .with_delta_quantile(0.75)
            .with_delta_features(DeltaFeatures::Epoch)
            .with_anchor(8.0)
            .with_anchor_momentum(0.25)
            .with_exclusion(9.0)
            .with_balance(0.3)
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
