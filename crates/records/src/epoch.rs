//! What is known after one epoch.
//!
//! All accuracies and fits are fractions in 0..=1. A quantity that was not measured is `None` and is left out of
//! the file; one that was measured and is not finite is written as `null`, since JSON has no such number, and read
//! back as NaN (infinities become NaN as well).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// One line of `metrics.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochRecord {
    /// Number of the epoch, from 1.
    pub epoch: u64,
    /// Seconds this epoch took, evaluation included.
    #[serde(deserialize_with = "null_is_nan")]
    pub seconds: f64,
    /// Learning rate at the end of the epoch.
    #[serde(deserialize_with = "null_is_nan")]
    pub learning_rate: f64,
    /// Mean of each term of the loss over the epoch, by name.
    #[serde(default, deserialize_with = "null_is_nan_in_map")]
    pub losses: BTreeMap<String, f64>,
    /// Accuracy on the training set against the labels as given.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub train_accuracy: Option<f64>,
    /// Accuracy on the test set.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// Accuracy on held-out samples against their labels as given, wrong ones among them.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    /// Of the samples whose label is right: the fraction predicted as labelled.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub fit_clean: Option<f64>,
    /// Of the samples whose label is wrong: the fraction predicted as labelled, which is memorised noise.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub fit_wrong_given: Option<f64>,
    /// Of the samples whose label is wrong: the fraction predicted as their true class.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub fit_wrong_true: Option<f64>,
    /// Area under the curve with which the clean probability tells right labels from wrong ones.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub separation_auc: Option<f64>,
    /// Estimated fraction of wrong labels.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub noise_estimate: Option<f64>,
    /// Of the labels held to be clean: the fraction that is right.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub selection_precision: Option<f64>,
    /// Of the labels that are right: the fraction held to be clean.
    #[serde(default, deserialize_with = "null_is_some_nan", skip_serializing_if = "Option::is_none")]
    pub selection_recall: Option<f64>,
    /// Whatever else a method wants to note, by name.
    #[serde(default, deserialize_with = "null_is_nan_in_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, f64>,
}

impl EpochRecord {
    /// A record with what every epoch has; the rest is filled in by whoever measured it.
    #[must_use]
    pub fn new(epoch: u64, seconds: f64, learning_rate: f64) -> Self {
        Self { epoch, seconds, learning_rate, ..Self::default() }
    }

    /// Every number of the record under the name TensorBoard shows, `group/name`.
    #[must_use]
    pub fn scalars(&self) -> Vec<(String, f64)> {
        let losses = self.losses.iter().map(|(name, &value)| (format!("loss/{name}"), value));
        let measured = [
            ("accuracy/train", self.train_accuracy),
            ("accuracy/test", self.test_accuracy),
            ("accuracy/validation", self.validation_accuracy),
            ("fit/clean", self.fit_clean),
            ("fit/wrong_as_given", self.fit_wrong_given),
            ("fit/wrong_true_class", self.fit_wrong_true),
            ("labels/separation_auc", self.separation_auc),
            ("labels/noise_estimate", self.noise_estimate),
            ("labels/selection_precision", self.selection_precision),
            ("labels/selection_recall", self.selection_recall),
        ];
        let measured = measured.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let run = [("run/learning_rate", self.learning_rate), ("run/epoch_seconds", self.seconds)];
        let run = run.into_iter().map(|(name, value)| (name.to_owned(), value));
        let more = self.more.iter().map(|(name, &value)| (format!("more/{name}"), value));
        losses.chain(measured).chain(run).chain(more).collect()
    }
}

fn null_is_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Called only for fields that are present, so that "not measured" and "not finite" stay apart.
fn null_is_some_nan<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    null_is_nan(from).map(Some)
}

fn null_is_nan_in_map<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let read = BTreeMap::<String, Option<f64>>::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_left_out() {
        let text = serde_json::to_string(&EpochRecord::new(3, 1.5, 0.1)).unwrap();
        assert_eq!(text, r#"{"epoch":3,"seconds":1.5,"learning_rate":0.1,"losses":{}}"#);
    }

    #[test]
    fn what_is_not_finite_becomes_null_and_comes_back_as_nan() {
        let mut record = EpochRecord::new(0, 1.0, f64::INFINITY);
        record.losses.insert("snop".into(), f64::NAN);
        record.test_accuracy = Some(f64::NAN);
        let text = serde_json::to_string(&record).unwrap();
        assert!(
            text.contains(r#""losses":{"snop":null}"#) && text.contains(r#""test_accuracy":null"#),
            "{text}"
        );
        let back: EpochRecord = serde_json::from_str(&text).unwrap();
        assert!(back.losses["snop"].is_nan() && back.learning_rate.is_nan());
        assert!(back.test_accuracy.is_some_and(f64::is_nan));
        assert_eq!(back.train_accuracy, None);
    }

    #[test]
    fn a_record_of_a_later_version_is_still_read() {
        let text = r#"{"epoch":1,"seconds":2,"learning_rate":0.1,"losses":{"a":1},"invented_later":[1,2]}"#;
        let back: EpochRecord = serde_json::from_str(text).unwrap();
        assert_eq!((back.epoch, back.losses["a"]), (1, 1.0));
    }
}
