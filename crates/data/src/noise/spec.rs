//! Which noise: the text that a person writes, checked once.
//!
//! `kind`, `kind:rate` or `kind:rate:option=value:option=value`. What is read prints back in its full form, so that `sym:0.5`
//! is stored as `sym-incl:0.5` and nobody has to know the default later.

use crate::known::HumanLabels;
use crate::known::cifar_n::NAMES;
use crate::{Error, Result};
use negscale_records::nearest;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

/// A share of samples, in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// The rate, if it is one.
    pub fn new(rate: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&rate) {
            return Ok(Self(rate + 0.0)); // -0 becomes 0
        }
        let requirement = "must lie between 0 and 1; 40 % is written 0.4".into();
        Err(Error::Setting { what: "noise rate", value: rate.to_string(), requirement })
    }

    /// As a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// What instance-dependent noise sees of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoiseInput {
    /// Pixels 0 to 255, or the feature vector as it is.
    #[default]
    Raw,
    /// Pixels from 0 to 1, or every feature scaled from 0 (its least value) to 1 (its greatest).
    Unit,
    /// Every channel, or every feature, with its mean taken away and divided by its standard deviation.
    Normalised,
}

/// The random matrices of instance-dependent noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoiseMatrices {
    /// One for each true class.
    #[default]
    PerClass,
    /// One for all classes.
    Shared,
}

/// A noise model with its settings. Text forms: `none`, `sym:0.5` (short for `sym-incl:0.5`), `sym-excl:0.5`,
/// `sym-exact:0.5`, `asym:0.4` (by the classes), `asym-map:0.4`, `asym-map:0.4:map=9to1+2to0` (class numbers),
/// `asym-block:0.4`, `asym-super:0.4`, `pairflip:0.4`, `ins:0.4`, `ins:0.4:input=normalised:matrix=shared`,
/// `cifarn:worse`, `file:PATH`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NoiseSpec {
    /// Labels stay.
    None,
    /// Symmetric, new label uniform over all classes.
    SymIncl(Rate),
    /// Symmetric, new label uniform over the other classes, each sample by a throw of its own.
    SymExcl(Rate),
    /// Symmetric, new label uniform over the other classes, exact count in every class.
    SymExact(Rate),
    /// Asymmetric as is usual for the classes: `AsymMap` for CIFAR-10's, `AsymBlock` for 100.
    Asym(Rate),
    /// Asymmetric by a class map, on a share of all samples.
    AsymMap {
        /// Share of samples the map is applied to.
        rate: Rate,
        /// Pairs (from, to); CIFAR-10's map when absent.
        map: Option<Vec<(u32, u32)>>,
    },
    /// Next class in a block of five consecutive classes.
    AsymBlock(Rate),
    /// Next class in the superclass.
    AsymSuper(Rate),
    /// Next class.
    PairFlip(Rate),
    /// Instance-dependent.
    Ins {
        /// Mean of the flip probabilities before truncation.
        rate: Rate,
        /// What it sees.
        input: NoiseInput,
        /// Its matrices.
        matrices: NoiseMatrices,
    },
    /// Labels given by people.
    CifarN(HumanLabels),
    /// Labels in a file: a noise file, or a plain list.
    File(PathBuf),
}

const KINDS: [&str; 13] = [
    "none",
    "sym",
    "sym-incl",
    "sym-excl",
    "sym-exact",
    "asym",
    "asym-map",
    "asym-block",
    "asym-super",
    "pairflip",
    "ins",
    "cifarn",
    "file",
];
const INPUTS: [(&str, NoiseInput); 3] =
    [("raw", NoiseInput::Raw), ("unit", NoiseInput::Unit), ("normalised", NoiseInput::Normalised)];
const MATRICES: [(&str, NoiseMatrices); 2] =
    [("per-class", NoiseMatrices::PerClass), ("shared", NoiseMatrices::Shared)];

impl NoiseSpec {
    /// The rate asked for, where the kind has one.
    pub fn rate(&self) -> Option<Rate> {
        match *self {
            Self::None | Self::CifarN(_) | Self::File(_) => None,
            Self::SymIncl(rate) | Self::SymExcl(rate) | Self::SymExact(rate) => Some(rate),
            Self::Asym(rate) | Self::AsymBlock(rate) | Self::AsymSuper(rate) | Self::PairFlip(rate) => {
                Some(rate)
            }
            Self::AsymMap { rate, .. } | Self::Ins { rate, .. } => Some(rate),
        }
    }

    /// Whether a seed decides the labels.
    pub fn is_drawn(&self) -> bool {
        self.rate().is_some()
    }
}

impl FromStr for NoiseSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        match (kind, rest) {
            ("none", None) => return Ok(Self::None),
            ("none", Some(_)) => return Err(wrong(text, "`none` takes no rate and no option")),
            ("cifarn", rest) => {
                return named(text, "labels", rest.unwrap_or(""), &NAMES).map(Self::CifarN);
            }
            ("file", None | Some("")) => return Err(wrong(text, "needs a path, as in file:labels.txt")),
            ("file", Some(path)) => return Ok(Self::File(path.into())),
            (kind, _) if !KINDS.contains(&kind) => return Err(unknown(text, "kind", kind, KINDS)),
            _ => {}
        }
        let mut parts = rest.unwrap_or("").split(':');
        let rate = read_rate(text, kind, parts.next().unwrap_or(""))?;
        let mut options = Options::read(text, parts)?;
        let spec = match kind {
            "sym-excl" => Self::SymExcl(rate),
            "sym-exact" => Self::SymExact(rate),
            "asym" => Self::Asym(rate),
            "asym-map" => Self::AsymMap {
                rate,
                map: options.take("map").map(|value| read_map(text, value)).transpose()?,
            },
            "asym-block" => Self::AsymBlock(rate),
            "asym-super" => Self::AsymSuper(rate),
            "pairflip" => Self::PairFlip(rate),
            "ins" => Self::Ins {
                rate,
                input: options.choose("input", &INPUTS)?,
                matrices: options.choose("matrix", &MATRICES)?,
            },
            _ => Self::SymIncl(rate), // `sym` and `sym-incl`, the only kinds left
        };
        options.finish(kind)?;
        Ok(spec)
    }
}

impl Display for NoiseSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::SymIncl(Rate(r)) => write!(f, "sym-incl:{r}"),
            Self::SymExcl(Rate(r)) => write!(f, "sym-excl:{r}"),
            Self::SymExact(Rate(r)) => write!(f, "sym-exact:{r}"),
            Self::Asym(Rate(r)) => write!(f, "asym:{r}"),
            Self::AsymMap { rate: Rate(r), map } => {
                write!(f, "asym-map:{r}")?;
                for (n, (from, to)) in map.iter().flatten().enumerate() {
                    write!(f, "{}{from}to{to}", if n == 0 { ":map=" } else { "+" })?;
                }
                Ok(())
            }
            Self::AsymBlock(Rate(r)) => write!(f, "asym-block:{r}"),
            Self::AsymSuper(Rate(r)) => write!(f, "asym-super:{r}"),
            Self::PairFlip(Rate(r)) => write!(f, "pairflip:{r}"),
            Self::Ins { rate: Rate(r), input, matrices } => {
                let (input, matrices) = (name_of(input, &INPUTS), name_of(matrices, &MATRICES));
                write!(f, "ins:{r}:input={input}:matrix={matrices}")
            }
            Self::CifarN(which) => write!(f, "cifarn:{}", which.name()),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl TryFrom<String> for NoiseSpec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<NoiseSpec> for String {
    fn from(spec: NoiseSpec) -> Self {
        spec.to_string()
    }
}

/// The options that have not been taken yet.
struct Options<'a> {
    text: &'a str,
    left: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    fn read(text: &'a str, parts: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut left: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(wrong(text, format!("`{part}` is not an option: write option=value")));
            };
            if left.iter().any(|(other, _)| *other == key) {
                return Err(wrong(text, format!("option `{key}` is given twice")));
            }
            left.push((key, value));
        }
        Ok(Self { text, left })
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.left.iter().position(|(other, _)| *other == key)?;
        Some(self.left.remove(at).1)
    }

    fn choose<T: Copy + Default>(&mut self, key: &str, known: &[(&str, T)]) -> Result<T> {
        self.take(key).map_or(Ok(T::default()), |value| named(self.text, key, value, known))
    }

    fn finish(&self, kind: &str) -> Result<()> {
        let Some((key, _)) = self.left.first() else { return Ok(()) };
        let has = match kind {
            "ins" => "has the options `input` (raw, unit, normalised) and `matrix` (per-class, shared)",
            "asym-map" => "has the option `map`, as in map=9to1+2to0",
            _ => "has no options",
        };
        Err(wrong(self.text, format!("unknown option `{key}`: `{kind}` {has}")))
    }
}

fn read_rate(text: &str, kind: &str, rate: &str) -> Result<Rate> {
    if rate.is_empty() {
        return Err(wrong(text, format!("needs a rate between 0 and 1, as in {kind}:0.4")));
    }
    let number: Option<f64> = rate.parse().ok();
    number.and_then(|number| Rate::new(number).ok()).ok_or_else(|| {
        wrong(text, format!("rate `{rate}` must be a number between 0 and 1; 40 % is written 0.4"))
    })
}

fn read_map(text: &str, value: &str) -> Result<Vec<(u32, u32)>> {
    let mut map: Vec<(u32, u32)> = Vec::new();
    for pair in value.split('+') {
        let numbers = pair.split_once("to").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some((from, to)) = numbers else {
            return Err(wrong(text, format!("`{pair}` is not a pair of class numbers: write it as 9to1")));
        };
        if from == to || map.iter().any(|&(other, _)| other == from) {
            let problem = format!("`{pair}`: a class changes to one other class, and is named once");
            return Err(wrong(text, problem));
        }
        map.push((from, to));
    }
    Ok(map)
}

fn named<T: Copy>(text: &str, what: &str, name: &str, known: &[(&str, T)]) -> Result<T> {
    let found = known.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    found.ok_or_else(|| unknown(text, what, name, known.iter().map(|(name, _)| *name)))
}

fn name_of<T: PartialEq>(value: &T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}

fn unknown<'a>(text: &str, what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = nearest(name, known.iter().copied());
    let nearest: String = nearest.first().map(|name| format!("nearest is `{name}`; ")).into_iter().collect();
    wrong(text, format!("unknown {what} `{name}`; {nearest}there are {}", known.join(", ")))
}

fn wrong(text: &str, requirement: impl Into<String>) -> Error {
    Error::Setting { what: "noise", value: text.into(), requirement: requirement.into() }
}
