//! `audit.json`: an audit in figures.

use super::account::Account;
use super::flags::SourceFlags;
use crate::Result;
use crate::folder::{hardware, version};
use negscale_similarity::label_noise::{ErrorShare, PairPrecision};
use serde_json::{Map, Value, json};

/// Matrices of more classes than this are left out; the list of confusions has what matters.
const MOST_CLASSES: usize = 100;
/// Most confusions that are listed.
const MOST_CONFUSIONS: usize = 1000;
/// Flagged labels that are listed with their reasons.
const MOST_WORST: usize = 100;

/// The figures; those that need the truth are under `truth`, which is null without it.
pub fn object(account: &Account, seconds_training: Option<f64>) -> Result<Value> {
    let (audit, classes) = (account.audit, account.classes());
    let correction = account.correction();
    let sources: Vec<Value> = account.sources().iter().map(SourceFlags::figures).collect();
    let settings: toml::Table = toml::from_str(&account.recipe.to_toml())?;
    let evidence = &account.evidence;
    let worst = audit.findings().iter().filter(|finding| finding.flag).take(MOST_WORST).map(|finding| {
        json!({
            "index": finding.index,
            "path": account.material.train.items().origin(finding.index),
            "given": classes[finding.verdict.given as usize],
            "suggested": classes[finding.verdict.suggested as usize],
            "score": finding.verdict.score,
            "suggested_probability": finding.verdict.suggested_probability,
            "losses": evidence.numbers(finding, account.estimate).losses,
            "source": account.material.train.sources().and_then(|sources| sources.name(finding.index)),
            "reasons": account.reasons(finding),
        })
    });
    let agreed = account.agreed.as_ref().map(|agreed| agreed.figures(account.material.train.given()));
    let [annotators, agreement] = agreed.unwrap_or_default();
    Ok(json!({
        "data": account.material.train.name(),
        "samples": audit.findings().len(),
        "flagged": audit.flagged(),
        "cut_off": audit.cut_off(),
        "changed": correction.changed,
        "correction": {
            "changed": correction.changed,
            "expected_precision": correction.expected_precision,
            "precision_unknown": correction.unknown,
            "right_before": correction.right_before,
            "right_after": correction.right_after,
        },
        "noise": noise(account),
        "sources": sources,
        "losses": evidence.losses.as_ref().map(|losses| json!({
            "epochs": losses.epochs,
            "medians": losses.medians,
            "still_improving": losses.still_improving().is_some(),
        })),
        "relations": account.noise_on_tree()?.map(|found| {
            let part = |error: Option<ErrorShare>| error.map(|error| {
                json!({ "share": error.share, "chance": error.chance, "ratio": error.ratio, "interval_95": error.interval })
            });
            let precision = |pairs: Option<PairPrecision>| pairs.map(|pairs| pairs.precision);
            json!({
                "verdict": found.verdict(),
                "wrong": found.wrong,
                "related": part(found.errors.related),
                "neutral": part(found.errors.neutral),
                "unrelated": part(found.errors.unrelated),
                "precision_of_related_pairs": precision(found.pairs.related),
                "precision_of_unrelated_pairs": precision(found.pairs.unrelated),
            })
        }),
        "worst": worst.collect::<Vec<Value>>(),
        "near_copies": evidence.copies.as_ref().map(|copies| {
            copies.sets().iter().map(|set| json!({ "rows": set.rows, "exact": set.is_exact })).collect::<Vec<_>>()
        }),
        "near_copies_in_test": evidence.across,
        "outliers": evidence.outliers.as_ref().map(|outliers| outliers.flagged()),
        "experts": account.judging.experts.iter().map(|e| json!({ "name": e.name, "weight": e.weight })).collect::<Vec<_>>(),
        "annotators": annotators,
        "agreement": agreement,
        "notes": account.notes,
        "truth": truth(account)?,
        "seconds": account.seconds,
        "seconds_training": seconds_training,
        "method": account.method,
        "settings": serde_json::to_value(settings)?,
        "version": version(),
        "hardware": hardware(),
        "out": account.place.map(|place| place.display().to_string()),
    }))
}

fn noise(account: &Account) -> Option<Value> {
    let (estimate, classes) = (account.estimate?, account.classes());
    if let Some(why) = &estimate.cannot_judge {
        return Some(json!({ "rate": null, "interval_95": null, "cannot_judge": why }));
    }
    let by_class = classes.iter().enumerate().map(|(class, name)| {
        json!({
            "class": name,
            "given": estimate.given_counts[class],
            "flagged": account.flags.classes[class].flagged,
            "flagged_from": account.flags.classes[class].least.map(|(score, _)| score),
            "right_there": account.flags.classes[class].least.map(|(_, right)| right),
            "wrong_given": estimate.wrong_by_given[class],
            "true": estimate.true_counts[class],
            "wrong_true": estimate.wrong_by_true[class],
        })
    });
    let confusions = estimate.confusions().into_iter().take(MOST_CONFUSIONS).map(|(y, g, count)| {
        let distance = account.tree.map(|tree| tree.distance(g, y));
        json!({ "given": classes[g], "probably": classes[y], "labels": count, "tree_distance": distance })
    });
    let few = classes.len() <= MOST_CLASSES;
    Some(json!({
        "rate": estimate.rate,
        "interval_95": estimate.interval,
        "cannot_judge": null,
        "readings": { "careful": estimate.readings[0], "confident": estimate.readings[1], "means": account.by_means },
        "exponent": estimate.exponent,
        "given_by_true": few.then(|| estimate.given_by_true()),
        "true_by_given": few.then(|| estimate.true_by_given()),
        "classes": by_class.collect::<Vec<Value>>(),
        "confusions": confusions.collect::<Vec<Value>>(),
    }))
}

/// How good the audit is, where the truth is known.
fn truth(account: &Account) -> Result<Option<Value>> {
    let (Some(truth), Some(measures)) = (account.material.train.truth(), &account.measures) else {
        return Ok(None);
    };
    let audit = account.audit;
    let wrong = audit.findings().iter().filter(|f| f.verdict.given != truth[f.index]).count();
    let mut precision = Map::new();
    for k in [100, 1000] {
        precision.insert(k.to_string(), audit.precision_at(k, truth)?.into());
    }
    precision.insert("wrong".into(), audit.precision_at(wrong, truth)?.into());
    let estimated = account.judged().zip(measures.noise_true);
    let corrected = audit.corrected();
    let right = |labels: &mut dyn Iterator<Item = u32>| labels.zip(truth).filter(|(a, b)| a == *b).count();
    let before = right(&mut account.material.train.given().iter().copied());
    let kept = account.material.train.given().iter().zip(&corrected).zip(truth);
    let kept = kept.filter(|((given, corrected), truth)| given == truth && corrected == truth).count();
    Ok(Some(json!({
        "wrong": wrong,
        "noise": measures.noise_true,
        "rate_error": estimated.map(|(e, noise)| e.rate - noise),
        "interval_holds": estimated.map(|(e, noise)| (e.interval[0]..=e.interval[1]).contains(&noise)),
        "average_precision": measures.average_precision,
        "precision_at": precision,
        "auc": measures.auc,
        "flag_precision": measures.flag_precision,
        "flag_recall": measures.flag_recall,
        "suggestion_accuracy": measures.suggestion_accuracy,
        "right_before": before,
        "right_after": right(&mut corrected.iter().copied()),
        "right_kept": (before > 0).then(|| kept as f64 / before as f64),
    })))
}
