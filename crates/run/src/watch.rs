//! Who watches a run: a screen, a log, or nobody.

use crate::folder::RunFolder;
use crate::recipe::Recipe;
use crate::{Material, Result};
use negscale::PairCoverage;
use negscale_methods::trainer::{Progress, Trainer};
use negscale_records::EpochRecord;

/// What a run tells while it goes on. Every call does nothing unless it is overridden; `()` watches nothing.
#[allow(unused_variables)]
pub trait Watch: Send {
    /// What is about to be done, and where; `coverage` is what the plug-in finds to do, if that is known.
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

    /// Something that went wrong and was mended.
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

    /// Training is over.
    fn clear(&mut self) {}
}

impl Watch for () {}
