//! The results of a run in numbers.

use crate::folder::RunFolder;
use crate::recipe::Recipe;
use crate::{Material, Result, Trained, instructions};
use anyhow::Context;
use negscale::{PairCoverage, Taxonomy};
use negscale_audit::{Audit, FLAG_BELOW, Measures, NoiseEstimate, Predictions};
use negscale_data::{Dataset, Reviewed};
use negscale_methods::trainer::Estimated;
use negscale_nets::precision_name;
use negscale_records::EpochRecord;
use negscale_report::plot::RecallCurve;
use negscale_report::{TestAccuracy, mark_true_labels};
use negscale_similarity::label_noise::ErrorShare;
use negscale_similarity::{LabelNoise, Labels, RELATIONS};

/// The results of a run in numbers.
pub struct Summary {
    /// Host and plug-in.
    pub name: String,
    /// The plug-in, and what of it acts.
    pub plugin: String,
    /// Instructions that made the numbers.
    pub instructions: Option<String>,
    /// How products were taken.
    pub precision: &'static str,
    /// Accuracies on the test set.
    pub test: TestAccuracy,
    /// The last epoch.
    pub last: EpochRecord,
    /// How good the audit is, where the truth is known.
    pub audit: Option<Measures>,
    /// Precision by recall of its ranking, likewise.
    pub curve: Option<RecallCurve>,
    /// Labels flagged as wrong.
    pub flagged: usize,
    /// All labels.
    pub samples: usize,
    /// Share of wrong labels, where the truth is known.
    pub noise: Option<f64>,
    /// What a review changed in the labels, where there was one.
    pub review: Option<Reviewed>,
    /// How many true labels the method was given.
    pub true_labels: usize,
    /// Seconds of training, those before a stop included.
    pub seconds: f64,
    /// All labels, ranked.
    pub ranked: Audit,
    /// How many are wrong.
    pub estimate: Option<NoiseEstimate>,
    /// Wrong labels and pairs by the class tree, by true labels; where these and the tree are known.
    pub label_noise: Option<LabelNoise>,
    /// The same by what the run believes of its labels.
    pub believed_noise: Option<LabelNoise>,
    /// The predictions that this was estimated from.
    pub predictions: Option<Predictions>,
}

/// A host with its plug-in, for people; `coverage` is what that finds to do, if it is known.
pub fn name(recipe: &Recipe, coverage: Option<&PairCoverage>) -> String {
    match recipe.train.plugin.as_str() {
        "none" => recipe.train.host.clone(),
        _ => format!("{} + {}", recipe.train.host, acting(recipe, coverage)),
    }
}

/// The plug-in with what becomes of it, where that is less than its name promises.
fn acting(recipe: &Recipe, coverage: Option<&PairCoverage>) -> String {
    let plugin = &recipe.train.plugin;
    coverage.map_or_else(|| plugin.clone(), |coverage| coverage.qualified_name(plugin))
}

/// What a review changed, by name.
fn review_figures(review: &Reviewed) -> impl Iterator<Item = (String, serde_json::Value)> {
    let counts = [
        ("review_changed", review.changed),
        ("review_kept", review.kept),
        ("review_dropped", review.dropped),
        ("review_unsure", review.unsure),
        ("review_by_audit", review.by_audit),
    ];
    let shares = ["labels_right_before", "labels_right"].into_iter().zip(review.right.into_iter().flatten());
    let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count.into()));
    counts.chain(shares.map(|(name, share)| (name.to_owned(), share.into())))
}

/// Ranks all labels.
pub(crate) fn rank(
    recipe: &Recipe,
    material: &Material,
    trained: &Trained,
) -> Result<(Audit, Option<Estimated>)> {
    let (verdicts, judged) = trained.trainer.judge()?;
    let names = material.train.classes();
    let audit = match (&judged, recipe.flag_below) {
        (Some((estimate, _)), None) => Audit::flagging(&verdicts, names, estimate.wrong_labels())?,
        (_, below) => Audit::new(&verdicts, names, below.unwrap_or(FLAG_BELOW))?,
    };
    let audit = match trained.trainer.tree() {
        Some(tree) => audit.with_distances(|given, suggested| tree.distance(given, suggested)),
        None => audit,
    };
    Ok((audit, judged))
}

/// The results in numbers.
pub(crate) fn summarise(
    folder: &RunFolder,
    recipe: &Recipe,
    material: &Material,
    trained: &Trained,
) -> Result<Summary> {
    let (ranked, judged) = rank(recipe, material, trained)?;
    let (estimate, predictions) = judged.unzip();
    let coverage = trained.trainer.pair_coverage();
    let (label_noise, believed_noise) = match trained.trainer.tree() {
        Some(tree) => noise_on_tree(recipe, &material.train, tree, estimate.as_ref())?,
        None => (None, None),
    };
    Ok(Summary {
        label_noise,
        believed_noise,
        name: mark_true_labels(&name(recipe, coverage), trained.trainer.true_labels() as u64),
        plugin: acting(recipe, coverage),
        instructions: instructions::of(&folder.file("settings.toml"))?,
        precision: precision_name(recipe.train.precision),
        true_labels: trained.trainer.true_labels(),
        test: TestAccuracy::of(&trained.records),
        last: trained.records.last().cloned().context("no epoch was recorded: nothing was trained")?,
        flagged: ranked.findings().iter().filter(|finding| finding.flag).count(),
        samples: material.train.len(),
        audit: material.train.truth().map(|truth| ranked.measure(truth)).transpose()?,
        curve: material.train.truth().and_then(|truth| ranking(&ranked, truth)),
        noise: material.noise_rate(),
        review: material.train.review().copied(),
        seconds: trained.records.iter().map(|record| record.seconds).sum(),
        ranked,
        estimate,
        predictions,
    })
}

impl Summary {
    /// The last JSON object of a run.
    pub fn json(&self, baseline: Option<&Summary>, folder: &RunFolder) -> serde_json::Value {
        let mut object = self.figures();
        if let Some(map) = object.as_object_mut() {
            map.insert("run".into(), folder.stamp().into());
            map.insert("out".into(), folder.place().display().to_string().into());
            map.insert("baseline".into(), baseline.map_or(serde_json::Value::Null, Summary::figures));
        }
        object
    }

    /// What labels say about the class tree: by true ones, else by beliefs.
    pub fn noise_on_tree(&self) -> Option<&LabelNoise> {
        self.label_noise.as_ref().or(self.believed_noise.as_ref())
    }

    /// Estimated share of wrong labels.
    pub fn noise_estimated(&self) -> Option<f64> {
        self.estimate.as_ref().map(|estimate| estimate.rate).or(self.last.noise_estimate)
    }

    fn figures(&self) -> serde_json::Value {
        let audit = self.audit.unwrap_or_default();
        let mut object = serde_json::json!({
            "method": self.name,
            "plugin": self.plugin,
            "instructions": self.instructions,
            "precision": self.precision,
            "test_last": self.test.last.map(|t| t.1),
            "test_last10": self.test.last_10.map(|t| t.1),
            "test_best_by_validation": self.test.best_by_validation.map(|t| t.1),
            "test_best": self.test.best.map(|t| t.1),
            "fit_clean": self.last.fit_clean,
            "fit_wrong_given": self.last.fit_wrong_given,
            "fit_wrong_true": self.last.fit_wrong_true,
            "noise_achieved": self.noise,
            "noise_estimated": self.noise_estimated(),
            "noise_interval": self.estimate.as_ref().map(|estimate| estimate.interval),
            "audit_average_precision": audit.average_precision,
            "audit_precision": self.curve.as_ref().map(RecallCurve::twentieths),
            "audit_flag_precision": audit.flag_precision,
            "audit_flag_recall": audit.flag_recall,
            "audit_suggestion_accuracy": audit.suggestion_accuracy,
            "flagged": self.flagged,
            "true_labels": (self.true_labels > 0).then_some(self.true_labels),
            "samples": self.samples,
            "epochs": self.last.epoch,
            "seconds": self.seconds,
            "errors_verdict": self.noise_on_tree().map(LabelNoise::verdict),
        });
        if let (Some(map), Some(review)) = (object.as_object_mut(), &self.review) {
            map.extend(review_figures(review));
        }
        if let Some(map) = object.as_object_mut() {
            let all = [("", &self.label_noise), ("believed_", &self.believed_noise)];
            all.into_iter()
                .filter_map(|(begin, found)| Some(tree_figures(begin, found.as_ref()?)))
                .for_each(|figures| map.extend(figures));
        }
        object
    }
}

/// Wrong labels and pairs by the class tree: by true labels, and by an estimate that can judge.
fn noise_on_tree(
    recipe: &Recipe,
    data: &Dataset,
    tree: &Taxonomy,
    estimate: Option<&NoiseEstimate>,
) -> Result<(Option<LabelNoise>, Option<LabelNoise>)> {
    let thresholds = recipe.thresholds()?;
    let labels = Labels::new(data.given(), data.truth(), tree, thresholds)?;
    let judged = estimate.filter(|estimate| estimate.cannot_judge.is_none());
    let believed = judged.map(|estimate| LabelNoise::estimated(&estimate.joint, tree, thresholds));
    Ok((LabelNoise::of(&labels), believed.transpose()?))
}

/// Figures of what labels say about the class tree, each with this at the beginning of its name.
fn tree_figures(begin: &str, found: &LabelNoise) -> impl Iterator<Item = (String, serde_json::Value)> {
    let ratio = |error: &ErrorShare| (error.ratio.into(), error.interval.to_vec().into());
    let none = (serde_json::Value::Null, serde_json::Value::Null);
    let errors = RELATIONS.into_iter().zip(found.errors.list()).skip(1).flat_map(move |(name, error)| {
        let (ratio, interval) = error.map_or(none.clone(), ratio);
        [(format!("errors_{name}"), ratio), (format!("errors_{name}_interval"), interval)]
    });
    let pairs = RELATIONS.into_iter().zip(found.pairs.list()).map(|(name, pairs)| {
        (format!("precision_of_{name}_pairs"), pairs.map(|pairs| pairs.precision).into())
    });
    let begin = begin.to_owned();
    errors
        .chain(pairs)
        .map(move |(name, value)| (format!("{begin}{name}"), value))
        .collect::<Vec<_>>()
        .into_iter()
}

/// How well the order of the list finds wrong labels.
pub(crate) fn ranking(audit: &Audit, truth: &[u32]) -> Option<RecallCurve> {
    let findings = audit.findings();
    let scores: Vec<f64> = findings.iter().map(|finding| -(finding.group as f64)).collect();
    let is_wrong: Vec<bool> = findings.iter().map(|f| f.verdict.given != truth[f.index]).collect();
    RecallCurve::of("as in audit.csv", &scores, &is_wrong)
}
