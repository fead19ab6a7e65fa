//! What is known of a method without running it: feeds help, settings, documentation and the house rules.

use super::Host;
use crate::Result;
use crate::nets::Heads;
use crate::optim::Rule;
use crate::schedule::Schedule;
use serde::{Deserialize, Serialize};

/// Where a method's description comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Textbook knowledge.
    Standard,
    /// The paper and its authors' code.
    PaperAndCode,
    /// Pieced together from an abstract and published numbers: our own reading.
    Reconstruction,
}

/// Which networks give the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judges {
    /// The first one.
    First,
    /// All of them: logits are summed.
    Sum,
}

/// Who writes the believed targets and clean probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beliefs {
    /// Nobody but the trainer: targets are the predictions after each epoch. Clean probabilities come from the mixture of losses
    /// where the host has entered none.
    Predictions,
    /// The host.
    Own,
}

/// What kind of items the data has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Pictures.
    Images,
    /// Feature vectors.
    Features,
}

/// What a host may know of the task.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What the items are.
    pub kind: Kind,
    /// Number of classes.
    pub classes: usize,
    /// Number of samples to train on.
    pub samples: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Samples per batch, as set.
    pub batch: usize,
    /// The noise that was laid over the data, as its text, if it was: only protocol `tuned` looks at it.
    pub noise: Option<String>,
    /// The actual share of wrong labels among the training samples, where the truth is known: only the setting `rate` of methods
    /// that need a noise rate looks at it, if that asks for the known one.
    pub wrong_share: Option<f64>,
}

impl Facts {
    /// Kind and rate of the noise that was laid over the data, such as `sym-incl` and 0.5; empty and 0 if none is known.
    pub fn noise_kind(&self) -> (&str, f64) {
        let text = self.noise.as_deref().unwrap_or_default();
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        (kind, parts.next().and_then(|rate| rate.parse().ok()).unwrap_or(0.0))
    }
}

/// Whether a method may look at which noise there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One setting for all noise.
    #[default]
    Blind,
    /// The published setting for the noise at hand.
    Tuned,
}

/// How a method is trained unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Regime {
    /// Epochs.
    pub epochs: usize,
    /// Samples per batch.
    pub batch: usize,
    /// The optimiser.
    pub optimiser: Rule,
    /// How its learning rate goes.
    pub schedule: Schedule,
}

/// A setting and what it means.
pub type Meaning = (&'static str, &'static str);

/// Settings of a method, each in one line: name, type, default and what it means.
///
/// Makes the struct `Settings` with its defaults, and `MEANINGS` for the card.
macro_rules! settings {
    ($($name:ident: $kind:ty = $default:expr, $meaning:literal;)+) => {
        /// Settings of the method.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct Settings {
            $(#[doc = $meaning] pub $name: $kind,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default),+ }
            }
        }

        /// What each setting means.
        pub const MEANINGS: &[$crate::hosts::Meaning] = &[$((stringify!($name), $meaning)),+];
    };
}
pub(super) use settings;

/// Meanings of a method's settings, and of those of a method over it.
pub(super) const fn join<const N: usize>(base: &[Meaning], own: &[Meaning]) -> [Meaning; N] {
    let mut all = [("", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < base.len() { base[at] } else { own[at - base.len()] };
        at += 1;
    }
    all
}

/// A method's card.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Name to ask for it by.
    pub id: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// How that became code.
    pub provenance: Provenance,
    /// How many networks it trains.
    pub nets: usize,
    /// Heads beside the classifier.
    pub heads: Heads,
    /// Which networks give the prediction.
    pub judges: Judges,
    /// Who writes targets and clean probabilities.
    pub beliefs: Beliefs,
    /// Cost of an epoch, in forward passes per sample (a backward pass counts two), as text where it depends.
    pub cost: &'static str,
    /// Its own settings with their defaults, in the table `[ID]` of a recipe.
    pub settings: fn() -> toml::Table,
    /// What each of them means.
    pub meanings: &'static [Meaning],
    /// How it is trained unless told otherwise.
    pub regime: fn(Kind) -> Regime,
    /// Makes the host from its settings: those given, defaults for the others. Settings out of range are an error.
    pub build: fn(&toml::Table, &Facts) -> Result<Box<dyn Host>>,
}
