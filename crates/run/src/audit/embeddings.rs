//! An audit of embeddings in memory: no files are read or written.

use crate::{Error, Result, Stop};
use anyhow::Context;
use negscale_audit::Ranking;
use negscale_audit::crossfit::{CrossFitSettings, Rows, cross_fit};

/// Ranks the labels of embeddings, as `negscale audit` does: models that never see the label they judge, fitted to the other rows. Gives every
/// label, most suspicious first, with an estimate of how many are wrong.
///
/// `embeddings` holds rows of `dim` numbers, `labels` a class number for each row, `classes` the names of the classes. `stop` ends it early,
/// with an error.
///
/// ```no_run
/// # fn load() -> (Vec<f32>, Vec<u32>) { (Vec::new(), Vec::new()) }
/// let (embeddings, labels) = load();
/// let classes = ["cat", "dog", "horse"].map(str::to_owned);
/// let found = negscale_run::audit::audit_embeddings(&embeddings, 512, &labels, &classes, 1, &Default::default())?;
/// for finding in found.audit.findings().iter().take(20) {
///     println!("row {}: {} looks wrong", finding.index, classes[finding.verdict.given as usize]);
/// }
/// # Ok::<(), negscale_run::Error>(())
/// ```
pub fn audit_embeddings(
    embeddings: &[f32],
    dim: usize,
    labels: &[u32],
    classes: &[String],
    seed: u64,
    stop: &Stop,
) -> Result<Ranking> {
    let rows = Rows::new(embeddings, dim)?;
    let settings = CrossFitSettings::new(rows.len(), classes.len(), seed);
    let pool = rayon::ThreadPoolBuilder::new().build().context("cannot start threads")?;
    let fit = pool.install(|| cross_fit(&rows, labels, classes.len(), &settings, &|_| !stop.is_asked()));
    match fit {
        Err(negscale_audit::Error::Stopped) => {
            stop.check()?;
            Err(Error::from(negscale_audit::Error::Stopped))
        }
        fit => Ok(fit?.ranking(classes)?),
    }
}
