//! A run in memory: from data to a trained model and a verdict on every label, without a folder.
//!
//! ```
//! use negscale_data::{Dataset, Splits};
//! use negscale_run::recipe::Layers;
//! use negscale_run::{Stop, fit};
//!
//! // Two clouds; every tenth label is wrong.
//! let rows: Vec<f32> = (0..400).map(|i| (i / 2 % 2) as f32 * 4.0 + (i * 37 % 101) as f32 / 101.0).collect();
//! let labels = (0..200).map(|i| if i % 10 == 0 { 1 - i % 2 } else { i % 2 }).collect();
//! let data = Dataset::from_features("clouds", vec!["a".into(), "b".into()], rows, 2, labels)?;
//! let settings = ["plugin=none", "epochs=8", "batch=32", "validation=0", "hidden=[16]"];
//! let recipe = Layers::in_memory()?.with_sets(settings)?.resolve_for(&data)?;
//! let fitted = fit(&recipe, Splits::new(data.clone(), None), None, &mut (), &Stop::default())?;
//! assert_eq!((fitted.records.len(), fitted.ranked.findings().len()), (8, 200));
//! assert!(fitted.model.evaluate(&data, 1)?.top_1() > 0.8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::recipe::Recipe;
use crate::summary::rank;
use crate::training::Trained;
use crate::{Material, Result, Stop, Watch, products};
use anyhow::Context;
use negscale::Taxonomy;
use negscale_audit::{Audit, NoiseEstimate};
use negscale_data::Splits;
use negscale_methods::trainer::{EpochEnd, Trainer, Tree};
use negscale_nets::model::{Model, Preparation};
use negscale_records::EpochRecord;

/// What training leaves.
pub struct Fitted {
    /// The trained model.
    pub model: Model,
    /// A record of every epoch.
    pub records: Vec<EpochRecord>,
    /// All labels, most suspicious first.
    pub ranked: Audit,
    /// How many of them are wrong, if the method's predictions say so.
    pub estimate: Option<NoiseEstimate>,
}

/// Trains with these settings on this data and writes nothing. A `tree` takes the place of the recipe's; a baseline is not trained.
///
/// # Errors
/// Settings or data that do not fit; [`Error::Stopped`](crate::Error::Stopped) after a stop, which leaves nothing.
pub fn fit(
    recipe: &Recipe,
    splits: Splits,
    tree: Option<&Taxonomy>,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Fitted> {
    let preparation = Preparation::measure(&splits.train, recipe.data.side.map(|side| (side, side)))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    pool.context("cannot start threads")?.install(|| {
        let material = Material::prepare(recipe, splits, preparation)?;
        let mut task = material.task(recipe)?;
        if let Some(tree) = tree {
            task.tree = Tree::Given(tree.for_classes(material.train.classes())?);
        }
        let mut trainer = Trainer::new(task, recipe.train.clone())?;
        trainer.set_stop_flag(stop.flag());
        let mut records = Vec::new();
        watch.begin(&trainer, &records);
        while !trainer.is_finished() {
            stop.check()?;
            if let EpochEnd::Finished(record) = trainer.epoch(|progress| watch.batch(&progress))? {
                records.push(*record);
                watch.epoch(&records)?;
            }
        }
        let trained = Trained { trainer, records };
        let (ranked, judged) = rank(recipe, &material, &trained)?;
        let Trained { trainer, records } = trained;
        let model = trainer.model(products::about(recipe, &trainer))?;
        Ok(Fitted { model, records, ranked, estimate: judged.map(|(estimate, _)| estimate) })
    })
}
