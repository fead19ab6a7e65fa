//! `audit.json`: an audit in figures.

use crate::folder::{hardware, version};
use crate::{Done, Result};
use serde_json::{Map, Value, json};

/// The figures; those that need the truth are under `truth`, which is null without it.
pub fn object(done: &Done, seconds: f64) -> Result<Value> {
    let Done { recipe, material, folder, summary, .. } = done;
    let classes = material.train.classes();
    let ranked = &summary.ranked;
    let changed = ranked.findings().iter().filter(|f| f.is_corrected()).count();
    let noise = summary.estimate.as_ref().map(|estimate| {
        let by_class = classes.iter().enumerate().map(|(class, name)| {
            json!({
                "class": name,
                "given": estimate.given_counts[class],
                "wrong_given": estimate.wrong_by_given[class],
                "true": estimate.true_counts[class],
                "wrong_true": estimate.wrong_by_true[class],
            })
        });
        json!({
            "rate": estimate.rate,
            "interval_95": estimate.interval,
            "cannot_judge": estimate.cannot_judge,
            "readings": {
                "careful": estimate.readings[0],
                "confident": estimate.readings[1],
            },
            "given_by_true": estimate.given_by_true(),
            "true_by_given": estimate.true_by_given(),
            "classes": by_class.collect::<Vec<Value>>(),
        })
    });
    let settings: toml::Table = toml::from_str(&recipe.to_toml())?;
    Ok(json!({
        "data": material.train.name(),
        "samples": summary.samples,
        "flagged": summary.flagged,
        "changed": changed,
        "noise": noise,
        "truth": truth(done)?,
        "seconds": seconds,
        "seconds_training": summary.seconds,
        "method": summary.name,
        "settings": serde_json::to_value(settings)?,
        "version": version(),
        "hardware": hardware(),
        "out": folder.place().display().to_string(),
    }))
}

/// How good the audit is, where the truth is known.
fn truth(done: &Done) -> Result<Option<Value>> {
    let Done { material, summary, .. } = done;
    let (Some(truth), Some(measures)) = (material.train.truth(), &summary.audit) else { return Ok(None) };
    let ranked = &summary.ranked;
    let wrong = ranked.findings().iter().filter(|f| f.verdict.given != truth[f.index]).count();
    let mut precision = Map::new();
    for k in [100, 1000] {
        precision.insert(k.to_string(), ranked.precision_at(k, truth)?.into());
    }
    precision.insert("wrong".into(), ranked.precision_at(wrong, truth)?.into());
    let error = summary.estimate.as_ref().zip(measures.noise_true).map(|(e, noise)| e.rate - noise);
    let inside = summary.estimate.as_ref().zip(measures.noise_true);
    let inside = inside.map(|(e, noise)| (e.interval[0]..=e.interval[1]).contains(&noise));
    Ok(Some(json!({
        "wrong": wrong,
        "noise": measures.noise_true,
        "rate_error": error,
        "interval_holds": inside,
        "average_precision": measures.average_precision,
        "precision_at": precision,
        "auc": measures.auc,
        "flag_precision": measures.flag_precision,
        "flag_recall": measures.flag_recall,
        "suggestion_accuracy": measures.suggestion_accuracy,
    })))
}
