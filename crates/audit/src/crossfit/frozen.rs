//! Models frozen after the fit: they score rows that the fit did not see.

use super::{CrossFit, FoldModels, Rows, Scaling, pool};
use crate::noise_model::Scorer;
use crate::predictions::check_labels;
use crate::{Alternative, Error, Predictions, Result};

/// What scores rows after the fit: for every fold the models that did not see its rows, how they are pooled, and what is known of the noise.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenAudit {
    pub(super) folds: Vec<FoldModels>,
    pub(super) weights: Vec<f64>,
    pub(super) scaling: Scaling,
    pub(super) scorer: Scorer,
}

impl FrozenAudit {
    /// Freezes what was fitted without neighbours, which need all rows.
    ///
    /// # Errors
    /// If neighbours voted in the fit.
    pub fn new(fit: CrossFit) -> Result<Self> {
        if fit.weights.len() != 2 {
            let problem = "they need all rows at once: fit with `neighbours` = 0".to_owned();
            return Err(Error::Samples { what: "neighbours", problem });
        }
        let scorer = fit.model.scorer();
        Ok(Self { folds: fit.folds, weights: fit.weights, scaling: fit.scaling, scorer })
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.scorer.classes()
    }

    /// Numbers of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.scaling.means.len()
    }

    /// Number of folds.
    #[must_use]
    pub fn folds(&self) -> usize {
        self.folds.len()
    }

    /// Judges rows by the models that did not see this fold.
    ///
    /// # Errors
    /// If sizes do not fit, a number is not finite, or a label is not a class.
    pub fn judge(&self, fold: usize, values: &[f32], given: &[u32]) -> Result<Vec<Alternative>> {
        let scaled = self.scaling.apply(values);
        let rows = Rows::new(&scaled, self.dim())?;
        let (classes, members) = (self.classes(), (0..rows.len() as u32).collect::<Vec<_>>());
        if given.len() != rows.len() {
            let problem = format!("{} for {} rows", given.len(), rows.len());
            return Err(Error::Samples { what: "labels", problem });
        }
        check_labels("labels", given, classes)?;
        let said = self.folds[fold % self.folds.len()].ask(&rows, &members, classes);
        let views: Vec<&[f32]> = said.iter().map(Vec::as_slice).collect();
        let mut predictions = Predictions::empty(given, classes);
        let mut row = vec![0.0; classes];
        for at in 0..given.len() {
            pool::pooled(&views, &self.weights, at * classes..(at + 1) * classes, &mut row);
            predictions.set(at, &row);
        }
        Ok(self.scorer.judge(&predictions))
    }
}
