//! Where the points of curves are along their axis.

use crate::number::plain;
use crate::scale::{drawable, round_steps};

/// Places along the axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// Numbers, at their distance.
    Numbers(Vec<f64>),
    /// Numbers above zero, at the distance of their logarithms, each written out.
    Powers(Vec<f64>),
    /// Names, evenly spaced.
    Categories(Vec<String>),
}

impl Positions {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) | Self::Powers(numbers) => numbers.len(),
            Self::Categories(names) => names.len(),
        }
    }

    pub(super) fn name(&self, at: usize) -> String {
        match self {
            Self::Numbers(numbers) | Self::Powers(numbers) => plain(numbers[at]),
            Self::Categories(names) => names[at].clone(),
        }
    }

    /// From the left end (0) to the right (1), nothing where a number cannot be placed.
    pub(super) fn shares(&self) -> Vec<Option<f64>> {
        let places: Vec<Option<f64>> = match self {
            Self::Numbers(numbers) => numbers.iter().map(|n| drawable(*n)).collect(),
            Self::Powers(numbers) => {
                numbers.iter().map(|n| drawable(*n).filter(|n| *n > 0.0).map(f64::log10)).collect()
            }
            Self::Categories(names) => {
                return (0..names.len()).map(|at| Some((at as f64 + 0.5) / names.len() as f64)).collect();
            }
        };
        let low = places.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let high = places.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let share = |place: f64| if high > low { (place - low) / (high - low) } else { 0.5 };
        places.into_iter().map(|place| place.map(share)).collect()
    }

    /// Shares and words of the ticks.
    pub(super) fn ticks(&self, shares: &[Option<f64>]) -> Vec<(f64, String)> {
        match self {
            Self::Numbers(numbers) => {
                let finite: Vec<f64> = numbers.iter().filter_map(|n| drawable(*n)).collect();
                let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
                let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if high <= low {
                    return finite.first().map(|only| (0.5, plain(*only))).into_iter().collect();
                }
                let steps = round_steps(low, high, 5.0).into_iter();
                let room = (high - low) * 1e-6;
                // Between two epochs there is nothing to point at.
                let is_whole = finite.iter().all(|number| number.fract() == 0.0);
                let inside = steps
                    .filter(|step| (low - room..=high + room).contains(step))
                    .filter(|step| !is_whole || (step - step.round()).abs() < 1e-6);
                inside.map(|step| ((step - low) / (high - low), plain(step))).collect()
            }
            _ => (0..self.len()).filter_map(|at| Some((shares[at]?, self.name(at)))).collect(),
        }
    }
}
