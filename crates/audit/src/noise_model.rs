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
//! fifth of class $c$ with the largest $p_i(c)$, plus [`PRIOR`] labels as they are on average over all classes.
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

use crate::predictions::{Entry, Predictions};
use rayon::prelude::*;

/// Labels that are added to each row of anchors, as they are on average.
const PRIOR: f64 = 10.0;
/// Share of the score's matrix that is the same for all confusions.
const FLOOR: f32 = 0.05;
/// Share of a class that its anchors are.
const ANCHORS: f64 = 0.2;
/// Least anchors of a class that has so many.
const LEAST_ANCHORS: usize = 5;
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

/// A matrix $T$, and the same by given class.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    classes: usize,
    /// C x C, a row for every true class.
    by_true: Vec<f32>,
    /// C x C, a row for every given class.
    by_given: Vec<f32>,
}

/// What a sample's label could be instead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    /// The likeliest class other than the given one.
    pub class: u32,
    /// Its probability.
    pub probability: f64,
    /// The probability of the given class.
    pub given: f64,
    /// How suspicious the label is, from 0 to 1.
    pub score: f64,
}

impl Transition {
    /// From its rows: C x C, a row for every true class.
    pub(crate) fn new(classes: usize, by_true: Vec<f32>) -> Self {
        let mut by_given = vec![0.0; classes * classes];
        for (at, &t) in by_true.iter().enumerate() {
            by_given[at % classes * classes + at / classes] = t;
        }
        Self { classes, by_true, by_given }
    }

    /// From the surest samples of each class; `sizes` says how many samples a class has.
    fn by_anchors(predictions: &Predictions, sizes: &[f64]) -> Self {
        let classes = predictions.classes();
        let anchors = anchors(predictions, sizes);
        let counts: Vec<Vec<f64>> = anchors
            .iter()
            .map(|anchors| {
                let mut counts = vec![0.0; classes];
                anchors.iter().for_each(|&i| counts[predictions.given()[i as usize] as usize] += 1.0);
                counts
            })
            .collect();
        let all: f64 = counts.iter().flatten().sum();
        let right: f64 = counts.iter().enumerate().map(|(class, counts)| counts[class]).sum();
        // One more wrong label than was seen, so that nothing is impossible.
        let wrong = (all - right + 1.0) / (all + 2.0);
        let spread = wrong / (classes.max(2) - 1) as f64;
        let mut by_true = Vec::with_capacity(classes * classes);
        for (class, counts) in counts.iter().enumerate() {
            let total: f64 = counts.iter().sum::<f64>() + PRIOR;
            by_true.extend(counts.iter().enumerate().map(|(given, count)| {
                let usual = if given == class { 1.0 - wrong } else { spread };
                ((count + PRIOR * usual) / total) as f32
            }));
        }
        Self::new(classes, by_true)
    }

    /// One round of expectation and maximisation: the matrix that makes the given labels of all samples likelier.
    fn refined(&self, beliefs: &Predictions) -> Self {
        const PIECE: usize = 8192;
        let classes = self.classes;
        let piece = |piece: usize| {
            let mut joint = vec![0.0f64; classes * classes];
            for sample in piece * PIECE..((piece + 1) * PIECE).min(beliefs.len()) {
                let given = beliefs.given()[sample];
                let (transition, row) = (self.to_given(given), beliefs.row(sample));
                let part = |e: &Entry| e.probability * transition[e.class as usize];
                let share = 1.0 / row.iter().map(part).sum::<f32>();
                row.iter().for_each(|e| {
                    joint[e.class as usize * classes + given as usize] += f64::from(share * part(e));
                });
            }
            joint
        };
        let pieces: Vec<Vec<f64>> = (0..beliefs.len().div_ceil(PIECE)).into_par_iter().map(piece).collect();
        let joint = pieces.into_iter().fold(vec![0.0; classes * classes], |mut total, piece| {
            total.iter_mut().zip(piece).for_each(|(total, x)| *total += x);
            total
        });
        let spread = 1.0 / (classes.max(2) - 1) as f64;
        let by_true = joint.chunks_exact(classes.max(1)).enumerate().flat_map(|(class, row)| {
            let total = row.iter().sum::<f64>() + 2.0;
            row.iter()
                .enumerate()
                .map(move |(given, x)| ((x + if given == class { 1.0 } else { spread }) / total) as f32)
        });
        Self::new(classes, by_true.collect())
    }

    /// With a share of it the same for all confusions.
    fn with_floor(&self) -> Self {
        let even = FLOOR / self.classes as f32;
        Self::new(self.classes, self.by_true.iter().map(|t| (1.0 - FLOOR) * t + even).collect())
    }

    /// C x C, a row for every true class: probabilities of given ones.
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        &self.by_true
    }

    fn to_given(&self, given: u32) -> &[f32] {
        &self.by_given[given as usize * self.classes..][..self.classes]
    }

    /// $q$ from $p$: what explains a prediction of given labels.
    fn explain(&self, entries: &mut [Entry], work: &mut Work) {
        let width = entries.len();
        let Work { part, target, belief, predicted } = work;
        part.clear();
        for from in entries.iter() {
            let row = &self.by_true[from.class as usize * self.classes..][..self.classes];
            part.extend(entries.iter().map(|to| row[to.class as usize]));
        }
        target.clear();
        target.extend(entries.iter().map(|entry| entry.probability));
        belief.clear();
        belief.extend_from_slice(target);
        normalise(belief);
        predicted.resize(width, 0.0);
        // What is not kept, as one more class.
        let rest = (1.0 - target.iter().sum::<f32>()).max(0.0);
        for _ in 0..ROUNDS {
            predicted.fill(1e-30);
            for (&q, row) in belief.iter().zip(part.chunks_exact(width)) {
                predicted.iter_mut().zip(row).for_each(|(sum, t)| *sum += q * t);
            }
            let left = (1.0 - predicted.iter().sum::<f32>()).max(1e-6);
            predicted.iter_mut().zip(target.iter()).for_each(|(m, p)| *m = p / *m);
            for (q, row) in belief.iter_mut().zip(part.chunks_exact(width)) {
                let (mut inside, mut known) = (0.0f32, 0.0f32);
                for (ratio, t) in predicted.iter().zip(row) {
                    inside += ratio * t;
                    known += t;
                }
                *q *= inside + (1.0 - known).max(0.0) * rest / left;
            }
            normalise(belief);
        }
        entries.iter_mut().zip(belief.iter()).for_each(|(entry, &q)| entry.probability = q);
    }
}

/// Work space of a thread.
#[derive(Default)]
struct Work {
    part: Vec<f32>,
    target: Vec<f32>,
    belief: Vec<f32>,
    predicted: Vec<f32>,
}

fn normalise(row: &mut [f32]) {
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

/// By class, the samples that look most like it.
fn anchors(predictions: &Predictions, sizes: &[f64]) -> Vec<Vec<u32>> {
    let mut likely: Vec<Vec<(f32, u32)>> = vec![Vec::new(); predictions.classes()];
    for sample in 0..predictions.len() {
        for entry in predictions.row(sample) {
            likely[entry.class as usize].push((entry.probability, sample as u32));
        }
    }
    let largest = |(mut likely, &size): (Vec<(f32, u32)>, &f64)| {
        let wanted = ((ANCHORS * size) as usize).max(LEAST_ANCHORS.min(size.round() as usize));
        let wanted = wanted.min(likely.len());
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if wanted > 0 && wanted < likely.len() {
            likely.select_nth_unstable_by(wanted - 1, order);
        }
        likely.truncate(wanted);
        likely.into_iter().map(|(_, sample)| sample).collect()
    };
    likely.into_par_iter().zip(sizes).map(largest).collect()
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

/// What judges predictions once the noise is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scorer {
    pub exponent: f32,
    pub meaning: Meaning,
    pub transition: Transition,
    pub ranking: Transition,
}

impl Scorer {
    pub fn classes(&self) -> usize {
        self.transition.classes
    }

    pub fn judge(&self, predictions: &Predictions) -> Vec<Alternative> {
        let tempered = (self.exponent != 1.0).then(|| predictions.tempered(self.exponent));
        let tempered = tempered.as_ref().unwrap_or(predictions);
        let explained = (self.meaning == Meaning::GivenLabels)
            .then(|| believe(tempered, &self.transition, Meaning::GivenLabels));
        let beliefs = explained.as_ref().unwrap_or(tempered);
        let one = |sample| {
            alternative(beliefs.row(sample), beliefs.given()[sample], &self.transition, &self.ranking)
        };
        (0..beliefs.len()).into_par_iter().with_min_len(256).map(one).collect()
    }
}

fn alternative(row: &[Entry], given: u32, transition: &Transition, floored: &Transition) -> Alternative {
    let (exact, soft) = (transition.to_given(given), floored.to_given(given));
    let (mut sum, mut own, mut suspicion, mut trust) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let mut best = (given, -1.0f64);
    for entry in row {
        let (class, q) = (entry.class as usize, f64::from(entry.probability));
        let part = q * f64::from(exact[class]);
        sum += part;
        // Apart, not by subtraction: of two labels that are surely wrong, one is more so.
        if entry.class == given {
            own = part;
            trust += q * f64::from(soft[class]);
        } else {
            suspicion += q * f64::from(soft[class]);
            if part > best.1 {
                best = (entry.class, part);
            }
        }
    }
    Alternative {
        class: best.0,
        probability: (best.1.max(0.0) / sum).clamp(0.0, 1.0),
        given: (own / sum).clamp(0.0, 1.0),
        score: (suspicion / (suspicion + trust)).clamp(0.0, 1.0),
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
