//! Rounds of expectation and maximisation, and the strength of the pooled matrix.

use super::{Expected, Model, Parameters, Stage, pseudo_counts};
use crate::annotators::{PRIOR_COUNT, STRENGTHS};
use crate::estimate::{GROUPS, group_of};

/// How often a step of the exponent is halved before it is given up.
const HALVINGS: u32 = 3;

/// Rounds for each strength that is tried.
const ROUNDS_HELD_OUT: usize = 15;

/// How a climb went.
pub(in crate::annotators) struct Climb {
    /// What is maximised, before the first round and after each.
    pub values: Vec<f64>,
    pub converged: bool,
}

impl Model<'_> {
    /// Chooses the strength, unless it is given, and gives every annotator the pooled matrix to begin with.
    pub fn divide(&mut self) {
        let pooled = self.parameters();
        let mut best = None::<(f64, f64)>;
        let given = self.settings.strength;
        for strength in STRENGTHS.into_iter().filter(|_| given.is_none()) {
            self.begin(pooled.clone(), strength);
            for _ in 0..ROUNDS_HELD_OUT {
                let expected = self.expect(is_held_out);
                self.maximise(Stage::Single, &expected.mass);
            }
            let likelihood = self.expect(|sample| !is_held_out(sample)).likelihood;
            if best.is_some_and(|(_, most)| likelihood <= most) {
                break; // the likelihood has one peak
            }
            best = Some((strength, likelihood));
        }
        let strength = given.or(best.map(|(strength, _)| strength));
        self.begin(pooled, strength.unwrap_or(STRENGTHS[0]));
    }

    /// Gives every annotator the pooled matrix.
    fn begin(&mut self, pooled: Parameters, strength: f64) {
        self.set(pooled);
        self.strength = strength;
        self.matrices.totals.fill(strength.ln());
    }

    /// Logarithm of the prior density of the parameters, up to a constant.
    fn penalty(&self, stage: Stage) -> f64 {
        let (labels, classes, strength) = (self.labels, self.labels.classes(), self.strength);
        let prior = if self.has_predictions() { 0.0 } else { PRIOR_COUNT * self.prior.iter().sum::<f64>() };
        let matrices: f64 = match stage {
            Stage::Pooled => {
                pseudo_counts(classes).iter().zip(&self.matrices.pooled).map(|(n, p)| n * p.ln()).sum()
            }
            // A class that an annotator never named has a cell of s M / (n + s), of which only the divisor changes.
            Stage::Single => (0..labels.annotators())
                .map(|annotator| {
                    let totals = &self.matrices.totals[annotator * classes..(annotator + 1) * classes];
                    let slots = labels.slots_by(annotator);
                    let unused = totals.iter().map(|total| -strength * total).sum::<f64>();
                    let used = slots.map(|slot| {
                        let at = labels.owners()[slot].1 as usize * classes;
                        let row = self.row(slot as u32).iter().zip(&self.matrices.pooled[at..]).zip(totals);
                        row.map(|((log, pooled), total)| strength * pooled * (log + total)).sum::<f64>()
                    });
                    unused + used.sum::<f64>()
                })
                .sum(),
        };
        prior + matrices
    }

    /// How far the exponent should move: a step of Newton's for the likelihood, or for its expectation where the former has no peak.
    fn step(&self, expected: &Expected) -> f64 {
        let [prior, posterior] = expected.variances;
        let [low, high] = self.settings.exponents;
        if self.logs.is_none() || prior <= 0.0 {
            return 0.0;
        }
        let curvature = if prior - posterior > 0.1 * prior { prior - posterior } else { prior };
        let step = (expected.slope / curvature).clamp(-0.5 * self.exponent, 0.5 * self.exponent);
        (self.exponent + step).clamp(low, high) - self.exponent
    }

    /// Rounds until what is maximised grows no more.
    pub fn climb(&mut self, stage: Stage) -> Climb {
        let samples = self.labels.samples().max(1) as f64;
        let mut expected = self.expect(|_| false);
        let mut value = expected.likelihood + self.penalty(stage);
        let mut values = vec![value];
        for _ in 0..self.settings.rounds {
            let (before, mut step) = (self.exponent, self.step(&expected));
            self.maximise(stage, &expected.mass);
            let penalty = self.penalty(stage);
            for halving in 0..=HALVINGS {
                step = if halving == HALVINGS { 0.0 } else { step };
                self.exponent = before + step;
                expected = self.expect(|_| false);
                if step == 0.0 || expected.likelihood + penalty >= value {
                    break;
                }
                step /= 2.0;
            }
            let gain = expected.likelihood + penalty - value;
            value = expected.likelihood + penalty;
            values.push(value);
            if gain < self.settings.tolerance * samples {
                return Climb { values, converged: true };
            }
        }
        Climb { values, converged: false }
    }
}

/// Whether a sample is one of the quarter by which strengths are judged.
fn is_held_out(sample: usize) -> bool {
    group_of(sample) < GROUPS / 4
}
