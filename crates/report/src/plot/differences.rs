//! Paired differences: for each pair of methods a row with the mean difference, its interval, and a dot for each pair of
//! runs, beside the line of no difference.
//!
//! Names stand above their rows, over the whole width, so that long ones can be read on a phone.

use super::pen::{LETTER, LINE, Pen, letters, wrap};
use super::{Caption, Key, Plot, Point, Sign, WIDTH, series_class};
use crate::number::place;
use crate::scale::{Scale, drawable, ticks};

const EDGE: f64 = 24.0;
const TOP: f64 = 8.0;
const ROW: f64 = 25.0;

/// Paired differences.
#[derive(Debug, Clone)]
pub struct Differences {
    /// Title, note; the name of the axis is `x`.
    pub caption: Caption,
    /// What the differences are.
    pub scale: Scale,
    /// The rows, from the top.
    pub rows: Vec<Difference>,
}

/// One row.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What is compared.
    pub name: String,
    /// Mean difference and its interval.
    pub mean: Point,
    /// The differences of single pairs.
    pub pairs: Vec<f64>,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Better,
    Worse,
    Unclear,
}

impl Verdict {
    fn of(point: &Point) -> Self {
        if !point.is_spread() {
            Self::Unclear
        } else if point.low > 0.0 {
            Self::Better
        } else if point.high < 0.0 {
            Self::Worse
        } else {
            Self::Unclear
        }
    }

    /// Number of the series whose colour and mark it has.
    fn series(self) -> usize {
        match self {
            Self::Better => 0,
            Self::Worse => 1,
            Self::Unclear => 7,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unclear => "unclear: the interval contains zero, or there is none",
        }
    }
}

impl Differences {
    /// Draws the rows; `None` if there is none.
    #[must_use]
    pub fn draw(&self) -> Option<Plot> {
        let Self { caption, scale, rows } = self;
        let scale = *scale;
        if rows.is_empty() {
            return None;
        }
        let drawn: Vec<Option<Point>> = rows.iter().map(|row| row.mean.drawn()).collect();
        let mut finite: Vec<f64> = drawn.iter().flatten().flat_map(|p| [p.low, p.high]).collect();
        finite.extend(rows.iter().flat_map(|row| row.pairs.iter().filter_map(|pair| drawable(*pair))));
        finite.push(0.0);
        let ticks = ticks(scale, &finite);
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        let x = |value: f64| EDGE + ((value - low) / (high - low)).clamp(0.0, 1.0) * (WIDTH - 2.0 * EDGE);

        let numbers: Vec<String> = rows.iter().map(|row| words(&row.mean, scale)).collect();
        let room = numbers.iter().map(|words| letters(words)).max().unwrap_or(0) as f64 * LETTER + 10.0;
        let most = ((WIDTH - room) / LETTER) as usize;
        let names: Vec<Vec<String>> = rows.iter().map(|row| wrap(&row.name, most.max(8), 3)).collect();
        let heights: Vec<f64> = names.iter().map(|lines| lines.len() as f64 * LINE + ROW).collect();
        let bottom = TOP + heights.iter().sum::<f64>();

        let mut pen = Pen::default();
        pen.group("grid", "", |pen| {
            for &tick in &ticks {
                // Zero is found by its place, since steps may miss it by a rounding.
                let class = if tick.abs() < (high - low) * 1e-6 { "zero" } else { "" };
                pen.line(class, (x(tick), TOP), (x(tick), bottom));
                pen.text(
                    "x",
                    (x(tick), bottom + 18.0),
                    &scale.tick(if class.is_empty() { tick } else { 0.0 }),
                );
            }
            pen.text("end name", (WIDTH, bottom + 25.0 + LINE), &caption.x);
        });
        let mut y = TOP;
        for (at, row) in rows.iter().enumerate() {
            let verdict = Verdict::of(&row.mean);
            // Words stand on the sheet's own colour, clear of the lines.
            let line = y + 12.0;
            let wide = names[at].iter().map(|line| letters(line)).max().unwrap_or(0) as f64 * LETTER;
            pen.rect("clear", "", (0.0, y), (wide, LINE * names[at].len() as f64));
            pen.rect(
                "clear",
                "",
                (WIDTH - letters(&numbers[at]) as f64 * LETTER, y),
                (letters(&numbers[at]) as f64 * LETTER, LINE),
            );
            pen.lines("start label", (0.0, line), &names[at]);
            pen.text("end value", (WIDTH, line), &numbers[at]);
            let middle = y + names[at].len() as f64 * LINE + ROW / 2.0 - 4.0;
            let title = format!("{}: {}", row.name, numbers[at]);
            pen.group(&series_class(verdict.series()), &title, |pen| {
                for pair in row.pairs.iter().filter_map(|pair| drawable(*pair)) {
                    pen.path("pair", &dot(x(pair), middle));
                }
                if let Some(point) = &drawn[at] {
                    if point.is_spread() {
                        let line =
                            [point.low, point.high].map(|end| format!("{} {}", place(x(end)), place(middle)));
                        pen.path("", &format!("M{}", line.join("L")));
                    }
                    pen.mark(verdict.series(), (x(point.value), middle), 5.0);
                }
            });
            y += heights[at];
        }
        let mut keys: Vec<Key> = Vec::new();
        for verdict in [Verdict::Better, Verdict::Worse, Verdict::Unclear] {
            if rows.iter().any(|row| Verdict::of(&row.mean) == verdict) {
                keys.push(Key {
                    name: verdict.name().into(),
                    note: String::new(),
                    number: verdict.series(),
                    sign: Sign::Line,
                });
            }
        }
        let table = rows.iter().zip(&numbers).map(|(row, words)| {
            let pairs: Vec<String> = row.pairs.iter().map(|pair| scale.show(*pair)).collect();
            vec![row.name.clone(), words.clone(), row.pairs.len().to_string(), pairs.join(", ")]
        });
        let told: Vec<String> =
            rows.iter().zip(&numbers).map(|(row, words)| format!("{}: {words}", row.name)).collect();
        Some(Plot {
            description: format!("{}. {}", caption.title, told.join("; ")),
            header: ["compared", "difference and interval", "pairs", "each pair"].map(str::to_owned).to_vec(),
            rows: table.collect(),
            caption: caption.clone(),
            height: bottom + 33.0 + LINE,
            body: pen.finish(),
            keys,
        })
    }
}

fn words(mean: &Point, scale: Scale) -> String {
    if mean.is_spread() {
        format!("{} [{}, {}]", scale.show(mean.value), scale.show(mean.low), scale.show(mean.high))
    } else {
        scale.show(mean.value)
    }
}

fn dot(x: f64, y: f64) -> String {
    let (x, y) = (place(x), place(y));
    format!("M{x} {y}m-2.5 0a2.5 2.5 0 1 1 5 0a2.5 2.5 0 1 1 -5 0Z")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, ODD, sound};
    use super::*;

    fn plot(rows: Vec<Difference>) -> Option<Plot> {
        let caption = Caption::new("What the plug-in adds", "", "percentage points", "");
        Differences { caption, scale: Scale::Points, rows }.draw()
    }

    fn row(mean: f64, low: f64, high: f64) -> Difference {
        Difference { name: HOSTILE.into(), mean: Point::between(mean, low, high), pairs: vec![low, high] }
    }

    #[test]
    fn a_row_is_better_only_if_its_whole_interval_is() {
        let verdicts =
            [(0.01, 0.001, 0.02), (0.01, -0.001, 0.02), (-0.01, -0.02, -0.001), (0.01, 0.01, 0.01)]
                .map(|(mean, low, high)| Verdict::of(&Point::between(mean, low, high)));
        assert_eq!(verdicts, [Verdict::Better, Verdict::Unclear, Verdict::Worse, Verdict::Unclear]);
    }

    #[test]
    fn the_line_of_no_difference_is_always_there_and_numbers_are_written_out() {
        let plot = plot(vec![row(0.0125, 0.005, 0.02)]).unwrap();
        assert_eq!(plot.body.matches("class=\"zero\"").count(), 1);
        assert!(plot.body.contains("+1.25 [+0.50, +2.00]"));
        assert_eq!(plot.rows[0][2..], ["2".to_owned(), "+0.50, +2.00".to_owned()]);
    }

    #[test]
    fn odd_values_give_a_sound_drawing() {
        for odd in ODD {
            sound(&plot(vec![row(odd, odd, odd), row(0.01, odd, odd), row(odd, 0.0, 0.1)]).unwrap());
        }
        assert!(plot(vec![]).is_none());
    }
}
