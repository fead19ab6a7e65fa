//! Kinds of noise for which published settings differ.

use negscale_data::NoiseSpec;
use negscale_data::known::HumanLabels;

/// The noise that was added to the data, as a method may know it. Rates are the nominal ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnownNoise {
    /// Labels from a file, or labels that no longer have the noise that was added to them: nothing was published for these.
    Unknown,
    /// None was added; the labels are the data's own.
    Nothing,
    /// To any class alike, by whichever convention.
    Symmetric(f64),
    /// To one other class, by whichever map.
    Asymmetric(f64),
    /// By the looks of the sample.
    Instance(f64),
    /// Labels that people gave.
    Human(HumanLabels),
}

impl KnownNoise {
    /// Share of labels that were to be changed; 0 where it is not known.
    pub fn rate(self) -> f64 {
        match self {
            Self::Unknown | Self::Nothing => 0.0,
            Self::Symmetric(rate) | Self::Asymmetric(rate) | Self::Instance(rate) => rate,
            Self::Human(labels) => labels.published_rate(),
        }
    }

    /// Whether it is asymmetric.
    pub fn is_asymmetric(self) -> bool {
        matches!(self, Self::Asymmetric(_))
    }
}

impl From<&NoiseSpec> for KnownNoise {
    fn from(spec: &NoiseSpec) -> Self {
        match spec {
            NoiseSpec::None => Self::Nothing,
            NoiseSpec::SymIncl(rate) | NoiseSpec::SymExcl(rate) | NoiseSpec::SymExact(rate) => {
                Self::Symmetric(rate.get())
            }
            NoiseSpec::Asym(rate)
            | NoiseSpec::AsymMap { rate, .. }
            | NoiseSpec::AsymBlock(rate)
            | NoiseSpec::AsymSuper(rate)
            | NoiseSpec::PairFlip(rate) => Self::Asymmetric(rate.get()),
            NoiseSpec::Ins { rate, .. } => Self::Instance(rate.get()),
            NoiseSpec::CifarN(labels) => Self::Human(*labels),
            NoiseSpec::File(_) => Self::Unknown,
        }
    }
}
