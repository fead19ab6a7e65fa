//! An audit of embeddings in memory: no files are read or written.

use crate::summary::rank;
use crate::{Material, Result, Stop, Trained};
use anyhow::Context;
use negscale_audit::Ranking;
use negscale_data::{Dataset, Splits};
use negscale_methods::trainer::{Outcome, Trainer};
use negscale_nets::model::Preparation;

/// Ranks the labels of embeddings: trains a small robust classifier on them (the settings of `negscale audit`), and gives every label,
/// most suspicious first, with an estimate of how many are wrong.
///
/// `embeddings` holds rows of `dim` numbers, `labels` a class number for each row, `classes` the names of the classes. Other settings
/// can be given as `KEY=VALUE`, such as `seed=2`. `stop` ends it early, with an error.
///
/// ```no_run
/// # fn load() -> (Vec<f32>, Vec<u32>) { (Vec::new(), Vec::new()) }
/// let (embeddings, labels) = load();
/// let classes = ["cat", "dog", "horse"].map(str::to_owned);
/// let found = negscale_run::audit::audit_embeddings(embeddings, 512, labels, &classes, &[], &Default::default())?;
/// for finding in found.audit.findings().iter().take(20) {
///     println!("row {}: {} looks wrong", finding.index, classes[finding.verdict.given as usize]);
/// }
/// # Ok::<(), negscale_run::Error>(())
/// ```
pub fn audit_embeddings(
    embeddings: Vec<f32>,
    dim: usize,
    labels: Vec<u32>,
    classes: &[String],
    settings: &[&str],
    stop: &Stop,
) -> Result<Ranking> {
    let data = Dataset::from_features("embeddings", classes.to_vec(), embeddings, dim, labels)?;
    let layers = super::defaults(Some(data.items()))?.over_in_memory()?;
    let recipe = layers.with_sets(settings.iter().map(|set| (*set).to_owned()))?.resolve_for(&data)?;
    let preparation = Preparation::measure(&data, None)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(recipe.train.threads).build();
    pool.context("cannot start threads")?.install(|| {
        let material = Material::prepare(&recipe, Splits::new(data, None), preparation)?;
        let mut trainer = Trainer::new(material.task(&recipe)?, recipe.train.clone())?;
        trainer.set_stop_flag(stop.flag());
        let mut records = Vec::new();
        while !trainer.is_finished() {
            match trainer.epoch(|_| ())? {
                Outcome::Finished(record) => records.push(*record),
                Outcome::Stopped => stop.check()?,
            }
        }
        let (audit, estimate) = rank(&recipe, &material, &Trained { trainer, records })?;
        let estimate = estimate.context("no prediction was recorded: train for at least one epoch")?;
        Ok(Ranking::new(audit, estimate))
    })
}
