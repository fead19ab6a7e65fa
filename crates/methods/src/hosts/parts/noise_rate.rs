//! The noise rate that some methods must be told: setting `rate`.
//!
//! | value | which rate |
//! |---|---|
//! | `"estimate"` | what the predictions of the epochs so far say: the confident reading of [`negscale_audit::NoiseEstimate`]; 0 before the first |
//! | `"known"` | the actual share of wrong labels among the training samples: an oracle, for comparison with published numbers |
//! | a number | this one |
//!
//! The estimate needs nobody's help, so it is the default; published results of these methods were obtained with the rate known. It is
//! noted with every epoch. Networks that have hardly learnt anything make it too high, those that memorise too low: methods ask early,
//! but not at once, and no longer when they act on the answer.

use crate::host::{Facts, Protocol};
use crate::settings::require;
use crate::{Error, Result};
use negscale_audit::ledger::Ledger;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What is wanted of the setting, for errors.
const WANTED: &str = "a noise rate is \"estimate\", \"known\" or a number from 0 to 1";

/// Where a noise rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Rate {
    /// From the predictions so far.
    #[default]
    Estimate,
    /// As it is.
    Known,
    /// This one.
    Share(f64),
}

impl Rate {
    /// The meaning of the setting, for cards.
    pub(crate) const MEANING: &str =
        "noise rate: estimate (from predictions so far), known (the actual one, an oracle), or a number";

    /// The setting with `"known"` made a number. Under protocol `tuned` the rate is known rather than estimated.
    pub fn settle(self, protocol: Protocol, facts: &Facts) -> Result<Self> {
        match (self, facts.wrong_share) {
            (Self::Share(share), _) => {
                require("rate", share, (0.0..=1.0).contains(&share), WANTED)?;
                Ok(self)
            }
            (Self::Known, Some(share)) => Ok(Self::Share(share)),
            (Self::Known, None) => Err(Error::Range {
                setting: "rate",
                value: "\"known\"".into(),
                wanted: "the true labels are not known; set \"estimate\", or a number",
            }),
            (Self::Estimate, Some(share)) if protocol == Protocol::Tuned => Ok(Self::Share(share)),
            (Self::Estimate, _) => Ok(Self::Estimate),
        }
    }

    /// The rate for an epoch that begins, of a setting that is [settled](Self::settle).
    pub fn now(self, ledger: &Ledger) -> Result<f64> {
        match (self, ledger.predictions()) {
            (Self::Share(share), _) => Ok(share),
            (_, None) => Ok(0.0),
            (_, Some(predictions)) => {
                Ok(negscale_audit::confident_rate(predictions, ledger.given(), ledger.classes())?)
            }
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match *self {
            Self::Estimate => serializer.serialize_str("estimate"),
            Self::Known => serializer.serialize_str("known"),
            Self::Share(share) => serializer.serialize_f64(share),
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Read;
        impl de::Visitor<'_> for Read {
            type Value = Rate;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(WANTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Rate, E> {
                match text {
                    "estimate" => Ok(Rate::Estimate),
                    "known" => Ok(Rate::Known),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> std::result::Result<Rate, E> {
                Ok(Rate::Share(share))
            }

            fn visit_i64<E: de::Error>(self, share: i64) -> std::result::Result<Rate, E> {
                Ok(Rate::Share(share as f64))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
