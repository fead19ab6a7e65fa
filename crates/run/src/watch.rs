//! Callbacks during a run, for a screen, a log, or nobody.

use crate::folder::RunFolder;
use crate::recipe::Recipe;
use crate::{Material, Result};
use negscale::PairCoverage;
use negscale_methods::trainer::{Progress, Trainer};
use negscale_records::EpochRecord;

/// Callbacks during a run. Every method does nothing unless overridden; `()` watches nothing.
#[allow(unused_variables)]
pub trait Watch: Send {
    /// What is about to be done, and where; `coverage` says which class pairs the plug-in acts on, if that is known.
    fn open(
        &mut self,
        recipe: &Recipe,
        coverage: Option<&PairCoverage>,
        material: &Material,
        folder: &RunFolder,
    ) {
    }

    /// The run was finished before.
    fn complete(&mut self, epochs: usize) {}

    /// A problem that was fixed.
    fn note(&mut self, text: &str) {}

    /// Training starts or resumes.
    fn begin(&mut self, trainer: &Trainer, records: &[EpochRecord]) {}

    /// The plug-in knows its pairs of classes. Called once, as soon as there is a class tree.
    fn pairs(&mut self, coverage: &PairCoverage) {}

    /// A batch is done.
    fn batch(&mut self, progress: &Progress) {}

    /// An epoch is done: the last of the records.
    fn epoch(&mut self, records: &[EpochRecord]) -> Result<()> {
        Ok(())
    }

    /// The baseline is trained next.
    fn begin_baseline(&mut self, recipe: &Recipe) {}

    /// How much of an audit without training is done, from 0 to 1.
    fn progress(&mut self, done: f64) {}

    /// How much of the items an encoder has turned into rows, from 0 to 1.
    fn encoding(&mut self, done: f64) {}

    /// Training is over.
    fn clear(&mut self) {}
}

impl Watch for () {}
