//! What is known of a method without running it: used for help, settings, documentation and tests.

use super::{Host, KnownNoise};
use crate::Result;
use negscale_nets::Heads;
use negscale_nets::optim::OptimiserSettings;
use negscale_nets::schedule::Schedule;
use serde::{Deserialize, Serialize};

/// What an implementation is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Textbook knowledge.
    Standard,
    /// The paper alone: its authors' code was not at hand.
    Paper,
    /// The paper and its authors' code.
    PaperAndCode,
    /// Its authors' code alone: the paper's text was not at hand.
    Code,
    /// Pieced together from an abstract and published numbers: our own reading.
    Reconstruction,
}

/// Which networks give the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedBy {
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
pub enum ItemKind {
    /// Pictures.
    Images,
    /// Feature vectors.
    Features,
}

/// Facts about the task that a host may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What the items are.
    pub kind: ItemKind,
    /// Number of classes.
    pub classes: usize,
    /// Number of samples to train on.
    pub samples: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Batch size, as set.
    pub batch: usize,
    /// The noise that was added to the data: only protocol `tuned` looks at it.
    pub noise: KnownNoise,
    /// The actual share of wrong labels among the training samples, where the truth is known: only the setting `rate` of methods
    /// that need a noise rate looks at it, if that asks for the known one.
    pub wrong_share: Option<f64>,
}

impl Facts {
    /// The noise, if a method may look at it and it is of a kind that settings were published for.
    pub fn noise_for(&self, protocol: Protocol) -> Option<KnownNoise> {
        (protocol == Protocol::Tuned && self.noise != KnownNoise::Unknown).then_some(self.noise)
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

impl Protocol {
    /// The meaning of the setting, for cards.
    pub(crate) const MEANING: &str =
        "blind: the same settings for all noise; tuned: the published ones for the noise at hand";
}

/// How a method is trained by default.
#[derive(Debug, Clone, PartialEq)]
pub struct Regime {
    /// Epochs.
    pub epochs: usize,
    /// Samples per batch.
    pub batch: usize,
    /// The optimiser.
    pub optimiser: OptimiserSettings,
    /// Schedule of its learning rate.
    pub schedule: Schedule,
}

impl Regime {
    /// Twenty epochs.
    pub fn new(batch: usize, optimiser: impl Into<OptimiserSettings>, schedule: impl Into<Schedule>) -> Self {
        Self { epochs: 20, batch, optimiser: optimiser.into(), schedule: schedule.into() }
    }
}

/// A setting and what it means.
pub type Meaning = (&'static str, &'static str);

/// Settings of a method, each in one line: name, type, default, a check ([`crate::settings`]) if any, and what it means. They may lie over
/// settings that methods share, whose names and meanings come first.
///
/// Makes the struct with its defaults, `MEANINGS` for the card, and `check`, which refuses what is out of range among its own.
macro_rules! settings {
    (@start $Base:ty) => { <$Base>::default() };
    (@start $Base:ty, $start:expr) => { $start };
    (
        $(#[$about:meta])*
        $Name:ident $(over $base:ident: $Base:ty $(= $start:expr)?),*;
        $($name:ident: $kind:ty = $default:expr $(=> $check:path)?, $meaning:expr;)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        #[allow(missing_docs)] // MEANINGS says what they mean
        pub struct $Name {
            $(#[serde(flatten)] pub $base: $Base,)*
            $(pub $name: $kind,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                Self {
                    $($base: $crate::host::card::settings!(@start $Base $(, $start)?),)*
                    $($name: $default,)*
                }
            }
        }

        impl $Name {
            const PARTS: &'static [&'static [$crate::host::Meaning]] =
                &[$(<$Base>::MEANINGS,)* &[$((stringify!($name), $meaning)),*]];

            /// What each setting means.
            pub const MEANINGS: &'static [$crate::host::Meaning] =
                &$crate::host::card::join::<{ $crate::host::card::count($Name::PARTS) }>($Name::PARTS);

            /// Refuses what is out of range.
            #[allow(dead_code)] // where there is nothing to refuse
            pub(crate) fn check(&self) -> $crate::Result<()> {
                $($($check(stringify!($name), self.$name)?;)?)*
                Ok(())
            }
        }
    };
}
pub(crate) use settings;

/// State and restoration of a host that has nothing to keep but what a part of it keeps.
macro_rules! keeps {
    ($($part:ident).+) => {
        fn state(&self) -> HostState {
            self.$($part).+.state()
        }

        fn restore(&mut self, state: HostState) -> Result<()> {
            self.$($part).+.restore(state)
        }
    };
}
pub(crate) use keeps;

/// How many meanings there are in all parts.
pub(crate) const fn count(parts: &[&[Meaning]]) -> usize {
    let (mut all, mut part) = (0, 0);
    while part < parts.len() {
        all += parts[part].len();
        part += 1;
    }
    all
}

/// Meanings of all parts, one after the other.
pub(crate) const fn join<const N: usize>(parts: &[&[Meaning]]) -> [Meaning; N] {
    let mut all = [("", ""); N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut inside = 0;
        while inside < parts[part].len() {
            all[at] = parts[part][inside];
            inside += 1;
            at += 1;
        }
        part += 1;
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
    pub predicted_by: PredictedBy,
    /// Who writes targets and clean probabilities.
    pub beliefs: Beliefs,
    /// Cost of an epoch, in forward passes per sample (a backward pass counts two), as text where it depends.
    pub cost: &'static str,
    /// Its own settings with their defaults, in the table `[ID]` of a recipe.
    pub settings: fn() -> toml::Table,
    /// What each of them means.
    pub meanings: &'static [Meaning],
    /// How it is trained by default.
    pub regime: fn(ItemKind) -> Regime,
    /// Makes the host from its settings: those given, defaults for the others. Settings out of range are an error.
    pub build: fn(&toml::Table, &Facts) -> Result<Box<dyn Host>>,
}
