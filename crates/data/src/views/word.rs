//! Views by name.

use super::features::Stray;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kind of view. Its text form is what settings and the command line use, e.g. `weak` or `jitter:0.1+dropout:0.2`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum View {
    /// As it is; for pictures and features.
    Plain,
    /// The weak view of the item's kind.
    Weak,
    /// The strong view of the item's kind.
    Strong,
    /// Pictures: a part of any size. Features: as weak.
    Zoom,
    /// Pictures: a part of any size with its colours changed. Features: as strong.
    Contrast,
    /// Pictures: the AutoAugment policy.
    AutoAugment,
    /// Features as they are; another word for plain.
    Identity,
    /// Features: jitter, dropout or both.
    Noise(Stray),
}

impl View {
    /// Refuses views that only features have.
    pub fn for_pictures(self) -> Result<()> {
        match self {
            Self::Noise(_) => Err(Error::Setting {
                what: "view",
                value: self.to_string(),
                requirement:
                    "is for features; pictures have plain, weak, strong, zoom, contrast, autoaugment".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl FromStr for View {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::Setting {
            what: "view",
            value: text.to_owned(),
            requirement: "must be plain, weak, strong, zoom, contrast, autoaugment, identity, jitter:S, dropout:P or jitter:S+dropout:P"
                .into(),
        }
        };
        match text {
            "plain" => return Ok(Self::Plain),
            "weak" => return Ok(Self::Weak),
            "strong" => return Ok(Self::Strong),
            "zoom" => return Ok(Self::Zoom),
            "contrast" => return Ok(Self::Contrast),
            "autoaugment" => return Ok(Self::AutoAugment),
            "identity" => return Ok(Self::Identity),
            _ => {}
        }
        let (mut sigma, mut dropout) = (None, None);
        for part in text.split('+') {
            let (name, value) = part.split_once(':').ok_or_else(unknown)?;
            let place = match name {
                "jitter" => &mut sigma,
                "dropout" => &mut dropout,
                _ => return Err(unknown()),
            };
            let value: f32 = value.parse().map_err(|_| unknown())?;
            if place.replace(value).is_some() {
                return Err(unknown());
            }
        }
        let stray = Stray { sigma: sigma.unwrap_or(0.0), dropout: dropout.unwrap_or(0.0) };
        Ok(Self::Noise(stray.checked()?))
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Weak => f.write_str("weak"),
            Self::Strong => f.write_str("strong"),
            Self::Zoom => f.write_str("zoom"),
            Self::Contrast => f.write_str("contrast"),
            Self::AutoAugment => f.write_str("autoaugment"),
            Self::Identity => f.write_str("identity"),
            Self::Noise(Stray { sigma, dropout }) if *dropout == 0.0 => write!(f, "jitter:{sigma}"),
            Self::Noise(Stray { sigma, dropout }) if *sigma == 0.0 => write!(f, "dropout:{dropout}"),
            Self::Noise(Stray { sigma, dropout }) => write!(f, "jitter:{sigma}+dropout:{dropout}"),
        }
    }
}

impl TryFrom<String> for View {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<View> for String {
    fn from(view: View) -> Self {
        view.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_comes_back_from_its_text() {
        for text in [
            "plain",
            "weak",
            "strong",
            "zoom",
            "contrast",
            "autoaugment",
            "identity",
            "jitter:0.1",
            "dropout:0.25",
            "jitter:0.3+dropout:0.2",
        ] {
            let view: View = text.parse().unwrap();
            assert_eq!(view.to_string(), text);
            let json = serde_json::to_string(&view).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<View>(&json).unwrap(), view);
        }
    }

    #[test]
    fn unknown_views_are_refused_with_the_known_ones_named() {
        for text in [
            "",
            "Weak",
            "jitter",
            "jitter:",
            "jitter:x",
            "jitter:-1",
            "jitter:nan",
            "dropout:1",
            "dropout:0.1+dropout:0.1",
            "blur:1",
        ] {
            let message = text.parse::<View>().unwrap_err().to_string();
            assert!(message.contains("must be"), "{text}: {message}");
        }
    }
}
