//! Several annotators: what they agree on, and how good each of them is.
//!
//! Sample $i$ has labels $l_{ia}$ by some of $A$ annotators; its true class $y$ is hidden. Dawid and Skene (1979) give every annotator a
//! confusion matrix $\Theta^a$ and take labels to be independent given the true class. A model's predictions $p_i$, where there are
//! any, are the prior of each sample, sharpened or flattened by an exponent $\tau$; else all samples share a prior $\pi$:
//!
//! $$ q_i(y) \propto p_i(y)^\tau \quad\text{or}\quad q_i(y) = \pi_y, \qquad
//!    P(l_i) = \sum_y q_i(y) \prod_a \Theta^a_{y l_{ia}}, \qquad
//!    r_i(y) = \frac{q_i(y) \prod_a \Theta^a_{y l_{ia}}}{P(l_i)}. $$
//!
//! The **consensus** is the class of largest posterior $r_i$, its **certainty** that posterior. An annotator's **accuracy** is the
//! mean of $r_i(l_{ia})$ over their labels, and the rate of wrong labels the rest.
//!
//! **Fit.** Expectation and maximisation in two stages, each of which never lowers what it maximises, the likelihood times the
//! prior of its parameters. First one matrix $M$ for all annotators, from soft majority votes on (predictions being one more
//! voice), with a pseudo-count of one on the diagonal and one spread over the rest of each row. Then a matrix for each, from $M$ on,
//! with $s$ pseudo-labels of $M$ in each row:
//!
//! $$ n^a_{yl} = \sum_{i:\, l_{ia} = l} r_i(y), \qquad \Theta^a_{yl} = \frac{n^a_{yl} + s\,M_{yl}}{\sum_k n^a_{yk} + s}, \qquad
//!    \pi_y = \frac{\sum_i r_i(y) + 1}{N + C}. $$
//!
//! Who gave few labels is judged like the others. The strength $s$ is that of [`STRENGTHS`] under which the labels of a quarter of the samples
//! are likeliest after a fit to the rest: large where annotators are alike. Where only one annotator gave labels, the first stage is all there
//! is. The exponent moves by Newton's steps on the likelihood, which are halved where they
//! would lower it.
//!
//! **Standard errors** of rates of wrong labels: $\sqrt{J^2 + \sum_i r_i(l_{ia})(1 - r_i(l_{ia})) / n_a^2}$, where $J$ is the error by a
//! delete-a-group jackknife (20 groups of samples, a few rounds from the fit without each; $M$ stays) and the rest is what posteriors leave open. They do
//! not cover what the model takes for granted: annotators who make the same mistakes on the same hard samples look better than they are, and
//! certainties are then too high. Predictions by a model that has memorised an annotator's labels are not a second voice.
//!
//! **Measured** on the three random columns of CIFAR-10N (50,000 samples, no randomness; example `annotators` of this crate): the consensus is right for
//! 92.0 % of the samples, a majority vote with ties at random for 91.2 %. Mean certainty is 95.4 %, and 15.5, 16.3 and 16.1 % of labels are called
//! wrong where 17.2, 18.1 and 17.6 % are: people err on the same pictures.

mod agreement;
mod labels;
mod model;

pub use labels::Labels;

use crate::estimate::{GROUPS, group_of, jackknife};
use crate::{Error, Result};
use agreement::Against;
use model::{Matrices, Model, Stage};
use serde::Serialize;

/// Pseudo-count of every class in the shared prior.
const PRIOR_COUNT: f64 = 1.0;
/// Rounds for each group that is left out.
const ROUNDS_WITHOUT: usize = 5;

/// Strengths $s$ that are tried, until the next one is no better.
pub const STRENGTHS: [f64; 6] = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0];

/// How the model is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Settings {
    /// Pseudo-labels $s$ of the pooled matrix in each row of an annotator's; fitted where it is `None`.
    pub strength: Option<f64>,
    /// Least and largest exponent $\tau$ of predictions.
    pub exponents: [f64; 2],
    /// The most rounds of each stage.
    pub rounds: usize,
    /// A stage ends where a round gains less than this for each sample.
    pub tolerance: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { strength: None, exponents: [0.1, 5.6], rounds: 300, tolerance: 1e-7 }
    }
}

/// A sample's consensus.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// The likeliest class; where there is no label, by the prior alone.
    pub class: u32,
    /// Its posterior probability.
    pub certainty: f32,
    /// Labels it was given.
    pub labels: u32,
    /// Share of pairs of its labels that agree; `None` for fewer than two.
    pub agreement: Option<f32>,
}

/// What is known of an annotator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Annotator {
    /// Labels given.
    pub labels: usize,
    /// Expected share of right labels; `None` without labels.
    pub accuracy: Option<f64>,
    /// Standard error of the accuracy, and of the rate of wrong labels.
    pub standard_error: Option<f64>,
    /// Labels on samples where somebody else has a say: those that can be compared.
    pub compared: usize,
    /// Share of these that are the consensus of the others (annotators and predictions) on the sample.
    pub agreement: Option<f64>,
    /// What that share would be if the annotator's labels were dealt to the samples at random.
    pub chance: Option<f64>,
    /// Cohen's kappa, (agreement - chance) / (1 - chance): 1 for full agreement, 0 for chance.
    pub kappa: Option<f64>,
}

impl Annotator {
    /// Estimated share of wrong labels.
    #[must_use]
    pub fn wrong_rate(&self) -> Option<f64> {
        self.accuracy.map(|accuracy| 1.0 - accuracy)
    }
}

/// What annotators agree on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Consensus {
    /// Every sample's.
    pub samples: Vec<Sample>,
    /// $r_i(y)$, N x C.
    pub posteriors: Vec<f32>,
    /// Every annotator.
    pub annotators: Vec<Annotator>,
    /// All labels together: share of wrong ones, and its standard error.
    pub wrong_rate: (f64, f64),
    /// Krippendorff's alpha for nominal data: 1 for full agreement, 0 for chance; `None` where no two labels meet or all are of one class.
    pub alpha: Option<f64>,
    /// The exponent of the predictions, where there are any.
    pub exponent: Option<f64>,
    /// Pseudo-labels $s$ of the pooled matrix in each row of an annotator's; `None` where only one annotator gave labels.
    pub strength: Option<f64>,
    /// Share of samples of each class, by posteriors.
    pub shares: Vec<f64>,
    /// Log-likelihood of the labels of all samples.
    pub log_likelihood: f64,
    /// Rounds of both stages.
    pub rounds: usize,
    /// Whether both stages ended before their last round.
    pub converged: bool,
    labels: Labels,
    matrices: Matrices,
}

impl Consensus {
    /// The consensus of labels, and of predictions (N x C) where there are any.
    ///
    /// ```
    /// use negscale_audit::annotators::{Consensus, Labels};
    /// let [cat, dog] = [Some(0), Some(1)];
    /// let labels = Labels::from_rows(&[cat, cat, dog, dog, dog, dog, cat, None, cat], 3, 2)?;
    /// let consensus = Consensus::fit(&labels, None)?;
    /// assert_eq!(consensus.samples.iter().map(|sample| sample.class).collect::<Vec<_>>(), [0, 1, 0]);
    /// # Ok::<(), negscale_audit::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no labels, nothing to compare them with, or predictions that are none.
    pub fn fit(labels: &Labels, predictions: Option<&[f32]>) -> Result<Self> {
        Self::fit_with(labels, predictions, Settings::default())
    }

    /// As [`Self::fit`], with settings.
    ///
    /// # Errors
    /// As [`Self::fit`], and if a setting is out of range.
    pub fn fit_with(labels: &Labels, predictions: Option<&[f32]>, settings: Settings) -> Result<Self> {
        check(labels, predictions, settings)?;
        let mut model = Model::start(labels, predictions, settings);
        let pooled = model.climb(Stage::Pooled);
        let (mut rounds, mut converged) = (pooled.values.len() - 1, pooled.converged);
        let has_labels = |annotator: &usize| labels.given_by(*annotator) > 0;
        let stage = match (0..labels.annotators()).filter(has_labels).nth(1) {
            Some(_) => Stage::Single,
            None => Stage::Pooled,
        };
        if stage == Stage::Single {
            model.divide();
            let single = model.climb(Stage::Single);
            (rounds, converged) = (rounds + single.values.len() - 1, converged && single.converged);
        }
        let jackknifed = errors(&mut model, labels, stage);
        let expected = model.expect(|_| false);
        let samples = agreement::samples(labels, &model.posteriors);
        let against = agreement::against_others(labels, &model);
        let rights = Rights::of(labels, &model.posteriors, |_| true);
        let error = |at: usize| {
            let count = rights.counts[at] as f64;
            (jackknifed[at].powi(2) + rights.variances[at] / (count * count)).sqrt()
        };
        let annotator = |(at, against): (usize, &Against)| {
            let is_there = rights.counts[at] > 0;
            Annotator {
                labels: rights.counts[at],
                accuracy: is_there.then(|| rights.share(at)),
                standard_error: is_there.then(|| error(at)),
                compared: against.compared,
                agreement: against.agreement(),
                chance: against.chance(),
                kappa: against.kappa(),
            }
        };
        let all = labels.annotators();
        let mut shares = vec![0.0; labels.classes()];
        for row in model.posteriors.chunks(labels.classes()) {
            shares
                .iter_mut()
                .zip(row)
                .for_each(|(share, &r)| *share += f64::from(r) / labels.samples() as f64);
        }
        Ok(Self {
            samples,
            annotators: against.iter().enumerate().map(annotator).collect(),
            wrong_rate: (1.0 - rights.share(all), error(all)),
            alpha: agreement::alpha(labels),
            exponent: predictions.map(|_| model.exponent),
            shares,
            log_likelihood: expected.likelihood,
            rounds,
            converged,
            labels: labels.clone(),
            matrices: model.parameters().matrices,
            strength: (stage == Stage::Single).then_some(model.strength),
            posteriors: model.posteriors,
        })
    }

    /// An annotator's confusion matrix $\Theta^a$, C x C: a row for every true class, the probabilities of given ones.
    ///
    /// # Panics
    /// If there is no such annotator.
    #[must_use]
    pub fn confusion(&self, annotator: usize) -> Vec<f64> {
        let (classes, Matrices { by_slot, totals, .. }) = (self.labels.classes(), &self.matrices);
        let mut matrix = self.pooled_confusion();
        let Some(strength) = self.strength else { return matrix };
        for (row, total) in matrix.chunks_mut(classes).zip(&totals[annotator * classes..]) {
            row.iter_mut().for_each(|cell| *cell *= (strength.ln() - total).exp());
        }
        for slot in self.labels.slots_by(annotator) {
            let given = self.labels.owners()[slot].1 as usize;
            for class in 0..classes {
                matrix[class * classes + given] = by_slot[slot * classes + class].exp();
            }
        }
        matrix
    }

    /// The matrix $M$ of all annotators together, C x C: a row for every true class.
    #[must_use]
    pub fn pooled_confusion(&self) -> Vec<f64> {
        let classes = self.labels.classes();
        (0..classes * classes).map(|at| self.matrices.pooled[at % classes * classes + at / classes]).collect()
    }
}

/// Expected numbers of right labels, by annotator, and last of all labels.
struct Rights {
    sums: Vec<f64>,
    variances: Vec<f64>,
    counts: Vec<usize>,
}

impl Rights {
    /// Of the samples that are kept.
    fn of(labels: &Labels, posteriors: &[f32], kept: impl Fn(usize) -> bool) -> Self {
        let (classes, all) = (labels.classes(), labels.annotators());
        let (sums, variances, counts) = (vec![0.0; all + 1], vec![0.0; all + 1], vec![0; all + 1]);
        let mut rights = Self { sums, variances, counts };
        for (slot, &(annotator, class)) in labels.owners().iter().enumerate() {
            for &sample in labels.members(slot).iter().filter(|&&sample| kept(sample as usize)) {
                let right = f64::from(posteriors[sample as usize * classes + class as usize]);
                for at in [annotator as usize, all] {
                    rights.sums[at] += right;
                    rights.variances[at] += right * (1.0 - right);
                    rights.counts[at] += 1;
                }
            }
        }
        rights
    }

    fn share(&self, at: usize) -> f64 {
        (self.sums[at] / self.counts[at].max(1) as f64).clamp(0.0, 1.0)
    }
}

/// Jackknife errors of the shares of right labels, by annotator, and last of all labels. The parameters stay as they were.
fn errors(model: &mut Model, labels: &Labels, stage: Stage) -> Vec<f64> {
    let fitted = model.parameters();
    let all = labels.annotators() + 1;
    let mut shares: Vec<Vec<f64>> = vec![Vec::with_capacity(GROUPS); all];
    for group in 0..GROUPS {
        for _ in 0..ROUNDS_WITHOUT {
            let expected = model.expect(|sample| group_of(sample) == group);
            model.maximise(stage, expected.mass());
        }
        model.expect(|sample| group_of(sample) == group);
        let rights = Rights::of(labels, &model.posteriors, |sample| group_of(sample) != group);
        // Whoever has no label left says nothing about the spread.
        let kept = (0..all).filter(|&at| rights.counts[at] > 0);
        kept.for_each(|at| shares[at].push(rights.share(at)));
        model.set(fitted.clone());
    }
    shares.iter().map(|shares| jackknife(shares.iter().copied())).collect()
}

fn check(labels: &Labels, predictions: Option<&[f32]>, settings: Settings) -> Result<()> {
    let wrong = |problem: &str| Err(Error::Samples { what: "labels", problem: problem.into() });
    let Settings { strength, exponents: [low, high], rounds, tolerance } = settings;
    let out = |setting, value: String, wanted| Err(Error::Range { setting, value, wanted });
    if let Some(strength) = strength.filter(|strength| !(*strength > 0.0 && strength.is_finite())) {
        return out("strength", strength.to_string(), "must be above 0");
    }
    if !(low > 0.0 && low <= high && high.is_finite()) {
        return out("exponents", format!("[{low}, {high}]"), "must be above 0, the smaller one first");
    }
    if rounds == 0 || !(tolerance >= 0.0 && tolerance.is_finite()) {
        return out(
            "rounds, tolerance",
            format!("{rounds}, {tolerance}"),
            "need one round, and no less than 0",
        );
    }
    if labels.is_empty() {
        return wrong("there is none: every annotator's column is empty");
    }
    let Some(predictions) = predictions else {
        if (0..labels.samples()).all(|sample| labels.slots_of(sample).len() < 2) {
            return wrong(
                "no sample has two, so that nothing can be compared: add labels by a second annotator for some samples, or give predictions",
            );
        }
        return Ok(());
    };
    crate::predictions::check_rows(predictions, labels.samples(), labels.classes())?;
    crate::rank::check_sums(predictions, labels.classes())
}
