//! What a finished run leaves behind.

use super::folder::{Folder, hardware, version, write};
use super::{Keep, Material, Trained, clock, instructions};
use anyhow::{Context, Result};
use negscale::PairCoverage;
use negscale_data::{Dataset, Items};
use negscale_learn::audit::{Audit, Cells, Finding, Measures, NoiseEstimate};
use negscale_learn::recipe::Recipe;
use negscale_report::plot::RecallCurve;
use negscale_report::{
    CountMatrix, EpochRecord, Figure, NOISE_ESTIMATED, Rows, RunReport, Separation, SummaryRow, Suspicious,
    TestAccuracy, Thumbnail, summarise as summary_rows, told,
};
use std::collections::BTreeMap;

/// How many suspicious labels a report shows.
const SHOWN: usize = 100;

/// The results of a run in numbers.
pub struct Summary {
    /// Host and plug-in.
    pub name: String,
    /// The plug-in, and what became of it.
    pub plugin: String,
    /// Instructions that made the numbers.
    pub instructions: Option<String>,
    /// Accuracies on the test set.
    pub test: TestAccuracy,
    /// The last epoch.
    pub last: EpochRecord,
    /// How good the audit is, where the truth is known.
    pub audit: Option<Measures>,
    /// Precision by recall of its ranking, likewise.
    pub curve: Option<RecallCurve>,
    /// Labels held to be wrong.
    pub flagged: usize,
    /// All labels.
    pub samples: usize,
    /// Share of wrong labels, where the truth is known.
    pub noise: Option<f64>,
    /// True labels that the method was told.
    pub true_labels: usize,
    /// Seconds of training, those before a stop included.
    pub seconds: f64,
    /// All labels, ranked.
    pub ranked: Audit,
    /// How many are wrong.
    pub estimate: Option<NoiseEstimate>,
}

/// A host with its plug-in, for people; `coverage` is which pairs that finds, if it is known.
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

/// Share of labels that differ from the truth.
pub fn noise_rate(data: &Dataset) -> Option<f64> {
    let wrong = data.given().iter().zip(data.truth()?).filter(|(given, truth)| given != truth).count();
    (!data.is_empty()).then(|| wrong as f64 / data.len() as f64)
}

/// Ranks all labels.
fn rank(recipe: &Recipe, material: &Material, trained: &Trained) -> Result<(Audit, Option<NoiseEstimate>)> {
    let (verdicts, estimate) = trained.trainer.verdicts()?;
    let tree = trained.trainer.tree();
    Ok((Audit::new(&verdicts, material.train.classes(), tree, recipe.flag_below)?, estimate))
}

/// The results in numbers.
fn summarise(folder: &Folder, recipe: &Recipe, material: &Material, trained: &Trained) -> Result<Summary> {
    let (ranked, estimate) = rank(recipe, material, trained)?;
    let coverage = trained.trainer.pair_coverage();
    Ok(Summary {
        name: told(&name(recipe, coverage), trained.trainer.true_labels() as u64),
        plugin: acting(recipe, coverage),
        instructions: instructions::of(&folder.file("settings.toml"))?,
        true_labels: trained.trainer.true_labels(),
        test: TestAccuracy::of(&trained.records),
        last: trained.records.last().cloned().context("no epoch was recorded: nothing was trained")?,
        flagged: ranked.findings().iter().filter(|finding| finding.flag).count(),
        samples: material.train.len(),
        audit: material.train.truth().map(|truth| ranked.measure(truth)).transpose()?,
        curve: material.train.truth().and_then(|truth| ranking(&ranked, truth)),
        noise: noise_rate(&material.train),
        seconds: trained.records.iter().map(|record| record.seconds).sum(),
        ranked,
        estimate,
    })
}

impl Summary {
    /// The last JSON object of a run.
    pub fn json(&self, baseline: Option<&Summary>, folder: &Folder) -> serde_json::Value {
        let mut object = self.figures();
        if let Some(map) = object.as_object_mut() {
            map.insert("run".into(), folder.stamp().into());
            map.insert("out".into(), folder.place().display().to_string().into());
            map.insert("baseline".into(), baseline.map_or(serde_json::Value::Null, Summary::figures));
        }
        object
    }

    /// Estimated share of wrong labels.
    pub fn noise_estimated(&self) -> Option<f64> {
        self.estimate.as_ref().map(|estimate| estimate.rate).or(self.last.noise_estimate)
    }

    fn figures(&self) -> serde_json::Value {
        let audit = self.audit.unwrap_or_default();
        serde_json::json!({
            "method": self.name,
            "plugin": self.plugin,
            "instructions": self.instructions,
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
        })
    }
}

/// Writes ledger, audit, model, tree, report and results, or as much of it as is kept, and gives the results.
pub fn write_all(
    folder: &Folder,
    recipe: &Recipe,
    material: &Material,
    trained: &Trained,
    keep: Keep,
) -> Result<Summary> {
    let Trained { trainer, .. } = trained;
    if let Some(tree) = trainer.tree() {
        write(&folder.file("tree.tsv"), tree.to_tsv().as_bytes())?;
    }
    let summary = summarise(folder, recipe, material, trained)?;
    if keep == Keep::All {
        write_products(folder, recipe, material, trained, &summary)?;
        write_report(folder, material, trained, &summary, None)?;
    }
    write_results(folder, &summary, None)?;
    Ok(summary)
}

/// Writes what people work on with: ledger, audit and model.
fn write_products(
    folder: &Folder,
    recipe: &Recipe,
    material: &Material,
    trained: &Trained,
    summary: &Summary,
) -> Result<()> {
    let Trained { trainer, .. } = trained;
    trainer.ledger()?.rounded().save(folder.file("ledger.parquet"))?;
    summary.ranked.save_csv(
        folder.file("audit.csv"),
        |index| origin(&material.train, index),
        Cells::Guarded,
    )?;
    let about = BTreeMap::from([
        ("method".to_owned(), name(recipe, trainer.pair_coverage())),
        ("data".to_owned(), recipe.data.data.clone()),
        ("noise".to_owned(), recipe.data.noise.to_string()),
        ("version".to_owned(), version()),
    ]);
    trainer.model(about)?.save(folder.place())?;
    Ok(())
}

/// Writes the report, with the baseline's figures once there are any.
pub fn write_report(
    folder: &Folder,
    material: &Material,
    trained: &Trained,
    summary: &Summary,
    baseline: Option<&Summary>,
) -> Result<()> {
    Ok(report(folder, material, trained, summary, baseline)?.write_html(&folder.file("report.html"))?)
}

/// Writes the results, beside those of the baseline once there are any. They come last: with them, a run is done.
pub fn write_results(folder: &Folder, summary: &Summary, baseline: Option<&Summary>) -> Result<()> {
    let results = serde_json::to_string_pretty(&summary.json(baseline, folder))?;
    write(&folder.file(super::RESULTS), format!("{results}\n").as_bytes())
}

pub fn origin(data: &Dataset, index: usize) -> Option<String> {
    data.items().origin(index)
}

fn count(classes: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Result<CountMatrix> {
    let mut counts = vec![0; classes * classes];
    pairs.for_each(|(row, column)| counts[row as usize * classes + column as usize] += 1);
    Ok(CountMatrix::checked(classes, counts)?)
}

fn report(
    folder: &Folder,
    material: &Material,
    trained: &Trained,
    results: &Summary,
    baseline: Option<&Summary>,
) -> Result<RunReport> {
    let (audit, Material { train, .. }) = (&results.ranked, material);
    let classes = train.classes().len();
    let mut summary = summary_rows(&trained.records);
    // The last epoch's word is the mixture's; the audit's estimate knows all of them.
    let row = summary.iter_mut().find(|row| row.label == NOISE_ESTIMATED);
    if let (Some(row), Some(rate)) = (row, results.noise_estimated()) {
        row.figure = Figure::Fraction(rate);
    }
    let truth = train.truth();
    if let Some(truth) = truth {
        let measures = audit.measure(truth)?;
        let found = [
            (
                "Wrong labels found: average precision",
                measures.average_precision,
                "of the ranking in audit.csv",
            ),
            ("Flags that are right", measures.flag_precision, "precision of the flags"),
            ("Wrong labels that are flagged", measures.flag_recall, "recall of the flags"),
            ("Noise, true", measures.noise_true, "share of wrong labels"),
        ];
        summary.extend(
            found.into_iter().filter_map(|(label, value, note)| {
                Some(SummaryRow::new(label, Figure::Fraction(value?), note))
            }),
        );
    }
    if let Some(baseline) = baseline {
        let figures = [
            ("mean of last 10", baseline.test.last_10.map(|t| t.1)),
            ("last", baseline.test.last.map(|t| t.1)),
        ];
        summary.extend(figures.into_iter().filter_map(|(which, value)| {
            let note = format!("{}, trained equally long", baseline.name);
            Some(SummaryRow::new(format!("Baseline: test accuracy, {which}"), Figure::Fraction(value?), note))
        }));
    }
    let confusion = match trained.trainer.test_predictions()? {
        Some((predicted, labels)) => (Rows::True, count(classes, labels.into_iter().zip(predicted))?),
        None => {
            let (predicted, labels) = trained.trainer.train_predictions()?;
            (Rows::Given, count(classes, labels.into_iter().zip(predicted))?)
        }
    };
    let noise = truth.map(|truth| count(classes, truth.iter().copied().zip(train.given().iter().copied())));
    let shown = audit.findings().iter().take(SHOWN).map(|finding| suspicious(train, finding));
    Ok(RunReport {
        title: format!("{} on {}", results.name, train.name()),
        when: clock::date(folder.started),
        settings: folder.settings()?,
        records: trained.records.clone(),
        summary,
        class_names: train.classes().to_vec(),
        confusion: Some(confusion),
        noise: noise.transpose()?,
        separation: Some(separation(audit, truth)),
        ranking: results.curve.clone(),
        suspicious: shown.collect(),
        command: format!("negscale {} {}", folder.verb, folder.file("settings.toml").display()),
        hardware: hardware(),
        version: version(),
    })
}

/// How well the order of the list finds wrong labels.
fn ranking(audit: &Audit, truth: &[u32]) -> Option<RecallCurve> {
    let findings = audit.findings();
    let scores: Vec<f64> = findings.iter().map(|finding| -(finding.group as f64)).collect();
    let is_wrong: Vec<bool> = findings.iter().map(|f| f.verdict.given != truth[f.index]).collect();
    RecallCurve::of("as in audit.csv", &scores, &is_wrong)
}

fn separation(audit: &Audit, truth: Option<&[u32]>) -> Separation {
    let all = audit.findings().iter().map(|f| (f.index, f.verdict.clean_probability as f32, f.verdict.given));
    let Some(truth) = truth else { return Separation::Unknown(all.map(|(_, clean, _)| clean).collect()) };
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for (index, clean, given) in all {
        if truth[index] == given { right.push(clean) } else { wrong.push(clean) }
    }
    Separation::Known { right, wrong }
}

fn suspicious(data: &Dataset, finding: &Finding) -> Suspicious {
    let index = finding.index;
    let thumbnail = match data.items() {
        Items::Images(store) => store.load(index).ok().and_then(|image| {
            let shape = image.shape;
            let sides = (u32::try_from(shape.width).ok()?, u32::try_from(shape.height).ok()?);
            Thumbnail::checked(sides.0, sides.1, u8::try_from(shape.channels).ok()?, image.pixels).ok()
        }),
        Items::Features(_) => None,
    };
    Suspicious {
        index,
        path: origin(data, index),
        given: finding.verdict.given as usize,
        suggested: finding.verdict.suggested as usize,
        clean_probability: finding.verdict.clean_probability,
        suggested_probability: finding.verdict.suggested_probability.into(),
        tree_distance: finding.tree_distance.map(f64::from),
        truth: data.truth().map(|truth| truth[index] as usize),
        thumbnail,
    }
}
