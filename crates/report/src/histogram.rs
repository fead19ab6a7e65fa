//! How well a clean probability or a score tells right labels from wrong ones, as a histogram.
//!
//! Right labels stand above the axis, wrong ones hang below, each as shares of its own group, so that a few wrong
//! labels among many right ones are still seen.

use crate::number::{count, mean, percent, place, plain};

const BINS: usize = 20;
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;

/// A number from 0 to 1 for every label: clean probabilities on the page of a run, scores on that of an audit. Values outside are
/// counted at the nearer end, NaN nowhere.
#[derive(Debug, Clone)]
pub enum Separation {
    /// The truth is known.
    Known {
        /// Those of samples whose label is right.
        right: Vec<f32>,
        /// Those of samples whose label is wrong.
        wrong: Vec<f32>,
    },
    /// The truth is not known: all samples together.
    Unknown(Vec<f32>),
}

/// What is counted.
pub(crate) struct Quantity {
    id: &'static str,
    title: &'static str,
    name: &'static str,
    /// What to expect where the truth is not known.
    expected: &'static str,
}

/// The probability that a label is right.
pub(crate) const CLEAN: Quantity = Quantity {
    id: "separation",
    title: "Clean probability",
    name: "clean probability",
    expected: "Share of samples. Wrong labels should be on the left.",
};
/// The probability that a label is wrong.
pub(crate) const SCORE: Quantity = Quantity {
    id: "scores",
    title: "Scores",
    name: "score",
    expected: "Share of labels by the probability that they are wrong. Two heaps far apart mean that it is clear which are.",
};

pub(crate) struct Histogram {
    pub id: &'static str,
    pub title: &'static str,
    pub note: &'static str,
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub bottom: f64,
    pub axis: String,
    pub bars: Vec<Bar>,
    pub y_ticks: Vec<(String, String)>,
    pub x_ticks: Vec<(String, String)>,
    pub groups: Vec<Group>,
    pub description: String,
}

pub(crate) struct Bar {
    pub x: String,
    pub y: String,
    pub width: String,
    pub height: String,
    pub colour: usize,
    pub text: String,
}

pub(crate) struct Group {
    pub name: &'static str,
    pub colour: usize,
    pub note: String,
}

/// Draws the histogram; `None` if there is no number at all.
pub(crate) fn draw(separation: &Separation, quantity: &Quantity) -> Option<Histogram> {
    let groups: Vec<(&'static str, &[f32])> = match separation {
        Separation::Known { right, wrong } => vec![("right labels", right), ("wrong labels", wrong)],
        Separation::Unknown(all) => vec![("all labels", all)],
    };
    let bins: Vec<[u64; BINS]> = groups.iter().map(|g| fill(g.1)).collect();
    let totals: Vec<u64> = bins.iter().map(|b| b.iter().sum()).collect();
    if totals.iter().all(|t| *t == 0) {
        return None;
    }
    let share = |group: usize, bin: usize| bins[group][bin] as f64 / (totals[group] as f64).max(1.0);
    let largest = (0..groups.len()).flat_map(|g| (0..BINS).map(move |b| (g, b)));
    let largest = largest.map(|(g, b)| share(g, b)).fold(0.0, f64::max);
    let top = (largest * 10.0).ceil() / 10.0;
    let mirrored = groups.len() == 2;
    let room = if mirrored { (HEIGHT - TOP - BOTTOM) / 2.0 } else { HEIGHT - TOP - BOTTOM };
    let axis = TOP + room;
    let step = (WIDTH - LEFT - RIGHT) / BINS as f64;

    let mut bars = Vec::new();
    for group in 0..groups.len() {
        for bin in (0..BINS).filter(|&b| bins[group][b] > 0) {
            // What is there is seen, however little.
            let height = (share(group, bin) / top * room).max(1.0);
            bars.push(Bar {
                x: place(LEFT + bin as f64 * step + 1.0),
                y: place(if group == 0 { axis - height } else { axis }),
                width: place(step - 2.0),
                height: place(height),
                colour: group,
                text: format!(
                    "{} {} to {}: {} of {} {} ({})",
                    quantity.name,
                    plain(bin as f64 / BINS as f64),
                    plain((bin + 1) as f64 / BINS as f64),
                    count(bins[group][bin]),
                    count(totals[group]),
                    groups[group].0,
                    percent(share(group, bin), 1)
                ),
            });
        }
    }
    let mut y_ticks = vec![(place(axis), "0".to_owned()), (place(TOP), percent(top, 0))];
    if mirrored {
        y_ticks.push((place(axis + room), percent(top, 0)));
    }
    let legend: Vec<Group> = groups
        .iter()
        .enumerate()
        .map(|(colour, (name, values))| {
            let finite: Vec<f64> = values.iter().filter(|v| !v.is_nan()).map(|v| f64::from(*v)).collect();
            let average =
                if finite.is_empty() { String::new() } else { format!(", mean {:.3}", mean(&finite)) };
            Group { name, colour, note: format!("{}{average}", count(totals[colour])) }
        })
        .collect();
    let description: Vec<String> = legend.iter().map(|g| format!("{}: {}", g.name, g.note)).collect();
    Some(Histogram {
        id: quantity.id,
        title: quantity.title,
        note: if mirrored {
            "Right labels above the axis, wrong ones below, each as a share of its group. The further apart, the better."
        } else {
            quantity.expected
        },
        width: WIDTH,
        height: HEIGHT,
        left: LEFT,
        right: WIDTH - RIGHT,
        bottom: HEIGHT - BOTTOM,
        axis: place(axis),
        bars,
        y_ticks,
        x_ticks: (0..=4)
            .map(|n| (place(LEFT + f64::from(n) / 4.0 * (WIDTH - LEFT - RIGHT)), plain(f64::from(n) / 4.0)))
            .collect(),
        description: format!("Histogram: {}. {}", quantity.title, description.join("; ")),
        groups: legend,
    })
}

fn fill(values: &[f32]) -> [u64; BINS] {
    let mut bins = [0; BINS];
    for value in values.iter().filter(|v| !v.is_nan()) {
        // The cast saturates, so that infinities land at the ends as well.
        bins[((value.clamp(0.0, 1.0) * BINS as f32) as usize).min(BINS - 1)] += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_falls_into_one_bin_and_nan_into_none() {
        let bins = fill(&[0.0, 1.0, 0.5, -3.0, 7.0, f32::INFINITY, f32::NAN]);
        assert_eq!((bins[0], bins[10], bins[19]), (2, 1, 3));
        assert_eq!(bins.iter().sum::<u64>(), 6);
    }

    #[test]
    fn right_labels_stand_above_the_axis_and_wrong_ones_below() {
        let drawn = draw(&Separation::Known { right: vec![0.99; 9], wrong: vec![0.01] }, &CLEAN).unwrap();
        let axis: f64 = drawn.axis.parse().unwrap();
        let y = |colour| drawn.bars.iter().find(|b| b.colour == colour).unwrap().y.parse::<f64>().unwrap();
        assert!(y(0) < axis && y(1) == axis);
        assert!(drawn.bars[0].text.contains("9 of 9 right labels (100.0 %)"));
    }

    #[test]
    fn no_numbers_give_no_histogram() {
        assert!(draw(&Separation::Unknown(vec![f32::NAN]), &CLEAN).is_none());
        assert!(draw(&Separation::Known { right: vec![], wrong: vec![] }, &CLEAN).is_none());
        assert!(draw(&Separation::Known { right: vec![0.3], wrong: vec![] }, &CLEAN).is_some());
    }
}
