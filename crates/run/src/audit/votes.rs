//! Several annotators: every column of labels is one. The audit judges their majority vote; their consensus and how good each of them seems are told
//! beside it.

use super::evidence::percent;
use super::words::shorten;
use crate::Result;
use crate::error::bail;
use crate::recipe::Recipe;
use anyhow::Context;
use negscale_audit::Predictions;
use negscale_audit::annotators::{Consensus, Labels};
use negscale_data::{Annotators, Dataset, NoiseSpec};
use negscale_records::cells::guard;
use negscale_report::AnnotatorRow;
use serde_json::{Value, json};
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

/// Labels by several annotators.
pub struct Votes<'a>(&'a Annotators);

impl<'a> Votes<'a> {
    /// Those of a dataset, if it has several.
    ///
    /// # Errors
    /// If noise is to be laid over their majority vote: then nobody gave the labels that are audited.
    pub fn of(recipe: &Recipe, train: &'a Dataset) -> Result<Option<Self>> {
        let Some(annotators) = train.annotators() else { return Ok(None) };
        if recipe.data.noise != NoiseSpec::None {
            bail!("--label-columns: labels of annotators are audited as they are; leave out noise (--noise)");
        }
        Ok(Some(Self(annotators)))
    }

    /// The consensus of annotators, and of beliefs about true classes where there are any.
    pub fn agree(self, train: &Dataset, beliefs: Option<&Predictions>) -> Result<Agreed<'a>> {
        let labels = Labels::from_columns(self.0.columns(), train.classes().len())?;
        let beliefs = beliefs.filter(|p| p.len().saturating_mul(p.classes()) <= MOST_PROBABILITIES);
        let predictions = beliefs.map(probabilities);
        let consensus = Consensus::fit(&labels, predictions.as_deref())?;
        Ok(Agreed { votes: self, consensus, with_predictions: predictions.is_some() })
    }
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
pub struct Agreed<'a> {
    votes: Votes<'a>,
    consensus: Consensus,
    with_predictions: bool,
}

impl Agreed<'_> {
    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        self.votes.0.names()
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
            let labels =
                self.votes.0.columns().iter().map(|column| column[index].map_or(String::new(), name));
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
