//! What values are, how they are written, and round places to put them along an axis.

use crate::number::{percent, plain};

/// Beyond this a value is treated as not finite, since differences would overflow.
pub(crate) const LARGEST: f64 = 1e100;

/// What the values of a plot are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Fractions on an axis from 0 to 100 %.
    FullPercent,
    /// Fractions on an axis that fits them.
    Percent,
    /// Differences of fractions, as signed percentage points.
    Points,
    /// Numbers on an axis from 0 to 1.
    Unit,
    /// Numbers without unit.
    Plain,
}

impl Scale {
    fn has_percent(self) -> bool {
        matches!(self, Self::FullPercent | Self::Percent)
    }

    /// A value beside a drawing.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::FullPercent | Self::Percent => percent(value, 1),
            Self::Points if value.is_finite() => format!("{:+.2}", value * 100.0),
            _ => plain(value),
        }
    }

    /// A value inside a drawing, where room is short and the axis tells the unit.
    pub(crate) fn brief(self, value: f64) -> String {
        match self {
            Self::FullPercent | Self::Percent if value.is_finite() => format!("{:.1}", value * 100.0),
            Self::Unit if value.is_finite() => format!("{value:.2}"),
            Self::Plain if value.is_finite() && (0.01..1e3).contains(&value.abs()) => {
                let digits = if value.abs() < 10.0 { 2 } else { 1 };
                format!("{value:.digits$}")
            }
            _ => self.show(value),
        }
    }

    /// A value in a table: more digits than a drawing can show.
    pub(crate) fn exact(self, value: f64) -> String {
        if self.has_percent() { percent(value, 2) } else { self.show(value) }
    }

    /// How far values spread, in a table.
    pub(crate) fn width(self, value: f64) -> String {
        match self {
            Self::FullPercent | Self::Percent | Self::Points if value.is_finite() => {
                format!("{:.2}", value * 100.0)
            }
            _ => plain(value),
        }
    }

    /// The words of a tick.
    pub(crate) fn tick(self, value: f64) -> String {
        let hundredfold = || plain((value * 1000.0).round() / 10.0);
        match self {
            Self::FullPercent | Self::Percent => format!("{} %", hundredfold()),
            Self::Points if value > 0.0 => format!("+{}", plain(value * 100.0)),
            Self::Points => plain(value * 100.0),
            Self::Unit | Self::Plain => plain(value),
        }
    }
}

/// The value if it can be drawn.
pub(crate) fn drawable(value: f64) -> Option<f64> {
    (value.abs() < LARGEST).then_some(value)
}

/// At least two values, evenly spaced and round, that enclose all values.
pub(crate) fn ticks(scale: Scale, finite: &[f64]) -> Vec<f64> {
    if matches!(scale, Scale::FullPercent | Scale::Unit) || finite.is_empty() {
        return match scale {
            Scale::Points => vec![-0.01, 0.0, 0.01],
            _ => vec![0.0, 0.25, 0.5, 0.75, 1.0],
        };
    }
    let mut low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let mut high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A loss is read against zero.
    if scale == Scale::Plain && low > 0.0 {
        low = 0.0;
    }
    // So is a difference, from either side.
    if scale == Scale::Points {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if high - low <= 1e-9 * high.abs().max(low.abs()) || high - low < 1e-12 {
        let room = (high.abs() * 0.1).max(0.01);
        (low, high) = (low - room, high + room);
    }
    if scale == Scale::Percent {
        low = low.clamp(0.0, 0.99);
        high = high.min(1.0).max(low + 0.01);
    }
    round_steps(low, high, 4.0)
}

/// Round values at even steps from below `low` to above `high`, about `pieces` steps.
pub(crate) fn round_steps(low: f64, high: f64, pieces: f64) -> Vec<f64> {
    let rough = (high - low) / pieces;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let from = (low / step + 1e-9).floor();
    let upto = (high / step - 1e-9).ceil().max(from + 1.0);
    (0..=(upto - from) as usize).map(|n| (from + n as f64) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_unit() {
        assert_eq!(Scale::Percent.show(0.8612), "86.1 %");
        assert_eq!(Scale::Percent.brief(0.8612), "86.1");
        assert_eq!(Scale::Percent.exact(0.8612), "86.12 %");
        assert_eq!(Scale::Points.show(0.0125), "+1.25");
        assert_eq!(Scale::Points.tick(-0.005), "-0.5");
        assert_eq!(Scale::Unit.brief(0.5), "0.50");
        assert_eq!(Scale::Plain.brief(12.34), "12.3");
        assert_eq!(Scale::Points.show(f64::NAN), "NaN");
    }

    #[test]
    fn differences_are_seen_beside_zero() {
        let ticks = ticks(Scale::Points, &[0.011, 0.013]);
        assert!(ticks.contains(&0.0) && ticks[ticks.len() - 1] >= 0.013, "{ticks:?}");
        assert!(super::ticks(Scale::Points, &[]).contains(&0.0));
    }
}
