//! A trained model: networks, class names, and how an item becomes the networks' input.
//!
//! ```
//! use burn::tensor::Device;
//! use negscale_data::known::embedded;
//! use negscale_nets::model::{Model, Preparation};
//! use negscale_nets::{NetSpec, Network};
//!
//! let test = embedded()?.test.ok_or("no test split")?.subset(&[0, 1, 2])?;
//! let preparation = Preparation::measure(&test, None)?;
//! let spec = NetSpec::new("cnn-small", preparation.input(), test.classes().len());
//! let net = Network::build(&spec, &Device::flex())?;
//! let model = Model::new(vec![net], test.classes().to_vec(), preparation, Default::default())?;
//! let folder = tempfile::tempdir()?;
//! model.save(folder.path())?;
//! let model = Model::load(folder.path(), &Device::flex())?;
//! assert_eq!(model.evaluate(&test, 1)?.samples(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With z_1 ... z_n the logits of the n networks, the model's probabilities are softmax(z_1 + ... + z_n): for one network its
//! own, for two what published two-network methods are judged by.

mod evaluation;
mod features;
mod file;
mod prediction;
mod preparation;

pub use evaluation::Evaluation;
pub use file::FILE;
pub use prediction::{PredictionBatch, Predictions};
pub use preparation::Preparation;

use crate::networks::Network;
use crate::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// A trained model.
#[derive(Debug, Clone)]
pub struct Model {
    nets: Vec<Network>,
    classes: Vec<String>,
    preparation: Preparation,
    about: BTreeMap<String, String>,
}

impl Model {
    /// A model, if its parts fit together. `about` is free text for people, such as the method and the data.
    pub fn new(
        nets: Vec<Network>,
        classes: Vec<String>,
        preparation: Preparation,
        about: BTreeMap<String, String>,
    ) -> Result<Self> {
        let refuse = |problem: String| Err(Error::Model { origin: "in memory".into(), problem });
        if nets.is_empty() {
            return refuse("it has no network: give at least one".into());
        }
        let mut seen = HashMap::new();
        if let Some(name) = classes.iter().find(|name| seen.insert(name.as_str(), ()).is_some()) {
            return refuse(format!("two classes are called `{name}`: names must differ"));
        }
        preparation.checked()?;
        for spec in nets.iter().map(Network::spec) {
            if spec.classes != classes.len() {
                return refuse(format!(
                    "network `{}` has {} classes, but {} are named",
                    spec.name,
                    spec.classes,
                    classes.len()
                ));
            }
            if spec.input != preparation.input() {
                return refuse(format!(
                    "network `{}` takes {}, but items are prepared as {}",
                    spec.name,
                    spec.input,
                    preparation.input()
                ));
            }
        }
        Ok(Self { nets, classes, preparation, about })
    }

    /// The networks.
    pub fn nets(&self) -> &[Network] {
        &self.nets
    }

    /// Names of the classes, in the order of the logits.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// How an item becomes the networks' input.
    pub fn preparation(&self) -> &Preparation {
        &self.preparation
    }

    /// What there is to say about it.
    pub fn about(&self) -> &BTreeMap<String, String> {
        &self.about
    }

    /// For each class of some data, the model's class of the same name.
    ///
    /// Classes that are only numbered ("0", "1", "3") count into the model's if the model has other names.
    pub fn class_map(&self, names: &[String]) -> Result<Vec<u32>> {
        let places: HashMap<&str, u32> =
            self.classes.iter().zip(0..).map(|(name, place)| (name.as_str(), place)).collect();
        let strange: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !places.contains_key(name)).collect();
        if strange.is_empty() {
            return Ok(names.iter().filter_map(|name| places.get(name.as_str()).copied()).collect());
        }
        let number = |name: &String| {
            let number: u32 = name.parse().ok()?;
            ((number as usize) < self.classes.len() && number.to_string() == *name).then_some(number)
        };
        if let Some(numbers) = names.iter().map(number).collect() {
            return Ok(numbers);
        }
        let problem = format!(
            "{} of the data's {} classes are not among the model's {}: {}; the model knows {}. Rename them, or remove them",
            strange.len(),
            names.len(),
            self.classes.len(),
            some(&strange),
            some(&self.classes),
        );
        Err(Error::Model { origin: "and data do not fit".into(), problem })
    }
}

/// The first ten of a list.
fn some(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<String> = names.iter().take(10).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = if names.len() > 10 { ", ..." } else { "" };
    shown.join(", ") + more
}
