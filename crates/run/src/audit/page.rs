//! The audit's report page, from what was found.

use super::account::Account;
use super::commands;
use super::flags::SourceFlags;
use crate::folder::{hardware, version};
use crate::products::{ShownItem, relations};
use crate::{Result, clock};
use negscale_audit::Finding;
use negscale_data::{Dataset, Items};
use negscale_report::{
    AuditReport, ClassRow, ConfusionRow, Correction, CountMatrix, Estimate, Figure, Member, NextStep,
    Outlier, Separation, SummaryRow, WorstLabel,
};

/// How many labels are shown one by one.
const SHOWN: usize = 100;
/// Classes of which the matrix is drawn.
const DRAWN: usize = 30;

/// The page.
pub fn report(account: &Account) -> Result<AuditReport> {
    let (audit, train) = (account.audit, &account.material.train);
    let classes = account.classes();
    let flags = || audit.findings().iter().filter(|finding| finding.flag);
    let judged = account.judged();
    let correction = account.correction();
    let samples = audit.findings().len();
    let origin = |index| train.items().origin(index);
    let mut report = AuditReport {
        title: format!("Audit of {}", train.name()),
        when: clock::date(account.started),
        samples,
        flagged: audit.flagged(),
        estimate: judged.map(|estimate| Estimate { rate: estimate.rate, interval: estimate.interval }),
        cannot_judge: account.cannot_judge().map(str::to_owned),
        notes: account.notes.clone(),
        class_names: classes.to_vec(),
        flag_rule: account.flags.rule(),
        sources: account.sources().iter().map(SourceFlags::row).collect(),
        worst: flags().take(SHOWN).map(|finding| worst(account, finding)).collect(),
        settings: account.settings.clone(),
        command: account
            .file("settings.toml")
            .filter(|_| !account.recipe.data.is_in_memory())
            .map_or_else(String::new, |settings| format!("negscale audit {settings}")),
        judging: Some(account.judging.clone()),
        hardware: hardware(),
        version: version(),
        ..AuditReport::default()
    };
    if let Some(agreed) = &account.agreed {
        report.annotators = agreed.rows();
    }
    if let Some(estimate) = judged {
        report.classes = (0..classes.len())
            .map(|class| ClassRow {
                class,
                labels: estimate.given_counts[class],
                flagged: account.flags.classes[class].flagged,
                share: estimate.wrong_by_given[class],
                threshold: account.flags.classes[class].least.map(|(score, _)| score),
                why: account.flags.of_class(class),
            })
            .collect();
        let confusion = |(y, g, count): (usize, usize, f64)| ConfusionRow {
            given: g,
            probably: y,
            count: count.round() as usize,
            share: count / estimate.given_counts[g].max(1) as f64,
            tree_distance: account.tree.map(|tree| tree.distance(g, y)),
        };
        report.confusions =
            estimate.confusions().into_iter().map(confusion).filter(|row| row.count > 0).collect();
        if classes.len() <= DRAWN {
            let mut counts = vec![0; classes.len() * classes.len()];
            for finding in audit.findings() {
                let (given, suggested) = (finding.verdict.given as usize, finding.verdict.suggested as usize);
                let column = if finding.flag { suggested } else { given };
                counts[given * classes.len() + column] += 1;
            }
            report.matrix = Some(CountMatrix::checked(classes.len(), counts)?);
        }
        report.relations = account.noise_on_tree()?.as_ref().map(relations);
        report.correction = Some(Correction {
            file: account.file("corrected.csv").unwrap_or_else(|| "a correction".into()),
            changed: correction.changed,
            expected_precision: correction.expected_precision,
            unknown: correction.unknown.map(str::to_owned),
            right_before: Some(correction.right_before * samples as f64),
            right_after: correction.right_after.map(|right| right * samples as f64),
        });
        report.next = next_steps(account);
        let scores = audit.findings().iter().map(|f| (f.index, f.verdict.score as f32, f.verdict.given));
        report.scores = Some(match train.truth() {
            None => Separation::Unknown(scores.map(|(_, score, _)| score).collect()),
            Some(truth) => {
                let (right, wrong): (Vec<_>, Vec<_>) =
                    scores.partition(|(index, _, given)| truth[*index] == *given);
                let only =
                    |part: Vec<(usize, f32, u32)>| part.into_iter().map(|(_, score, _)| score).collect();
                Separation::Known { right: only(right), wrong: only(wrong) }
            }
        });
    }
    let member = |index: usize| Member {
        index,
        path: origin(index),
        label: train.given()[index] as usize,
        split: String::new(),
        thumbnail: None,
    };
    if let Some(copies) = &account.evidence.copies {
        report.duplicates = copies
            .sets()
            .iter()
            .map(|set| set.rows.iter().map(|&row| member(row as usize)).collect())
            .collect();
    }
    if let Some(test) = &account.material.splits.test {
        let anywhere = |row: u32| match (row as usize).checked_sub(train.len()) {
            None => Member { split: "train".into(), ..member(row as usize) },
            Some(index) => Member {
                index,
                path: test.items().origin(index),
                label: test.given()[index] as usize,
                split: "test".into(),
                thumbnail: None,
            },
        };
        let across = account.evidence.across.iter();
        report.duplicates.extend(across.map(|set| set.iter().map(|&row| anywhere(row)).collect()));
    }
    if let Some(outliers) = &account.evidence.outliers {
        let mut found = outliers.flagged();
        found.sort_by(|&a, &b| outliers.scores()[b as usize].total_cmp(&outliers.scores()[a as usize]));
        report.outliers = found
            .into_iter()
            .map(|row| Outlier {
                index: row as usize,
                path: origin(row as usize),
                label: train.given()[row as usize] as usize,
                score: f64::from(outliers.scores()[row as usize]),
                thumbnail: None,
            })
            .collect();
    }
    if let Some(measures) = &account.measures {
        let rows = [
            ("Share of wrong labels", measures.noise_true, "by the known truth"),
            ("Average precision", measures.average_precision, "of the ranking in audit.csv"),
            ("Flags that are correct", measures.flag_precision, "precision of the flags"),
            ("Wrong labels that are flagged", measures.flag_recall, "recall of the flags"),
            ("True class suggested", measures.suggestion_accuracy, "among wrong labels"),
        ];
        report.measures = rows
            .into_iter()
            .filter_map(|(label, value, note)| Some(SummaryRow::new(label, Figure::Fraction(value?), note)))
            .collect();
        report.ranking = train.truth().and_then(|truth| crate::summary::ranking(audit, truth));
    }
    Ok(report)
}

fn next_steps(account: &Account) -> Vec<NextStep> {
    let (data, own) = (&account.recipe.data.data, &account.recipe.data.own);
    let step = |words: &str, command: Option<String>| NextStep {
        words: words.into(),
        command: command.unwrap_or_default(),
    };
    let most = account.judged().map_or(0.05, |estimate| estimate.interval[1]);
    let given = account.recipe.pred_probs.as_ref();
    let given = given.map_or(String::new(), |path| format!(" --pred-probs {}", path.display()));
    let look = "Look at the flagged labels, worst first, with the reasons for each.";
    let mut steps = vec![step(look, account.file("audit.csv"))];
    // What is in memory has no name that a command could use.
    if account.recipe.data.is_in_memory() {
        steps.push(step("Train on the corrected labels.", account.file("corrected.csv")));
        return steps;
    }
    let review = account.place.filter(|_| account.audit.flagged() > 0).map(commands::review);
    steps.extend(review.map(|review| step("Look through them in the browser, and decide.", Some(review))));
    let train = account.file("corrected.csv").map(|file| commands::train(data, own, &file));
    steps.extend(train.map(|train| step("Train on the corrected labels.", Some(train))));
    let check = commands::check(data, own, &given, most);
    steps.push(step("Make it a check of your pipeline.", Some(check)));
    steps
}

/// Names and values of a row of a table; nothing of rows whose columns have no names.
fn row_values(train: &Dataset, index: usize) -> Vec<(String, String)> {
    let Items::Features(store) = train.items() else { return Vec::new() };
    let mut row = vec![0.0; store.dim()];
    if store.names().len() != row.len() || store.read(index, &mut row).is_err() {
        return Vec::new();
    }
    store.names().iter().zip(row).map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn worst(account: &Account, finding: &Finding) -> WorstLabel {
    let (train, index) = (&account.material.train, finding.index);
    let ShownItem { path, truth, thumbnail } = ShownItem::of(train, index);
    let names = account.classes();
    let mut reasons = account.evidence.reasons(finding, names, account.estimate);
    reasons.push(account.flags.short_reason(finding, names));
    let source = train.sources().and_then(|sources| sources.name(index)).filter(|name| !name.is_empty());
    let mut values: Vec<(String, String)> =
        source.map(|name| ("source".into(), name.into())).into_iter().collect();
    values.extend(row_values(train, index));
    WorstLabel {
        index,
        path,
        given: finding.verdict.given as usize,
        suggested: finding.verdict.suggested as usize,
        score: finding.verdict.score,
        suggested_probability: finding.verdict.suggested_probability.into(),
        reasons,
        truth,
        thumbnail,
        values,
    }
}
