//! The files of a finished run: ledger, audit, model, tree, report and results.

use crate::folder::{RunFolder, hardware, version, write};
use crate::recipe::Recipe;
use crate::summary::{Summary, name, summarise};
use crate::{Keep, Material, Result, Trained, clock};
use negscale_audit::{Audit, Cells, Finding};
use negscale_data::{Dataset, Items, Reviewed};
use negscale_methods::trainer::Trainer;
use negscale_report::{
    ConfusionRows, CountMatrix, Figure, NOISE_ESTIMATED, RelationRow, Relations, RunReport, Separation,
    SummaryRow, Suspicious, Thumbnail, summarise as summary_rows,
};
use negscale_similarity::{LabelNoise, RELATIONS};
use std::collections::BTreeMap;

/// How many suspicious labels a report shows.
const SHOWN: usize = 100;

/// Writes ledger, audit, model, tree, report and results, or as much of it as is kept, and gives the results.
pub fn write_all(
    folder: &RunFolder,
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

/// Writes ledger, audit and model.
fn write_products(
    folder: &RunFolder,
    recipe: &Recipe,
    material: &Material,
    trained: &Trained,
    summary: &Summary,
) -> Result<()> {
    let Trained { trainer, .. } = trained;
    trainer.ledger()?.rounded().save(folder.file("ledger.parquet"))?;
    summary.ranked.save_csv(
        folder.file("audit.csv"),
        |index| material.train.items().origin(index),
        Cells::Guarded,
    )?;
    trainer.model(about(recipe, trainer))?.save(folder.place())?;
    Ok(())
}

/// What a model says of itself.
pub fn about(recipe: &Recipe, trainer: &Trainer) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("method".to_owned(), name(recipe, trainer.pair_coverage())),
        ("data".to_owned(), recipe.data.data.clone()),
        ("noise".to_owned(), recipe.data.noise.to_string()),
        ("version".to_owned(), version()),
    ])
}

/// Writes the report, with the baseline's figures once there are any.
pub fn write_report(
    folder: &RunFolder,
    material: &Material,
    trained: &Trained,
    summary: &Summary,
    baseline: Option<&Summary>,
) -> Result<()> {
    Ok(report(folder, material, trained, summary, baseline)?.write_html(&folder.file("report.html"))?)
}

/// Writes the results, with those of the baseline once there are any. Written last: a run that has them is done.
pub fn write_results(folder: &RunFolder, summary: &Summary, baseline: Option<&Summary>) -> Result<()> {
    let results = serde_json::to_string_pretty(&summary.json(baseline, folder))?;
    write(&folder.file(crate::RESULTS), format!("{results}\n").as_bytes())
}

/// What a review changed in the labels.
fn review_rows(review: &Reviewed) -> Vec<SummaryRow> {
    let Reviewed { kept, changed, dropped, unsure, by_audit, right } = review;
    let looked_at = (kept + changed + dropped + unsure) as u64;
    let note = format!(
        "{changed} changed, {kept} kept, {dropped} dropped and left out, {unsure} unsure; {by_audit} more changed by the audit"
    );
    let mut rows = vec![SummaryRow::new("Labels looked at in a review", Figure::Count(looked_at), note)];
    if let Some([before, now]) = right {
        let share =
            |label: &str, share: f64, note: &str| SummaryRow::new(label, Figure::Fraction(share), note);
        rows.push(share("Labels that are right, before the review", *before, "by the known truth"));
        rows.push(share("Labels that are right, as trained on", *now, "dropped samples left out"));
    }
    rows
}

fn count(classes: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Result<CountMatrix> {
    let mut counts = vec![0; classes * classes];
    pairs.for_each(|(row, column)| counts[row as usize * classes + column as usize] += 1);
    Ok(CountMatrix::checked(classes, counts)?)
}

fn report(
    folder: &RunFolder,
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
    if let Some(review) = &results.review {
        summary.extend(review_rows(review));
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
            ("Flags that are correct", measures.flag_precision, "precision of the flags"),
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
            let note = format!("{}, trained for as many epochs", baseline.name);
            Some(SummaryRow::new(format!("Baseline: test accuracy, {which}"), Figure::Fraction(value?), note))
        }));
    }
    let confusion = match trained.trainer.test_predictions()? {
        Some((predicted, labels)) => {
            (ConfusionRows::True, count(classes, labels.into_iter().zip(predicted))?)
        }
        None => {
            let (predicted, labels) = trained.trainer.train_predictions()?;
            (ConfusionRows::Given, count(classes, labels.into_iter().zip(predicted))?)
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
        relations: results.noise_on_tree().map(relations),
        separation: Some(separation(audit, truth)),
        ranking: results.curve.clone(),
        flagged: Some(results.flagged),
        suspicious: shown.collect(),
        command: format!("negscale {} {}", folder.verb, folder.file("settings.toml").display()),
        hardware: hardware(),
        version: version(),
    })
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

/// What labels say about the class tree, for a page.
pub(crate) fn relations(found: &LabelNoise) -> Relations {
    let row = |at: usize| {
        let (error, pairs) = (found.errors.list()[at]?, found.pairs.list()[at]);
        Some(RelationRow {
            relation: RELATIONS[at].to_owned(),
            share: error.share,
            chance: error.chance,
            interval: error.interval,
            pairs: pairs.map(|pairs| [pairs.precision, pairs.chance]),
        })
    };
    let (words, labels) = (found.verdict(), found.wrong.round() as usize);
    Relations {
        words,
        labels,
        by_truth: !found.is_estimated,
        rows: (1..RELATIONS.len()).filter_map(row).collect(),
    }
}

/// A small picture of an item that is one.
fn thumbnail(data: &Dataset, index: usize) -> Option<Thumbnail> {
    let Items::Images(store) = data.items() else { return None };
    let image = store.load(index).ok()?;
    let shape = image.shape;
    let sides = (u32::try_from(shape.width).ok()?, u32::try_from(shape.height).ok()?);
    Thumbnail::checked(sides.0, sides.1, u8::try_from(shape.channels).ok()?, image.pixels).ok()
}

/// What a card shows of an item, whoever judged its label.
pub(crate) struct ShownItem {
    pub path: Option<String>,
    pub truth: Option<usize>,
    pub thumbnail: Option<Thumbnail>,
}

impl ShownItem {
    pub fn of(data: &Dataset, index: usize) -> Self {
        Self {
            path: data.items().origin(index),
            truth: data.truth().map(|truth| truth[index] as usize),
            thumbnail: thumbnail(data, index),
        }
    }
}

fn suspicious(data: &Dataset, finding: &Finding) -> Suspicious {
    let index = finding.index;
    let ShownItem { path, truth, thumbnail } = ShownItem::of(data, index);
    Suspicious {
        index,
        path,
        given: finding.verdict.given as usize,
        suggested: finding.verdict.suggested as usize,
        clean_probability: finding.verdict.clean_probability,
        suggested_probability: finding.verdict.suggested_probability.into(),
        tree_distance: finding.tree_distance.map(f64::from),
        truth,
        thumbnail,
    }
}
