//! An audit whose findings stay in memory: all that `negscale audit` writes to files, for programs.

use super::account::Account;
use super::evidence::Numbers;
use super::{figures, page, rows, words};
use crate::recipe::Recipe;
use crate::{Result, RunOptions, Stop, Watch};
use negscale_audit::{Audit, NoiseEstimate};
use negscale_data::Splits;
use negscale_report::AuditReport;
use serde_json::Value;
use std::path::Path;

/// What an audit has found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Found {
    /// Every label, most suspicious first.
    pub audit: Audit,
    /// How many are wrong; nothing if no prediction was recorded.
    pub estimate: Option<NoiseEstimate>,
    /// The numbers behind every finding, in the order of findings.
    pub evidence: Vec<Numbers>,
    /// Why labels are flagged, most telling first, in the order of findings; empty for the others.
    pub reasons: Vec<Vec<String>>,
    /// Where samples are from, or their ids, if all have one.
    pub origins: Option<Vec<String>>,
    /// What `audit.json` holds.
    pub results: Value,
    /// A summary for people.
    pub words: String,
    /// The page, `report.html`.
    pub page: AuditReport,
}

impl Found {
    fn of(account: &Account) -> Result<Self> {
        let findings = account.audit.findings();
        let reasons = findings.iter().map(|f| if f.flag { account.reasons(f) } else { Vec::new() });
        Ok(Self {
            audit: account.audit.clone(),
            estimate: account.estimate.cloned(),
            evidence: findings.iter().map(|f| account.evidence.numbers(f, account.estimate)).collect(),
            reasons: reasons.collect(),
            origins: (0..findings.len()).map(|at| account.material.train.items().origin(at)).collect(),
            results: figures::object(account, None)?,
            words: words::describe(account),
            page: page::report(account)?,
        })
    }

    /// The page as one HTML text that needs no network.
    pub fn html(&self) -> Result<String> {
        Ok(self.page.to_html()?)
    }
}

/// Audits rows of numbers without training, or any items by predictions that were made before (`given`: a row of class probabilities for each item),
/// and gives what was found. With `out` everything is written to that folder as well, as [`audit`](super::audit) does.
///
/// ```no_run
/// use negscale_data::{Dataset, Splits};
/// use negscale_run::audit::{defaults_in_memory, find};
/// # fn load() -> (Vec<f32>, Vec<u32>) { (Vec::new(), Vec::new()) }
/// let (embeddings, labels) = load();
/// let classes = ["cat", "dog", "horse"].map(str::to_owned).to_vec();
/// let data = Dataset::from_features("pets", classes, embeddings, 512, labels)?;
/// let recipe = defaults_in_memory()?.with_sets(["seed=1"])?.resolve_for(&data)?;
/// let found = find(&recipe, Splits::new(data, None), None, None, &mut (), &Default::default())?;
/// println!("{}", found.words);
/// # Ok::<(), negscale_run::Error>(())
/// ```
///
/// # Errors
/// As for [`audit`](super::audit), or if predictions do not fit.
pub fn find(
    recipe: &Recipe,
    splits: Splits,
    given: Option<&[f32]>,
    out: Option<(&Path, RunOptions)>,
    watch: &mut dyn Watch,
    stop: &Stop,
) -> Result<Found> {
    rows::find(recipe, splits, given, out, watch, stop, Found::of)
}
