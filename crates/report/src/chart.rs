//! Line charts as inline SVG.
//!
//! One path per series with a gap where a value is missing or not finite, and one invisible band per epoch whose
//! title tells all its numbers: a tooltip without a script.

use crate::number::place;
use crate::scale::{LARGEST, Scale, ticks};

/// Size of the drawing and its margins; text is in the same unit, so the drawing is kept small to stay readable on
/// a phone.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
/// More bands than pixels would help nobody.
const MOST_BANDS: usize = 300;

/// Values by epoch under a name; `None` is not measured.
pub(crate) struct Curve {
    pub name: String,
    pub values: Vec<Option<f64>>,
}

pub(crate) struct Chart {
    pub id: &'static str,
    pub title: &'static str,
    pub note: &'static str,
    pub description: String,
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub y_ticks: Vec<Tick>,
    pub x_ticks: Vec<Tick>,
    pub series: Vec<Series>,
    pub bands: Vec<Band>,
    pub empty: bool,
}

pub(crate) struct Tick {
    pub at: String,
    pub label: String,
}

pub(crate) struct Series {
    pub name: String,
    pub last: String,
    /// Which of the eight colours, and which dash for the series beyond eight.
    pub colour: usize,
    pub dash: usize,
    pub path: String,
    pub dots: Vec<(String, String)>,
}

pub(crate) struct Band {
    pub x: String,
    pub width: String,
    pub centre: String,
    pub text: String,
}

/// Draws the curves that were measured at least once; `None` if there is none.
pub(crate) fn line_chart(
    id: &'static str,
    title: &'static str,
    note: &'static str,
    scale: Scale,
    epochs: &[u64],
    curves: Vec<Curve>,
) -> Option<Chart> {
    let curves: Vec<Curve> = curves.into_iter().filter(|c| c.values.iter().any(Option::is_some)).collect();
    if curves.is_empty() {
        return None;
    }
    let show = |value: f64| scale.show(value);
    let drawable = |value: Option<f64>| value.filter(|v| v.abs() < LARGEST);
    let finite: Vec<f64> =
        curves.iter().flat_map(|c| c.values.iter().copied().filter_map(drawable)).collect();
    let ticks = ticks(scale, &finite);
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    let (first, last) = (epochs.iter().min().copied()?, epochs.iter().max().copied()?);
    let x = |epoch: u64| {
        let share = if last == first { 0.5 } else { (epoch - first) as f64 / (last - first) as f64 };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM);

    let series: Vec<Series> = curves
        .iter()
        .enumerate()
        .map(|(number, curve)| {
            let (path, dots) = trace(epochs, curve.values.iter().copied().map(drawable), x, y);
            let last = curve.values.iter().rev().find_map(|v| *v).map_or_else(String::new, show);
            Series { name: curve.name.clone(), last, colour: number % 8, dash: number / 8 % 4, path, dots }
        })
        .collect();
    let stride = epochs.len().div_ceil(MOST_BANDS).max(1);
    let band_width = (WIDTH - LEFT - RIGHT) / epochs.len().div_ceil(stride) as f64;
    let bands = (0..epochs.len()).step_by(stride).map(|at| {
        let numbers =
            curves.iter().filter_map(|c| Some(format!("\n{}: {}", c.name, show((*c.values.get(at)?)?))));
        Band {
            x: place(x(epochs[at]) - band_width / 2.0),
            width: place(band_width),
            centre: place(x(epochs[at])),
            text: format!("epoch {}{}", epochs[at], numbers.collect::<String>()),
        }
    });
    let ends: Vec<String> = series.iter().map(|s| format!("{} ends at {}", s.name, s.last)).collect();
    Some(Chart {
        id,
        title,
        note,
        description: format!("{title}, epochs {first} to {last}: {}", ends.join("; ")),
        width: WIDTH,
        height: HEIGHT,
        left: LEFT,
        right: WIDTH - RIGHT,
        top: TOP,
        bottom: HEIGHT - BOTTOM,
        y_ticks: ticks.iter().map(|&t| Tick { at: place(y(t)), label: scale.tick(t) }).collect(),
        x_ticks: x_ticks(first, last)
            .into_iter()
            .map(|e| Tick { at: place(x(e)), label: e.to_string() })
            .collect(),
        bands: bands.collect(),
        empty: finite.is_empty(),
        series,
    })
}

/// The path of one curve, and dots for values without neighbours, which a path would not show.
fn trace(
    epochs: &[u64],
    values: impl Iterator<Item = Option<f64>>,
    x: impl Fn(u64) -> f64,
    y: impl Fn(f64) -> f64,
) -> (String, Vec<(String, String)>) {
    let points: Vec<Option<(String, String)>> =
        epochs.iter().zip(values).map(|(&e, v)| Some((place(x(e)), place(y(v?))))).collect();
    let mut path = String::new();
    let mut dots = Vec::new();
    for run in points.split(Option::is_none) {
        for (place, (x, y)) in run.iter().flatten().enumerate() {
            path.push_str(if place == 0 { "M" } else { "L" });
            path.push_str(&format!("{x} {y}"));
        }
        if let [Some(alone)] = run {
            dots.push(alone.clone());
        }
    }
    (path, dots)
}

/// Whole epochs, at most eight of them, evenly spaced from the first one.
fn x_ticks(first: u64, last: u64) -> Vec<u64> {
    let rough = (last - first) / 7 + 1;
    let power = 10u64.saturating_pow(rough.ilog10());
    let steps = [1, 2, 5, 10].map(|n| power.saturating_mul(n));
    let step = steps.into_iter().find(|s| *s >= rough).unwrap_or(rough);
    (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, values: &[Option<f64>]) -> Option<Chart> {
        let epochs: Vec<u64> = (0..values.len() as u64).collect();
        let curve = Curve { name: "a".into(), values: values.to_vec() };
        line_chart("id", "Title", "", scale, &epochs, vec![curve])
    }

    fn points(chart: &Chart) -> usize {
        chart.series[0].path.matches(['M', 'L']).count()
    }

    #[test]
    fn there_are_as_many_points_and_bands_as_records() {
        let values: Vec<_> = (0..50).map(|e| Some(1.0 / (e as f64 + 1.0))).collect();
        let chart = chart(Scale::Plain, &values).unwrap();
        assert_eq!((points(&chart), chart.bands.len()), (50, 50));
    }

    #[test]
    fn values_that_are_not_finite_leave_a_gap_and_a_lone_value_is_a_dot() {
        let chart = chart(Scale::Plain, &[Some(1.0), Some(2.0), Some(f64::NAN), Some(1.5), None]).unwrap();
        assert_eq!(chart.series[0].path.matches('M').count(), 2);
        assert_eq!(chart.series[0].dots.len(), 1);
        assert!(chart.bands[2].text.contains("NaN"));
        assert!(!chart.series[0].path.contains("NaN"));
    }

    #[test]
    fn odd_values_draw_inside_the_frame() {
        let odd: [&[f64]; 8] = [
            &[0.0],
            &[1.0, 1.0],
            &[-5.0, -5.0],
            &[1e-300, 2e-300],
            &[9e99, -9e99],
            &[0.999_999, 1.0],
            &[f64::INFINITY, f64::MAX],
            &[1.0, 1.0 + f64::EPSILON],
        ];
        for values in odd {
            for scale in [Scale::FullPercent, Scale::Percent, Scale::Unit, Scale::Plain] {
                let chart = chart(scale, &values.iter().map(|v| Some(*v)).collect::<Vec<_>>()).unwrap();
                assert!((2..12).contains(&chart.y_ticks.len()), "{values:?} {scale:?}");
                for tick in &chart.y_ticks {
                    let at: f64 = tick.at.parse().unwrap();
                    assert!((TOP - 0.1..=HEIGHT - BOTTOM + 0.1).contains(&at), "{values:?} {scale:?} {at}");
                }
                assert!(!chart.series[0].path.contains("NaN") && !chart.series[0].path.contains("inf"));
            }
        }
    }

    #[test]
    fn what_was_never_measured_has_no_chart() {
        assert!(chart(Scale::Plain, &[None, None]).is_none());
        assert!(chart(Scale::Plain, &[]).is_none());
        assert!(chart(Scale::Plain, &[Some(f64::NAN)]).unwrap().empty);
    }

    #[test]
    fn epochs_are_labelled_by_round_steps() {
        assert_eq!(x_ticks(0, 0), [0]);
        assert_eq!(x_ticks(1, 9), [1, 3, 5, 7, 9]);
        assert_eq!(x_ticks(0, 299), [0, 50, 100, 150, 200, 250]);
        assert!(x_ticks(0, u64::MAX).len() < 10);
    }
}
