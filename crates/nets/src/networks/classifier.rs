//! A network's last layer by itself: what the first channels of the features say without the others.

use super::network::Network;
use super::state::{ParameterEntry, ParameterKind};
use super::weights::CLASSIFIERS;
use crate::{Error, Result};

/// The last layer as numbers. Logit $c$ is $b_c + \sum_j W_{cj}\, a(f_j)$ with features $f$; $a$ rectifies or leaves alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    /// $W$, a row of d numbers for each class.
    pub weight: Vec<f32>,
    /// $b$, one for each class; zeros where the layer has none.
    pub bias: Vec<f32>,
    /// Whether features are rectified first.
    pub rectifies: bool,
}

fn is_classifier(entry: &ParameterEntry) -> bool {
    CLASSIFIERS.iter().any(|prefix| entry.path.starts_with(prefix))
}

impl Network {
    /// The last layer.
    pub fn classifier(&self) -> Result<Classifier> {
        if !self.spec().classifier.is_linear() {
            let (net, setting, value) =
                (self.spec().name.clone(), "classifier", self.spec().classifier.name().into());
            let wanted =
                "its logits are cosines, which a linear layer cannot stand for; set classifier = \"linear\"";
            return Err(Error::Setting { net, setting, value, wanted });
        }
        let mut found = Classifier {
            weight: Vec::new(),
            bias: vec![0.0; self.spec().classes],
            rectifies: self.rectifies(),
        };
        for (entry, values) in self.read()?.into_iter().filter(|(entry, _)| is_classifier(entry)) {
            match entry.kind {
                ParameterKind::Weight => found.weight = values,
                _ => found.bias = values,
            }
        }
        if found.weight.len() == self.spec().classes * self.feature_size() {
            return Ok(found);
        }
        let problems = vec!["its classifier has another shape than classes x features".to_owned()];
        Err(Error::Weights { net: self.spec().name.clone(), origin: "the network itself".into(), problems })
    }

    /// The network with a classifier that is blind to all but the first `width` channels of the features: its weights for the
    /// others are 0. Logits are those of a pass that [keeps](super::Pass::keeping) as many.
    pub fn narrowed(self, width: usize) -> Result<Self> {
        let (size, Classifier { mut weight, .. }) = (self.feature_size(), self.classifier()?);
        weight.chunks_mut(size).for_each(|row| row[width.min(size)..].fill(0.0));
        self.replace(|entry| {
            (is_classifier(entry) && entry.kind == ParameterKind::Weight).then(|| weight.clone())
        })
    }
}
