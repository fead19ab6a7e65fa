//! How the plug-in's gradient compares with the host's, over the batches of an epoch.
//!
//! Both are measured at the features: the host's by way of the classifier, in the backward pass; the plug-in's term by term, with all
//! its weights, in some batches.

use negscale::GradientLengths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sums over batches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Notes {
    sums: BTreeMap<String, (f64, u64)>,
    /// Measured in this batch, for each network, until its host is heard.
    waiting: BTreeMap<usize, [f64; 4]>,
}

/// Names of the terms' shares, and of the share on features not above 0.
const NAMES: [&str; 4] = [
    "gradient share of snop-global",
    "gradient share of snop-local",
    "gradient share of dcsa",
    "share of the plug-in's gradient on inactive units",
];

impl Notes {
    /// Lengths of the terms' gradients for a batch of a network, and what they were multiplied by.
    pub fn measured(&mut self, net: usize, lengths: &GradientLengths, scale: f64) {
        let GradientLengths { global, local, dcsa, inactive, .. } = *lengths;
        self.waiting.insert(net, [scale * global, scale * local, scale * dcsa, inactive]);
    }

    /// Whether any gradient has been measured in this epoch.
    pub fn has_measured(&self) -> bool {
        !self.waiting.is_empty() || self.sums.contains_key(NAMES[0])
    }

    /// A number to note with the epoch.
    pub fn note(&mut self, name: &str, value: f64) {
        self.sums.insert(name.to_owned(), (value, 1));
    }

    /// Length of the host's gradient for the same batch. Units can be inactive only if the classifier sees them after a ReLU.
    pub fn heard(&mut self, net: usize, length: f64, is_rectified: bool) {
        let Some(measured) = self.waiting.remove(&net).filter(|_| length > 0.0) else { return };
        let noted = if is_rectified { 4 } else { 3 };
        for (number, (name, value)) in NAMES.into_iter().zip(measured).take(noted).enumerate() {
            let value = if number < 3 { value / length } else { value };
            let (sum, count) = self.sums.entry(name.to_owned()).or_default();
            (*sum, *count) = (*sum + value, *count + 1);
        }
    }

    /// Means over batches, by name.
    pub fn means(self) -> BTreeMap<String, f64> {
        self.sums.into_iter().map(|(name, (sum, count))| (name, sum / count as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_means_over_the_batches_that_were_measured_and_heard() {
        let mut lengths = GradientLengths::default();
        (lengths.global, lengths.inactive) = (2.0, 0.5);
        let mut notes = Notes::default();
        notes.heard(0, 8.0, true); // nothing was measured
        notes.measured(0, &lengths, 1.0);
        notes.heard(1, 1.0, true); // another network
        notes.heard(0, 8.0, true);
        notes.measured(0, &lengths, 3.0);
        notes.heard(0, 8.0, false);
        let means = notes.means();
        assert_eq!(means[NAMES[0]], (0.25 + 0.75) / 2.0);
        assert_eq!((means[NAMES[1]], means[NAMES[3]]), (0.0, 0.5));
    }
}
