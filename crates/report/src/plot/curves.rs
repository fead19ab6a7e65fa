//! Values along an axis of numbers or of categories, each series with the band it spreads over.
//!
//! A series of few points has a mark at each, one of many at some; names stand at the ends of the curves where they are short, and always in
//! the legend.

use super::frame::Frame;
use super::pen::{LETTER, LINE, Pen, letters};
use super::positions::Positions;
use super::{Caption, Key, Plot, Point, Sign, series_class, text_of};
use crate::number::place;
use crate::scale::{Scale, ticks};

const HEIGHT: f64 = 205.0;
/// Names up to this many letters, and series up to this many, are written at the ends of their curves.
const SHORT: usize = 12;
const FEW_SERIES: usize = 5;
/// Up to this many points each has a mark.
const FEW_POINTS: usize = 20;
/// Else about this many have.
const MARKS: usize = 6;
/// More places to point at than pixels would help nobody.
const MOST_PLACES: usize = 300;

/// Values along an axis.
#[derive(Debug, Clone)]
pub struct Curves {
    /// Title, note, axes.
    pub caption: Caption,
    /// What the values are.
    pub scale: Scale,
    /// Where they are.
    pub positions: Positions,
    /// The values.
    pub series: Vec<Series>,
}

/// The values of one series, by position.
#[derive(Debug, Clone)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// One for each position; `None` is not measured.
    pub points: Vec<Option<Point>>,
}

impl Curves {
    /// Draws what was measured; `None` if nothing was.
    #[must_use]
    pub fn draw(&self) -> Option<Plot> {
        let Self { caption, scale, positions, series } = self;
        let (scale, count) = (*scale, positions.len());
        let series: Vec<&Series> =
            series.iter().filter(|s| s.points.iter().take(count).any(Option::is_some)).collect();
        if series.is_empty() {
            return None;
        }
        let drawn: Vec<Vec<Option<Point>>> = series
            .iter()
            .map(|s| (0..count).map(|at| s.points.get(at).and_then(|p| (*p)?.drawn())).collect())
            .collect();
        let finite: Vec<f64> = drawn.iter().flatten().flatten().flat_map(|p| [p.low, p.high]).collect();
        let ticks = ticks(scale, &finite);
        let longest = series.iter().map(|s| letters(&s.name)).max().unwrap_or(0);
        let has_ends = (2..=FEW_SERIES).contains(&series.len()) && longest <= SHORT;
        let spare = if has_ends { longest as f64 * LETTER + 8.0 } else { 6.0 };
        let frame = Frame::new(HEIGHT, spare, &ticks);
        let shares = positions.shares();
        let x = |at: usize| shares[at].map(|share| frame.left + share * frame.width());

        let mut pen = Pen::default();
        frame.draw_values(&mut pen, caption, scale, &ticks);
        let height = match positions {
            Positions::Categories(names) => frame.draw_categories(&mut pen, caption, names),
            _ => {
                let places = positions.ticks(&shares).into_iter();
                let places: Vec<(f64, String)> =
                    places.map(|(share, words)| (frame.left + share * frame.width(), words)).collect();
                frame.draw_places(&mut pen, caption, &apart(places))
            }
        };
        if finite.is_empty() {
            frame.draw_nothing(&mut pen);
        }
        let corners: Vec<Vec<Option<Corner>>> = drawn
            .iter()
            .map(|points| {
                (0..count).map(|at| Some(Corner::of(x(at)?, points[at].as_ref()?, &frame))).collect()
            })
            .collect();
        // Bands lie below all lines.
        for (number, corners) in corners.iter().enumerate() {
            pen.group(&series_class(number), "", |pen| pen.path("band", &band(corners)));
        }
        for (number, corners) in corners.iter().enumerate() {
            pen.group(&series_class(number), "", |pen| {
                pen.path("", &trace(corners));
                let lone = |at: usize| {
                    let beside =
                        |at: Option<usize>| at.and_then(|at| corners.get(at)).is_some_and(Option::is_some);
                    !beside(at.checked_sub(1)) && !beside(Some(at + 1))
                };
                for (at, corner) in corners.iter().enumerate().filter_map(|(at, c)| Some((at, c.as_ref()?))) {
                    // Where points are many, some have a mark, each series at other places.
                    let stride = count.div_ceil(MARKS).max(1);
                    let is_marked = (at + number * stride / 3) % stride == stride / 2;
                    if count <= FEW_POINTS || is_marked || lone(at) {
                        pen.mark(number, (corner.x, corner.y), 3.6);
                    }
                }
            });
        }
        if has_ends {
            let ends =
                corners.iter().map(|corners| corners.iter().rev().flatten().next().map(|corner| corner.y));
            for (number, y) in spread_out(&ends.collect::<Vec<_>>(), frame.top, frame.bottom) {
                let class = format!("start end s{}", number % super::COLOURS);
                pen.text(&class, (frame.right + 8.0, y + 4.0), &series[number].name);
            }
        }
        let stride = count.div_ceil(MOST_PLACES).max(1);
        let wide = frame.width() / count.div_ceil(stride).max(1) as f64;
        for at in (0..count).step_by(stride) {
            let Some(x) = x(at) else { continue };
            let numbers: String = series
                .iter()
                .filter_map(|s| Some(format!("\n{}: {}", s.name, (*s.points.get(at)?)?.text(scale))))
                .collect();
            let title = format!("{} {}{numbers}", caption.x, positions.name(at));
            pen.group("place", &title, |pen| {
                pen.rect("", "", (x - wide / 2.0, frame.top), (wide, frame.bottom - frame.top));
                pen.line("", (x, frame.top), (x, frame.bottom));
            });
        }
        let keys: Vec<Key> = series
            .iter()
            .enumerate()
            .map(|(number, s)| {
                let last = s.points.iter().take(count).rev().flatten().next();
                let note = last.map_or_else(String::new, |point| scale.show(point.value));
                Key { name: s.name.clone(), note, number, sign: Sign::Line }
            })
            .collect();
        let ends: Vec<String> = keys.iter().map(|key| format!("{} ends at {}", key.name, key.note)).collect();
        let rows = (0..count).map(|at| {
            let cells = series.iter().map(|s| text_of(s.points.get(at).and_then(Option::as_ref), scale));
            std::iter::once(positions.name(at)).chain(cells).collect()
        });
        Some(Plot {
            description: format!("{} by {}: {}", caption.title, caption.x, ends.join("; ")),
            header: std::iter::once(caption.x.clone()).chain(series.iter().map(|s| s.name.clone())).collect(),
            rows: rows.collect(),
            caption: caption.clone(),
            height,
            body: pen.finish(),
            keys,
        })
    }
}

/// A point in the drawing.
struct Corner {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

impl Corner {
    fn of(x: f64, point: &Point, frame: &Frame) -> Self {
        Self { x, y: frame.y(point.value), low: frame.y(point.low), high: frame.y(point.high) }
    }
}

/// The line through all points, with gaps where there is none.
fn trace(corners: &[Option<Corner>]) -> String {
    let mut path = String::new();
    for run in corners.split(Option::is_none) {
        for (at, corner) in run.iter().flatten().enumerate() {
            path.push_str(&format!(
                "{}{} {}",
                if at == 0 { 'M' } else { 'L' },
                place(corner.x),
                place(corner.y)
            ));
        }
    }
    path
}

/// The area between lower and upper ends; a point without neighbours has a bar.
fn band(corners: &[Option<Corner>]) -> String {
    let mut path = String::new();
    for run in corners.split(Option::is_none) {
        let run: Vec<&Corner> = run.iter().flatten().collect();
        if !run.iter().any(|corner| corner.low > corner.high) {
            continue;
        }
        let half = if run.len() == 1 { 2.0 } else { 0.0 };
        let above = run.iter().map(|c| (c.x - half, c.high));
        let below = run.iter().rev().map(|c| (c.x + half, c.low));
        let lone = (run.len() == 1).then(|| [(run[0].x + half, run[0].high), (run[0].x + half, run[0].low)]);
        let last = (run.len() == 1).then(|| (run[0].x - half, run[0].low));
        let walk: Vec<(f64, f64)> = match (lone, last) {
            (Some([a, b]), Some(c)) => above.chain([a, b, c]).collect(),
            _ => above.chain(below).collect(),
        };
        for (at, (x, y)) in walk.into_iter().enumerate() {
            path.push_str(&format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, place(x), place(y)));
        }
        path.push('Z');
    }
    path
}

/// Ticks without those that would touch the one before.
fn apart(places: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let mut sorted = places;
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (x, words) in sorted {
        let half = |words: &str| letters(words) as f64 * LETTER / 2.0 + 3.0;
        if kept.last().is_none_or(|(before, own)| x - before >= half(&words) + half(own)) {
            kept.push((x, words));
        }
    }
    kept
}

/// Heights moved apart, so that names at them do not touch, each with its number.
fn spread_out(ends: &[Option<f64>], top: f64, bottom: f64) -> Vec<(usize, f64)> {
    let mut placed: Vec<(usize, f64)> =
        ends.iter().enumerate().filter_map(|(n, y)| Some((n, (*y)?))).collect();
    placed.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least = top;
    for (_, y) in &mut placed {
        *y = y.max(least);
        least = *y + LINE;
    }
    let mut most = bottom;
    for (_, y) in placed.iter_mut().rev() {
        *y = y.min(most);
        most = *y - LINE;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, ODD, sound};
    use super::*;

    fn curves(positions: Positions, values: &[f64]) -> Curves {
        let points: Vec<Option<Point>> =
            values.iter().map(|v| Some(Point::spread(*v, v.abs() / 9.0))).collect();
        let one = |name: &str| Series { name: name.into(), points: points.clone() };
        Curves {
            caption: Caption::new(HOSTILE, "", "epoch", "accuracy"),
            scale: Scale::Plain,
            positions,
            series: vec![one("a"), one("b")],
        }
    }

    #[test]
    fn odd_values_and_places_give_a_sound_drawing() {
        let names: Vec<String> = (0..ODD.len()).map(|n| format!("{HOSTILE}{n}")).collect();
        for positions in
            [Positions::Numbers(ODD.to_vec()), Positions::Powers(ODD.to_vec()), Positions::Categories(names)]
        {
            sound(&curves(positions, &ODD).draw().unwrap());
        }
        for odd in ODD {
            sound(&curves(Positions::Numbers(vec![odd]), &[1.0]).draw().unwrap());
            sound(&curves(Positions::Numbers(vec![1.0]), &[odd]).draw().unwrap());
        }
    }

    #[test]
    fn few_points_have_marks_and_ends_have_names_that_do_not_touch() {
        let plot = curves(Positions::Numbers(vec![0.0, 1.0, 2.0]), &[1.0, 2.0, 1.5]).draw().unwrap();
        assert_eq!(plot.body.matches("class=\"mark\"").count(), 6);
        let ends: Vec<f64> = plot
            .body
            .split("start end")
            .skip(1)
            .map(|text| text.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!((ends[0] - ends[1]).abs() >= LINE);
        assert_eq!(plot.rows.len(), 3);
        assert_eq!(plot.rows[1][1], "2 ± 0.2222");
    }

    #[test]
    fn a_gap_stays_a_gap_and_what_was_never_measured_is_left_out() {
        let mut gap = curves(Positions::Numbers(vec![0.0, 1.0, 2.0]), &[1.0, f64::NAN, 1.5]);
        gap.series[1].points = vec![None; 3];
        let plot = gap.draw().unwrap();
        assert_eq!(plot.keys.len(), 1);
        assert!(plot.body.contains("class=\"mark\""));
        gap.series.clear();
        assert!(gap.draw().is_none());
    }

    #[test]
    fn between_whole_numbers_there_are_no_ticks() {
        let ticks = |numbers: &[f64]| {
            let positions = Positions::Numbers(numbers.to_vec());
            positions.ticks(&positions.shares()).into_iter().map(|tick| tick.1).collect::<Vec<_>>()
        };
        assert_eq!(ticks(&[0.0, 1.0, 2.0]), ["0", "1", "2"]);
        assert_eq!(ticks(&[0.0, 0.5, 1.0]).len(), 6);
    }

    #[test]
    fn ticks_that_would_touch_are_left_out() {
        let words = |n: usize| (n as f64 * 10.0, "0.001".to_owned());
        assert_eq!(apart((0..20).map(words).collect()).len(), 4);
    }
}
