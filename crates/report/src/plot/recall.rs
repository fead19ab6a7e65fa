//! Precision by recall of rankings: among the first $k$ of a ranking, the share that is wrong (precision), and the share of
//! all wrong ones that is among them (recall).
//!
//! Equal scores form groups, as in the audit's average precision: the curve has a point after each group, and is level
//! from one to the next, so that the area below it is the average precision itself.

use super::frame::Frame;
use super::pen::Pen;
use super::{Caption, Key, Plot, Sign, series_class};
use crate::number::{percent, place};
use crate::scale::{Scale, drawable, ticks};

const HEIGHT: f64 = 225.0;
/// More points than pixels would help nobody.
const MOST_POINTS: usize = 400;
/// Recalls for which the table tells the precision.
const TOLD: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0];

/// Precision by recall of a few rankings.
#[derive(Debug, Clone)]
pub struct Recall {
    /// Title, note, axes.
    pub caption: Caption,
    /// The rankings.
    pub curves: Vec<RecallCurve>,
    /// Share of wrong ones among all: the precision of a random order.
    pub base: Option<f64>,
}

/// A ranking's curve.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallCurve {
    /// What ranks.
    pub name: String,
    /// Recall and precision, recall growing.
    pub points: Vec<(f64, f64)>,
    /// Average precision.
    pub average: f64,
}

impl RecallCurve {
    /// From scores (larger comes first; NaN is left out) and whether each is a hit; `None` without a hit.
    #[must_use]
    pub fn of(name: impl Into<String>, scores: &[f64], is_hit: &[bool]) -> Option<Self> {
        let mut order: Vec<(f64, bool)> =
            scores.iter().copied().zip(is_hit.iter().copied()).filter(|(score, _)| !score.is_nan()).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let all = order.iter().filter(|(_, hit)| *hit).count();
        if all == 0 {
            return None;
        }
        let (mut listed, mut found, mut average) = (0, 0, 0.0);
        let mut points = Vec::new();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let hits = group.iter().filter(|(_, hit)| *hit).count();
            listed += group.len();
            found += hits;
            let precision = found as f64 / listed as f64;
            average += hits as f64 / all as f64 * precision;
            if hits > 0 {
                points.push((found as f64 / all as f64, precision));
            }
        }
        Some(Self { name: name.into(), points, average })
    }

    /// Precision at every twentieth of recall: 5, 10, ... 100 %.
    #[must_use]
    pub fn twentieths(&self) -> Vec<f64> {
        (1..=20).filter_map(|part| self.at(f64::from(part) / 20.0)).collect()
    }

    /// Precision where at least so much is found.
    fn at(&self, recall: f64) -> Option<f64> {
        self.points.iter().find(|point| point.0 >= recall - 1e-9).map(|point| point.1)
    }
}

impl Recall {
    /// Draws the curves; `None` if none has a point.
    #[must_use]
    pub fn draw(&self) -> Option<Plot> {
        let Self { caption, curves, base } = self;
        let curves: Vec<&RecallCurve> = curves.iter().filter(|curve| !curve.points.is_empty()).collect();
        if curves.is_empty() {
            return None;
        }
        let ticks = ticks(Scale::FullPercent, &[]);
        let frame = Frame::new(HEIGHT, 6.0, &ticks);
        let x = |recall: f64| frame.left + recall.clamp(0.0, 1.0) * frame.width();
        let mut pen = Pen::default();
        frame.draw_values(&mut pen, caption, Scale::FullPercent, &ticks);
        let places: Vec<(f64, String)> =
            ticks.iter().map(|tick| (x(*tick), Scale::FullPercent.tick(*tick))).collect();
        let height = frame.draw_places(&mut pen, caption, &places);
        let mut keys = Vec::new();
        for (number, curve) in curves.iter().enumerate() {
            let title = format!("{}: average precision {}", curve.name, percent(curve.average, 1));
            pen.group(&series_class(number), &title, |pen| {
                pen.path("", &steps(&curve.points, x, |p| frame.y(p)))
            });
            let note = format!("average {}", percent(curve.average, 1));
            keys.push(Key { name: curve.name.clone(), note, number, sign: Sign::Line });
        }
        if let Some(base) = base.and_then(drawable) {
            let y = frame.y(base);
            let title = format!("random order: {}", percent(base, 1));
            pen.group("series s7", &title, |pen| {
                pen.line("rule", (frame.left, y), (frame.right, y));
            });
            keys.push(Key {
                name: "random order".into(),
                note: percent(base, 1),
                number: 7,
                sign: Sign::Rule,
            });
        }
        let header =
            std::iter::once("recall".to_owned()).chain(curves.iter().map(|curve| curve.name.clone()));
        let row = |recall: f64| {
            let cells =
                curves.iter().map(|curve| curve.at(recall).map_or("–".to_owned(), |p| percent(p, 1)));
            std::iter::once(percent(recall, 0)).chain(cells).collect()
        };
        let averages = curves.iter().map(|curve| percent(curve.average, 2));
        let averages = std::iter::once("average precision".to_owned()).chain(averages).collect();
        let told: Vec<String> =
            curves.iter().map(|curve| format!("{} {}", curve.name, percent(curve.average, 1))).collect();
        Some(Plot {
            description: format!("{}; average precision: {}", caption.title, told.join("; ")),
            header: header.collect(),
            rows: TOLD.into_iter().map(row).chain([averages]).collect(),
            caption: caption.clone(),
            height,
            body: pen.finish(),
            keys,
        })
    }
}

/// A path that is level from each point back to the one before, thinned out.
fn steps(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let stride = points.len().div_ceil(MOST_POINTS).max(1);
    let mut path = String::new();
    let mut before = 0.0;
    for (at, &(recall, precision)) in points.iter().enumerate() {
        let (Some(recall), Some(precision)) = (drawable(recall), drawable(precision)) else { continue };
        if at % stride == 0 || at + 1 == points.len() {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let level = place(y(precision));
            path.push_str(&format!("{letter}{} {level}L{} {level}", place(x(before)), place(x(recall))));
            before = recall;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, ODD, sound};
    use super::*;

    fn plot(curves: Vec<RecallCurve>) -> Option<Plot> {
        Recall { caption: Caption::new("Audit", "", "recall", "precision"), curves, base: Some(0.4) }.draw()
    }

    #[test]
    fn precision_is_told_at_every_twentieth_of_recall() {
        // Right, wrong, wrong, right: hits are second and third.
        let curve = RecallCurve::of("x", &[4.0, 3.0, 2.0, 1.0], &[false, true, true, false]).unwrap();
        let told = curve.twentieths();
        assert_eq!(told.len(), 20);
        assert_eq!((told[0], told[9], told[10], told[19]), (0.5, 0.5, 2.0 / 3.0, 2.0 / 3.0));
    }

    #[test]
    fn a_perfect_ranking_keeps_full_precision() {
        let curve = RecallCurve::of("a", &[4.0, 3.0, 2.0, 1.0], &[true, true, false, false]).unwrap();
        assert_eq!((curve.average, curve.points), (1.0, vec![(0.5, 1.0), (1.0, 1.0)]));
    }

    #[test]
    fn equal_scores_are_one_step_and_average_precision_is_the_area() {
        let curve = RecallCurve::of("a", &[3.0, 2.0, 2.0, 1.0], &[false, true, true, true]).unwrap();
        assert_eq!(curve.points, [(2.0 / 3.0, 2.0 / 3.0), (1.0, 0.75)]);
        assert!((curve.average - (2.0 / 3.0 * 2.0 / 3.0 + 1.0 / 3.0 * 0.75)).abs() < 1e-12);
        assert!(RecallCurve::of("a", &[1.0], &[false]).is_none());
        assert!(RecallCurve::of("a", &[f64::NAN], &[true]).is_none());
    }

    #[test]
    fn odd_curves_give_a_sound_drawing() {
        let odd = ODD.iter().map(|v| (*v, *v)).collect();
        let curve = RecallCurve { name: HOSTILE.into(), points: odd, average: f64::NAN };
        sound(&plot(vec![curve]).unwrap());
        let scores: Vec<f64> = (0..5000).map(f64::from).collect();
        let hits: Vec<bool> = (0..5000).map(|n| n % 3 == 0).collect();
        let svg = sound(&plot(vec![RecallCurve::of(HOSTILE, &scores, &hits).unwrap()]).unwrap());
        assert!(svg.len() < 40_000);
        assert!(plot(vec![]).is_none());
    }
}
