//! The probability that each given label is wrong, from a model with hidden true labels.
//!
//! Sample $i$ has a given label $g_i$, drawn from its hidden true label $y$ by a transition matrix $T$. With $q_i$ the probabilities of the
//! true label,
//!
//! $$ P(g_i \mid x_i) = \sum_y q_i(y)\, T_{y g_i}, \qquad r_i(y) = \frac{q_i(y)\, T_{y g_i}}{\sum_c q_i(c)\, T_{c g_i}}. $$
//!
//! **$T$ from anchors.** Predictions alone cannot tell noise from overlap: a model that predicts given labels well explains them with
//! $T = I$. What can tell is the surest samples of each class. Those that look most like class $c$ are of class $c$, so their given labels are
//! draws from row $c$ of $T$: clean labels of overlapping classes agree there, noisy ones do not. Row $c$ is the share of given labels among the
//! fifth of class $c$ with the largest $p_i(c)$, plus 10 labels that are right and wrong as they are on average over all classes. Which classes
//! wrong ones name is smoothed by a Dirichlet prior around all classes alike, whose strength is the one that makes the anchors' wrong labels likeliest.
//!
//! **What predictions are.** A model trained on the given labels predicts $p_i(g) = \sum_y q_i(y) T_{y g}$, and $q_i$ is what explains it:
//! expectation and maximisation on $\sum_g p_i(g) \log \sum_y q(y) T_{yg}$. A model trained to resist noise predicts $q_i$ itself.
//! Which it is decides the likelihood of the given labels ([`NoiseModel::fit`]), or the caller who knows.
//!
//! **Two matrices.** $1 - r_i(g_i)$ by the anchors' $T$ is the probability that the label is wrong, used for counting and correcting. The **score**
//! that orders labels uses another one: $T$ refined on all samples ([`REFINEMENTS`] rounds of expectation and maximisation), then $(1 - \epsilon) T + \epsilon / C$ with
//! $\epsilon$ = [`FLOOR`]. Confusions that anchors do not show happen too, on samples that are hard for people. By the anchors' matrix alone, average
//! precision under noise that follows the difficulty of samples is lower by up to 0.1; counting by the refined one takes clean overlap for
//! noise (development sets).

mod scorer;
mod transition;

pub use scorer::Alternative;
pub(crate) use scorer::Scorer;
pub use transition::Transition;

use crate::predictions::{Entry, Predictions};
use rayon::prelude::*;
use transition::Work;

/// Share of the score's matrix that is the same for all confusions.
const FLOOR: f32 = 0.05;
/// Rounds of expectation and maximisation that separate $q$ from $T$.
const ROUNDS: usize = 30;
/// Rounds that refine $T$ on all samples.
const REFINEMENTS: usize = 10;
/// Exponents tried where it is not known what predictions are.
const EXPONENTS: [f32; 10] = [0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8];

/// The fitted model.
#[derive(Debug, Clone)]
pub struct NoiseModel {
    /// $q$: probabilities of true classes.
    beliefs: Predictions,
    transition: Transition,
    meaning: Meaning,
    exponent: f32,
    /// Why predictions say nothing about labels, if somebody knows.
    doubt: Option<String>,
}

/// What predictions are probabilities of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Given labels, wrong ones among them: those of a model that was trained on them.
    GivenLabels,
    /// True labels: those of a model that resisted noise.
    TrueLabels,
}

impl NoiseModel {
    /// Fits to predictions whose meaning is known.
    #[must_use]
    pub fn with_meaning(predictions: &Predictions, meaning: Meaning) -> Self {
        let classes = predictions.classes();
        if predictions.is_empty() || classes < 2 {
            let transition = Transition::new(classes, vec![1.0; classes * classes]);
            return Self { beliefs: predictions.clone(), transition, meaning, exponent: 1.0, doubt: None };
        }
        let sizes = given_sizes(predictions);
        let first = Transition::by_anchors(predictions, &sizes);
        let beliefs = believe(predictions, &first, meaning);
        // Again, with as many anchors as the class has true samples: a rare class may have more wrong labels than right ones.
        let mut found = vec![0.0f64; classes];
        for sample in 0..beliefs.len() {
            beliefs.row(sample).iter().for_each(|e| found[e.class as usize] += f64::from(e.probability));
        }
        let sizes: Vec<f64> = found.iter().zip(&sizes).map(|(found, given)| found.min(*given)).collect();
        let transition = Transition::by_anchors(&beliefs, &sizes);
        let beliefs = believe(predictions, &transition, meaning);
        Self { beliefs, transition, meaning, exponent: 1.0, doubt: None }
    }

    /// Fits to predictions of true labels, raised to the exponent that makes the given labels likeliest.
    #[must_use]
    pub fn resistant(predictions: &Predictions) -> Self {
        let (exponent, _) = calibrated(predictions, |tempered| {
            Self::with_meaning(tempered, Meaning::TrueLabels).likelihood()
        });
        Self { exponent, ..Self::with_meaning(&predictions.tempered(exponent), Meaning::TrueLabels) }
    }

    /// Fits to predictions of unknown meaning and calibration: those that make the given labels likeliest.
    #[must_use]
    pub fn fit(predictions: &Predictions) -> Self {
        let plain = calibrated(predictions, |tempered| {
            mean_log(tempered.len(), |i| tempered.probability(i, tempered.given()[i]).into())
        });
        let resistant = calibrated(predictions, |tempered| {
            Self::with_meaning(tempered, Meaning::TrueLabels).likelihood()
        });
        let (meaning, (exponent, _)) = if resistant.1 > plain.1 {
            (Meaning::TrueLabels, resistant)
        } else {
            (Meaning::GivenLabels, plain)
        };
        let tempered = predictions.tempered(exponent);
        Self { exponent, ..Self::with_meaning(&tempered, meaning) }
    }

    /// With a reason why predictions say nothing about labels, if there is one.
    pub(crate) fn with_doubt(self, doubt: Option<String>) -> Self {
        Self { doubt, ..self }
    }

    pub(crate) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// The mean logarithm of the probabilities of the given labels.
    fn likelihood(&self) -> f64 {
        mean_log(self.beliefs.len(), |sample| self.probability_of_given(sample))
    }

    /// The probability of a sample's given label, its true one being unknown.
    fn probability_of_given(&self, sample: usize) -> f64 {
        let transition = self.transition.to_given(self.beliefs.given()[sample]);
        let row = self.beliefs.row(sample);
        row.iter().map(|e| f64::from(e.probability) * f64::from(transition[e.class as usize])).sum()
    }

    /// The probabilities of true classes, before the given label is looked at.
    #[must_use]
    pub fn beliefs(&self) -> &Predictions {
        &self.beliefs
    }

    /// $T$.
    #[must_use]
    pub fn transition(&self) -> &Transition {
        &self.transition
    }

    /// What predictions were taken for.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// The exponent that predictions were raised to.
    #[must_use]
    pub fn exponent(&self) -> f32 {
        self.exponent
    }

    /// What is believed of each sample's true label, its given one included: $r$ with $q_i(y)$ raised to `sharpness`, so 1 for $r$ itself.
    /// Classes below a thousandth are left out.
    #[must_use]
    pub fn posteriors(&self, sharpness: f32) -> Vec<Vec<(u32, f32)>> {
        let posterior = |sample| {
            let transition = self.transition.to_given(self.beliefs.given()[sample]);
            let row = self.beliefs.row(sample);
            let part = |e: &Entry| e.probability.powf(sharpness) * transition[e.class as usize];
            let sum: f32 = row.iter().map(part).sum();
            let mut kept: Vec<(u32, f32)> = row.iter().map(|e| (e.class, part(e) / sum)).collect();
            kept.retain(|&(_, r)| r > 1e-3);
            let sum: f32 = kept.iter().map(|(_, r)| r).sum();
            kept.iter_mut().for_each(|(_, r)| *r /= sum);
            kept
        };
        (0..self.beliefs.len()).into_par_iter().with_min_len(256).map(posterior).collect()
    }

    /// The matrix that orders labels.
    fn ranking(&self) -> Transition {
        let start = self.transition.clone();
        (0..REFINEMENTS).fold(start, |transition, _| transition.refined(&self.beliefs)).with_floor()
    }

    /// What each label could be instead, and how suspicious it is.
    #[must_use]
    pub fn alternatives(&self) -> Vec<Alternative> {
        let scorer = Scorer { exponent: 1.0, meaning: Meaning::TrueLabels, ..self.scorer() };
        scorer.judge(&self.beliefs)
    }

    /// What judges further predictions of the same models.
    pub(crate) fn scorer(&self) -> Scorer {
        let transition = self.transition.clone();
        Scorer { exponent: self.exponent, meaning: self.meaning, transition, ranking: self.ranking() }
    }
}

fn given_sizes(predictions: &Predictions) -> Vec<f64> {
    let mut sizes = vec![0.0; predictions.classes()];
    predictions.given().iter().for_each(|&given| sizes[given as usize] += 1.0);
    sizes
}

fn believe(predictions: &Predictions, transition: &Transition, meaning: Meaning) -> Predictions {
    match meaning {
        Meaning::TrueLabels => predictions.clone(),
        Meaning::GivenLabels => {
            predictions.changed(|_, entries| transition.explain(entries, &mut Work::default()))
        }
    }
}

/// The exponent of largest likelihood, and that likelihood, which has one peak.
fn calibrated(predictions: &Predictions, likelihood: impl Fn(&Predictions) -> f64) -> (f32, f64) {
    let mut best = (1.0, f64::NEG_INFINITY);
    for exponent in EXPONENTS {
        let found = likelihood(&predictions.tempered(exponent));
        if found > best.1 {
            best = (exponent, found);
        }
    }
    best
}

/// The mean of logarithms, added within pieces that do not depend on the number of threads.
fn mean_log(samples: usize, value: impl Fn(usize) -> f64 + Sync) -> f64 {
    const PIECE: usize = 4096;
    let piece = |piece: usize| {
        let piece = piece * PIECE..((piece + 1) * PIECE).min(samples);
        piece.map(|sample| value(sample).max(1e-12).ln()).sum::<f64>()
    };
    let sums: Vec<f64> = (0..samples.div_ceil(PIECE)).into_par_iter().map(piece).collect();
    sums.iter().sum::<f64>() / samples.max(1) as f64
}
