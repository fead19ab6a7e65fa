//! Several annotators: every column of labels is one. The audit judges their majority vote; their consensus and how good each of them seems are told
//! beside it.

use super::evidence::percent;
use super::words::shorten;
use crate::Result;
use crate::recipe::Recipe;
use anyhow::{Context, bail, ensure};
use negscale_audit::Predictions;
use negscale_audit::annotators::{Consensus, Labels};
use negscale_data::noise::NoiseSpec;
use negscale_data::own::{OwnOptions, table};
use negscale_data::{Dataset, Splits};
use negscale_records::cells::guard;
use negscale_report::AnnotatorRow;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The file with every sample's consensus.
pub const CONSENSUS: &str = "consensus.csv";
/// Up to this many probabilities are one more voice of the consensus.
const MOST_PROBABILITIES: usize = 50_000_000;
/// Annotators that are told of in words.
const SHOWN: usize = 20;
/// What the numbers on annotators take for granted.
const CAUTION: &str =
    "annotators are taken to err independently; those who make the same mistakes look better than they are";

/// What to open for one of several annotators: their column has the labels, and in a table those of the others are no features.
///
/// # Errors
/// If there are fewer than two columns, one is named twice, or the file of labels lacks it.
pub fn annotator(own: &OwnOptions, columns: &[String], at: usize) -> Result<OwnOptions> {
    let one = check_names(own, columns).and_then(|()| columns.get(at).context("there is no such annotator"));
    let column = one.context("--label-columns")?;
    let mut own = OwnOptions { label_column: Some(column.clone()), ..own.clone() };
    if own.labels.is_none() {
        own.ignore_columns.retain(|name| !columns.contains(name));
        own.ignore_columns.extend(columns.iter().filter(|&other| other != column).cloned());
    }
    Ok(own)
}

fn check_names(own: &OwnOptions, columns: &[String]) -> anyhow::Result<()> {
    if let [_] | [] = columns {
        bail!("name at least two columns, as in a,b,c; for one column there is --label-column");
    }
    let twice = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name));
    if let Some((_, name)) = twice {
        bail!("column `{name}` is named twice; every column is one annotator, so name it once");
    }
    let Some(file) = &own.labels else { return Ok(()) };
    if !is_table(file) {
        bail!("{} has no named columns; give labels as .csv or .tsv with a header", file.display());
    }
    for name in columns {
        ensure!(
            table::has_column(file, name)?,
            "{} has no column `{name}` in its first line",
            file.display()
        );
    }
    Ok(())
}

/// A table with the same columns as the file of labels would have labels among its features.
fn refuse_twice(data: &str, own: &OwnOptions, columns: &[String]) -> Result<()> {
    let path = Path::new(data);
    if own.labels.is_none() || !is_table(path) || !path.is_file() {
        return Ok(());
    }
    for name in columns {
        if table::has_column(path, name)? {
            let problem =
                "in the data and in the file of labels; leave --labels out, or rename it in one of them";
            return Err(anyhow::anyhow!("--label-columns: column `{name}` is both {problem}").into());
        }
    }
    Ok(())
}

fn is_table(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    ["csv", "tsv"].contains(&extension.as_str())
}

/// Labels of all annotators, by one vocabulary.
pub struct Votes {
    names: Vec<String>,
    columns: Vec<Vec<Option<u32>>>,
}

impl Votes {
    /// Opens the columns after the first, which `splits` was opened with, and gives the data with majority votes as its labels.
    pub fn gather(recipe: &Recipe, splits: Splits, columns: &[String]) -> Result<(Splits, Self)> {
        let data = &recipe.data;
        if data.noise != NoiseSpec::None || data.samples.is_some() {
            let problem = "--label-columns: labels of several annotators are audited as they are and all of them; leave out noise and samples";
            return Err(anyhow::anyhow!(problem).into());
        }
        refuse_twice(&data.data, &data.own, columns)?;
        let Splits { train, notes, left_out, .. } = splits;
        let mut parts = vec![train];
        for at in 1..columns.len() {
            let settings =
                crate::recipe::DataSettings { own: annotator(&data.own, columns, at)?, ..data.clone() };
            let part = settings.open()?.train;
            if part.len() != parts[0].len() {
                let [first, name] = [&columns[0], &columns[at]];
                return Err(anyhow::anyhow!(
                    "--label-columns: column `{first}` has labels for {} rows and `{name}` for {}; every column needs the same rows",
                    parts[0].len(),
                    part.len()
                )
                .into());
            }
            parts.push(part);
        }
        let classes = vocabulary(&parts);
        let places: BTreeMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
        let translated = |part: &Dataset, labels: &[u32]| -> anyhow::Result<Vec<u32>> {
            let places: Option<Vec<u32>> =
                part.classes().iter().map(|name| places.get(name.as_str()).copied()).collect();
            let places = places.context("a class has no place among all classes")?;
            Ok(labels.iter().map(|&label| places[label as usize]).collect())
        };
        let columns_of: anyhow::Result<Vec<Vec<u32>>> =
            parts.iter().map(|part| translated(part, part.given())).collect();
        let labels = columns_of?;
        let first = &parts[0];
        let truth = first.truth().map(|truth| translated(first, truth)).transpose()?;
        let train =
            Dataset::new(first.name(), classes.clone(), first.items().clone(), majority(&labels), truth)?;
        let columns_of = labels.into_iter().map(|column| column.into_iter().map(Some).collect()).collect();
        // Nothing is tested in such an audit, and a test split would have other classes.
        let splits = Splits { notes, left_out, ..Splits::new(train, None) };
        Ok((splits, Self { names: columns.to_vec(), columns: columns_of }))
    }

    /// A hash of names and labels.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (name, column) in self.names.iter().zip(&self.columns) {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            column.iter().for_each(|label| hash.update(label.unwrap_or(u32::MAX).to_le_bytes()));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The consensus of annotators, and of beliefs about true classes where there are any.
    pub fn agree(self, train: &Dataset, beliefs: Option<&Predictions>) -> Result<Agreed> {
        let labels = Labels::from_columns(&self.columns, train.classes().len())?;
        let beliefs = beliefs.filter(|p| p.len().saturating_mul(p.classes()) <= MOST_PROBABILITIES);
        let predictions = beliefs.map(probabilities);
        let consensus = Consensus::fit(&labels, predictions.as_deref())?;
        Ok(Agreed { votes: self, consensus, with_predictions: predictions.is_some() })
    }
}

/// Classes of all parts: in their order where they are the same, numbers by size, names by the alphabet.
fn vocabulary(parts: &[Dataset]) -> Vec<String> {
    if parts.iter().all(|part| part.classes() == parts[0].classes()) {
        return parts[0].classes().to_vec();
    }
    let names: BTreeSet<&String> = parts.iter().flat_map(|part| part.classes()).collect();
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    if names.iter().all(|name| name.parse::<i64>().is_ok()) {
        names.sort_by_key(|name| name.parse::<i64>().unwrap_or_default());
    }
    names
}

/// The class that most columns give; among equals, that of the earliest column.
fn majority(columns: &[Vec<u32>]) -> Vec<u32> {
    let rows = columns.first().map_or(0, Vec::len);
    let vote = |row: usize| {
        let labels = || columns.iter().map(|column| column[row]);
        let count = |class: u32| labels().filter(|&other| other == class).count();
        let (mut best, mut most) = (0, 0);
        for class in labels() {
            let votes = count(class);
            if votes > most {
                (best, most) = (class, votes);
            }
        }
        best
    };
    (0..rows).map(vote).collect()
}

/// N x C; what was not kept is spread evenly over the other classes.
fn probabilities(beliefs: &Predictions) -> Vec<f32> {
    let classes = beliefs.classes();
    let mut all = vec![0.0; beliefs.len() * classes];
    for (sample, row) in all.chunks_exact_mut(classes.max(1)).enumerate() {
        let kept = beliefs.row(sample);
        let sum: f32 = kept.iter().map(|entry| entry.probability).sum();
        let others = classes.saturating_sub(kept.len());
        if others > 0 {
            row.fill((1.0 - sum).max(0.0) / others as f32);
        }
        kept.iter().for_each(|entry| row[entry.class as usize] = entry.probability);
    }
    all
}

/// What annotators agree on.
pub struct Agreed {
    votes: Votes,
    consensus: Consensus,
    with_predictions: bool,
}

impl Agreed {
    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.votes.names
    }

    /// How many samples' consensus is not the majority vote.
    fn differing(&self, majority: &[u32]) -> usize {
        self.consensus.samples.iter().zip(majority).filter(|(sample, vote)| sample.class != **vote).count()
    }

    /// Writes every sample's consensus, beside what it was made from.
    pub fn save(&self, to: &Path, train: &Dataset) -> Result<()> {
        let name = |class: u32| guard(&train.classes()[class as usize]).into_owned();
        let mut table = csv::Writer::from_writer(Vec::new());
        let fail = || format!("cannot write {}", to.display());
        let head = ["index", "path", "consensus", "certainty", "majority"].map(str::to_owned);
        let head = head.into_iter().chain(self.names().iter().map(|name| guard(name).into_owned()));
        table.write_record(head).with_context(fail)?;
        for (index, sample) in self.consensus.samples.iter().enumerate() {
            let path = train.items().origin(index).unwrap_or_default();
            let row = [
                index.to_string(),
                guard(&path).into_owned(),
                name(sample.class),
                sample.certainty.to_string(),
                name(train.given()[index]),
            ];
            let labels = self.votes.columns.iter().map(|column| column[index].map_or(String::new(), name));
            table.write_record(row.into_iter().chain(labels)).with_context(fail)?;
        }
        let bytes = table.into_inner().map_err(|error| error.into_error()).with_context(fail)?;
        crate::folder::write(to, &bytes)
    }

    /// For `audit.json`: annotators, and how far they agree.
    pub fn figures(&self, majority: &[u32]) -> [Value; 2] {
        let annotators = self.names().iter().zip(&self.consensus.annotators).map(|(name, annotator)| {
            json!({
                "name": name,
                "labels": annotator.labels,
                "accuracy": annotator.accuracy,
                "agreement": annotator.agreement,
                "chance": annotator.chance,
                "kappa": annotator.kappa,
            })
        });
        let agreement = json!({
            "alpha": self.consensus.alpha,
            "with_predictions": self.with_predictions,
            "differ_from_majority": self.differing(majority),
        });
        [annotators.collect(), agreement]
    }

    /// For the page.
    pub fn rows(&self) -> Vec<AnnotatorRow> {
        let row = |(name, annotator): (&String, &negscale_audit::annotators::Annotator)| AnnotatorRow {
            name: name.clone(),
            labels: annotator.labels,
            accuracy: annotator.accuracy.unwrap_or(f64::NAN),
            agreement: annotator.agreement.unwrap_or(f64::NAN),
        };
        self.names().iter().zip(&self.consensus.annotators).map(row).collect()
    }

    /// How the labels came about, for the page.
    pub fn story(&self) -> String {
        let voices = match self.with_predictions {
            true => "the labels of all annotators and the models' predictions",
            false => "the labels of all annotators",
        };
        format!(
            "The audited label is the majority vote of {} annotators (a tie goes to the earliest column). {CONSENSUS} has what {voices} say together. \
             Accuracies are estimates: {CAUTION}.",
            self.names().len()
        )
    }

    /// For people.
    pub fn words(&self, majority: &[u32]) -> String {
        let mut text =
            format!("{:<28}{:>8}{:>12}{:>20}\n", "annotator", "labels", "right", "agree with others");
        let share = |share: Option<f64>| share.map_or("-".into(), percent);
        for (name, annotator) in self.names().iter().zip(&self.consensus.annotators).take(SHOWN) {
            let (right, agreement) = (share(annotator.accuracy), share(annotator.agreement));
            text += &format!("{:<28}{:>8}{right:>12}{agreement:>20}\n", shorten(name), annotator.labels);
        }
        if self.names().len() > SHOWN {
            text += &format!("... and {} more in audit.json\n", self.names().len() - SHOWN);
        }
        if let Some(alpha) = self.consensus.alpha {
            text += &format!(
                "agreement of annotators (Krippendorff's alpha, 1 is full, 0 is chance): {alpha:.2}\n"
            );
        }
        let differing = self.differing(majority);
        text += &format!(
            "{CONSENSUS} differs from the majority vote, which was audited, for {differing} samples\n"
        );
        text + &format!("note: shares of right labels are estimates: {CAUTION}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_votes_win_and_the_earliest_column_among_equals() {
        let columns = [vec![2, 0, 1, 0], vec![1, 1, 1, 1], vec![0, 1, 1, 1], vec![0, 0, 2, 0]];
        assert_eq!(majority(&columns), [0, 0, 1, 0]);
        assert_eq!(majority(&[vec![2], vec![1]]), [2]);
    }

    #[test]
    fn other_columns_are_no_features_and_names_are_checked() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let own = OwnOptions { ignore_columns: names(&["note", "b"]), ..OwnOptions::default() };
        let second = annotator(&own, &names(&["a", "b", "c"]), 1).unwrap();
        assert_eq!(second.label_column.as_deref(), Some("b"));
        assert_eq!(second.ignore_columns, ["note", "a", "c"]);
        for wrong in [&["a"][..], &[], &["a", "b", "a"]] {
            assert!(annotator(&own, &names(wrong), 0).is_err(), "{wrong:?}");
        }
    }
}
