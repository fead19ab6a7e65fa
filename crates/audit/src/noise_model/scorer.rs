//! What judges predictions once the noise is known.

use super::transition::Transition;
use super::{Meaning, believe};
use crate::predictions::{Entry, Predictions};
use rayon::prelude::*;

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
