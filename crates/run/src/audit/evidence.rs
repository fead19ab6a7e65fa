//! Why a label is doubted, in words and numbers.

use super::losses::LossHistory;
use super::near::Near;
use negscale::taxonomy::{Relation, Thresholds};
use negscale_audit::neighbours::{Copies, Outliers};
use negscale_audit::{Finding, NoiseEstimate, Predictions};
use std::collections::BTreeMap;

/// What is known of samples beside their scores. What is not known is left out.
#[derive(Default)]
pub struct Evidence<'a> {
    /// What models say of true classes.
    pub predictions: Option<&'a Predictions>,
    /// The nearest neighbours of some samples, by sample.
    pub near: BTreeMap<usize, Near>,
    /// Near-copies.
    pub copies: Option<Copies>,
    /// Near-copies that are in the test part as well: numbers from the length of the training part on are rows of the test part.
    pub across: Vec<Vec<u32>>,
    /// Samples far from all others.
    pub outliers: Option<Outliers>,
    /// Losses over the epochs of a training.
    pub losses: Option<LossHistory>,
}

/// The numbers behind one label's reasons.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Numbers {
    /// Likeliest class by the models, and its probability.
    pub predicted: Option<(u32, f32)>,
    /// The models' probability of the given class.
    pub given: Option<f32>,
    /// Neighbours: all, labelled as given, labelled as suggested.
    pub near: Option<[usize; 3]>,
    /// Which share of the labels of the given class is probably the suggested one.
    pub confusion: Option<f64>,
    /// Epochs and losses, oldest first.
    pub losses: Vec<(u64, f64)>,
    /// Its set of near-copies.
    pub copies: Option<u32>,
    /// Whether it is far from all others.
    pub is_outlier: bool,
}

impl Evidence<'_> {
    /// The numbers on one label.
    pub fn numbers(&self, finding: &Finding, estimate: Option<&NoiseEstimate>) -> Numbers {
        let (sample, verdict) = (finding.index, &finding.verdict);
        let count = |near: &Near, class| near.labels.iter().filter(|&&other| other == class).count();
        Numbers {
            predicted: self.predictions.map(|p| p.likeliest(sample)).map(|e| (e.class, e.probability)),
            given: self.predictions.map(|p| p.probability(sample, verdict.given)),
            near: self
                .near
                .get(&sample)
                .map(|near| [near.rows.len(), count(near, verdict.given), count(near, verdict.suggested)]),
            confusion: estimate.filter(|_| verdict.given != verdict.suggested).map(|estimate| {
                let classes = estimate.given_counts.len();
                let cell = estimate.joint[verdict.given as usize * classes + verdict.suggested as usize];
                cell / estimate.given_counts[verdict.given as usize].max(1) as f64
            }),
            losses: self.losses.as_ref().map_or_else(Vec::new, |losses| {
                losses.sample(sample).map(|(epoch, loss, _)| (epoch, loss)).collect()
            }),
            copies: self.copies.as_ref().and_then(|copies| copies.set_of(sample)),
            is_outlier: self.outliers.as_ref().is_some_and(|outliers| outliers.is_outlier(sample)),
        }
    }

    /// What speaks against a label, most telling first.
    pub fn reasons(
        &self,
        finding: &Finding,
        names: &[String],
        estimate: Option<&NoiseEstimate>,
    ) -> Vec<String> {
        let numbers = self.numbers(finding, estimate);
        let verdict = &finding.verdict;
        let name = |class: u32| names[class as usize].as_str();
        let (given, suggested) = (name(verdict.given), name(verdict.suggested));
        let mut reasons = Vec::new();
        if let (Some((class, probability)), Some(own)) = (numbers.predicted, numbers.given) {
            reasons.push(format!(
                "models give {} {}, {given} {}",
                name(class),
                percent(probability.into()),
                percent(own.into())
            ));
        }
        if let Some([all, as_given, as_suggested]) = numbers.near {
            reasons.push(format!(
                "of its {all} nearest neighbours {as_suggested} are labelled {suggested}, {as_given} {given}"
            ));
        }
        if let Some(share) = numbers.confusion {
            reasons.push(format!("{} of the labels {given} are probably {suggested}", percent(share)));
        }
        reasons.extend(self.losses.as_ref().and_then(|losses| losses.words(finding.index)));
        if let Some(distance) = finding.tree_distance.filter(|distance| *distance > 0) {
            let relation = match Thresholds::default().relation(distance) {
                Relation::Related => "related",
                Relation::Unrelated => "unrelated",
                _ => "neither related nor unrelated",
            };
            reasons.push(format!("the two classes are {relation} (distance {distance} in the class tree)"));
        }
        if numbers.copies.is_some() {
            reasons.push("it has near-copies in the data".into());
        }
        if numbers.is_outlier {
            reasons.push("it is far from all other samples".into());
        }
        reasons
    }
}

/// A share for people.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
