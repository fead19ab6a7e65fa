//! Plots: what is to be shown goes in, a [`Plot`] comes out, for a page or as a file of its own.
//!
//! | plot | for |
//! |---|---|
//! | [`Bars`] | values of a few groups in a few categories: ablations, similarity by kind of noise |
//! | [`Curves`] | values along epochs, settings or categories, with their spread |
//! | [`Grid`] | values over two settings |
//! | [`Recall`] | precision by recall of a ranking |
//! | [`Differences`] | paired differences with their intervals |
//!
//! All are drawn 460 units wide, so that words stay readable on a phone, in colours that the style sheet sets for light
//! and dark. Colours are never alone: series differ by mark and dash as well, and every number is in the table that comes
//! with the plot. A value that is not finite is not drawn, and stands in the table as what it is.

mod bars;
mod curves;
mod differences;
mod frame;
mod grid;
mod pen;
mod positions;
mod recall;

use std::path::Path;

pub use bars::{BarGroup, Bars, ReferenceLine};
pub use curves::{Curves, Series};
pub use differences::{Difference, Differences};
pub use grid::Grid;
pub use positions::Positions;
pub use recall::{Recall, RecallCurve};

use crate::error::{Error, Result};
use crate::scale::{Scale, drawable};
use negscale_atomic_file::write_bytes;
use pen::{Pen, cut, escape, letters, wrap};

/// Width of every drawing.
const WIDTH: f64 = 460.0;
/// How many colours there are.
const COLOURS: usize = 8;

/// What a plot is called, and what its axes are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caption {
    /// A few words; the anchor of the plot in a page is made from them.
    pub title: String,
    /// A sentence on how to read it; may be empty.
    pub note: String,
    /// What runs to the right.
    pub x: String,
    /// What runs up.
    pub y: String,
}

impl Caption {
    /// Title, note and the names of both axes.
    pub fn new(
        title: impl Into<String>,
        note: impl Into<String>,
        x: impl Into<String>,
        y: impl Into<String>,
    ) -> Self {
        Self { title: title.into(), note: note.into(), x: x.into(), y: y.into() }
    }
}

/// A value and how far it spreads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The value.
    pub value: f64,
    /// Lower end, the value itself where there is no spread.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Point {
    /// A value without spread.
    #[must_use]
    pub fn alone(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// A value that spreads to both sides; a spread that is not finite is none.
    #[must_use]
    pub fn spread(value: f64, by: f64) -> Self {
        let by = if by.is_finite() { by.abs() } else { 0.0 };
        Self { value, low: value - by, high: value + by }
    }

    /// A value in an interval.
    #[must_use]
    pub fn between(value: f64, low: f64, high: f64) -> Self {
        Self { value, low, high }
    }

    /// The ends as far as they can be drawn, nothing if the value cannot.
    fn drawn(&self) -> Option<Self> {
        let value = drawable(self.value)?;
        let end = |end: f64| drawable(end).unwrap_or(value);
        Some(Self { value, low: end(self.low).min(value), high: end(self.high).max(value) })
    }

    fn is_spread(&self) -> bool {
        self.high > self.low
    }

    /// For tables and titles.
    fn text(&self, scale: Scale) -> String {
        let (below, above) = (self.value - self.low, self.high - self.value);
        let value = scale.exact(self.value);
        if !self.is_spread() {
            value
        } else if (below - above).abs() <= 1e-6 * (below + above) {
            format!("{value} ± {}", scale.width(above))
        } else {
            format!("{value} [{}, {}]", scale.exact(self.low), scale.exact(self.high))
        }
    }
}

/// The text of a value, a dash if there is none.
fn text_of(point: Option<&Point>, scale: Scale) -> String {
    point.map_or_else(|| "–".to_owned(), |point| point.text(scale))
}

/// What stands for a series in the legend.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    /// A line, with the mark of the series.
    Line,
    /// A dashed line without a mark.
    Rule,
    /// A filled box.
    Box,
    /// A mark alone.
    Mark,
}

/// A line of the legend.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub name: String,
    /// A number beside the name.
    pub note: String,
    number: usize,
    sign: Sign,
}

impl Key {
    /// The sign, 22 units wide and 12 high.
    pub fn sign(&self) -> String {
        let mut pen = Pen::default();
        pen.group(&series_class(self.number), "", |pen| match self.sign {
            Sign::Line => {
                pen.path("", "M1 6L21 6");
                pen.mark(self.number, (11.0, 6.0), 3.5);
            }
            Sign::Rule => pen.path("rule", "M1 6L21 6"),
            Sign::Box => pen.rect("bar", "", (3.0, 1.0), (16.0, 10.0)),
            Sign::Mark => pen.mark(self.number, (11.0, 6.0), 4.0),
        });
        pen.finish()
    }
}

/// Colour and dash of a series.
fn series_class(number: usize) -> String {
    format!("series s{} d{}", number % COLOURS, number / COLOURS % 4)
}

/// A finished plot.
#[derive(Debug, Clone)]
pub struct Plot {
    pub(crate) caption: Caption,
    pub(crate) description: String,
    pub(crate) height: f64,
    pub(crate) body: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Colours for light and dark, and the looks of drawings: what a page and a single drawing share.
const PALETTE: &str = include_str!("../../templates/palette.css");
const LOOKS: &str = include_str!("../../templates/plot.css");
/// What a single drawing needs beyond.
const ALONE: &str = "svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
                     .sheet{fill:var(--sheet)}.title{font-size:15px;font-weight:620;fill:var(--ink)}";

impl Plot {
    /// Width of the drawing.
    pub(crate) fn width(&self) -> f64 {
        WIDTH
    }

    /// Anchor within a page.
    pub(crate) fn id(&self) -> String {
        let letters = self.caption.title.to_lowercase();
        let words: Vec<&str> =
            letters.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        if words.is_empty() { "plot".to_owned() } else { format!("plot-{}", words.join("-")) }
    }

    /// The numbers of the plot: head and rows.
    #[must_use]
    pub fn numbers(&self) -> (&[String], &[Vec<String>]) {
        (&self.header, &self.rows)
    }

    /// The plot as an SVG file of its own, with title and legend, in light or dark as the reader's system is.
    #[must_use]
    pub fn to_svg(&self) -> String {
        const EDGE: f64 = 14.0;
        let most = ((WIDTH - 10.0) / 8.0) as usize;
        let title = wrap(&self.caption.title, most, 3);
        let top = EDGE + 20.0 * title.len() as f64;
        let mut pen = Pen::default();
        for (number, line) in title.iter().enumerate() {
            pen.text("title", (0.0, EDGE + 6.0 + 20.0 * number as f64), line);
        }
        // Signs and names of the legend, as many in a row as there is room for.
        let mut legend = Pen::default();
        let (mut x, mut y) = (0.0, top + self.height + 18.0);
        let mut signs = String::new();
        for key in &self.keys {
            let words = cut(&format!("{} {}", key.name, key.note), ((WIDTH - 40.0) / 6.4) as usize);
            let wide = 28.0 + 6.4 * letters(words.trim()) as f64 + 18.0;
            if x > 0.0 && x + wide > WIDTH {
                (x, y) = (0.0, y + 19.0);
            }
            signs.push_str(&format!(
                "<g transform=\"translate({x:.1} {:.1})\">{}</g>\n",
                y - 10.0,
                key.sign()
            ));
            legend.text("start", (x + 27.0, y), words.trim());
            x += wide;
        }
        let height = if self.keys.is_empty() { top + self.height + EDGE } else { y + EDGE };
        let frame = format!("{} {} {} {height:.0}", -EDGE, 0, WIDTH + 2.0 * EDGE);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{frame}\" width=\"{:.0}\" height=\"{:.0}\" role=\"img\" \
             aria-label=\"{}\">\n<title>{}</title>\n<style>\n{PALETTE}{LOOKS}{ALONE}\n</style>\n\
             <rect class=\"sheet\" x=\"{}\" y=\"0\" width=\"{}\" height=\"{height:.0}\" rx=\"10\"/>\n{}\
             <g transform=\"translate(0 {top:.1})\">\n{}</g>\n{signs}{}</svg>\n",
            (WIDTH + 2.0 * EDGE) * 1.5,
            height * 1.5,
            escape(&self.description),
            escape(&self.caption.title),
            -EDGE,
            WIDTH + 2.0 * EDGE,
            pen.finish(),
            self.body,
            legend.finish(),
        )
    }

    /// Writes [`to_svg`](Self::to_svg) whole or not at all.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn write_svg(&self, path: &Path) -> Result<()> {
        write_bytes(path, self.to_svg().as_bytes()).map_err(|e| Error::io(path, e))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Names and values that are hard on a drawing.
    pub const HOSTILE: &str = "<script>\"'&amp; ]]> --> \u{0}";
    pub const ODD: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 9e99, 1e-300, 0.0];

    /// Fails unless the drawing is XML whose numbers are finite, and gives it.
    pub fn sound(plot: &Plot) -> String {
        let svg = plot.to_svg();
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg.as_str();
        while let Some(at) = rest.find('<') {
            assert!(!rest[..at].contains('>') || open.last() == Some(&"style"), "{}", &rest[..at]);
            let end = at + rest[at..].find('>').unwrap();
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
                continue;
            }
            let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap();
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            for attribute in ["x", "y", "x1", "x2", "y1", "y2", "width", "height"] {
                if let Some(value) = tag.split(&format!(" {attribute}=\"")).nth(1) {
                    let value: f64 = value.split('"').next().unwrap().parse().unwrap();
                    assert!(value.abs() < 3000.0, "{tag}");
                }
            }
            if let Some(path) = tag.split(" d=\"").nth(1) {
                assert!(!path.contains("NaN") && !path.contains("inf"), "{tag}");
            }
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty() && rest.trim().is_empty());
        svg
    }

    #[test]
    fn anchors_are_made_of_words() {
        let rule = |title: &str| {
            let caption = Caption::new(title, "", "x", "y");
            let points = vec![Some(Point::alone(1.0))];
            let groups = vec![BarGroup { name: "a".into(), points }];
            let bars =
                Bars { caption, scale: Scale::Plain, categories: vec!["a".into()], groups, rules: vec![] };
            bars.draw().unwrap().id()
        };
        assert_eq!(rule("Test accuracy, last 10"), "plot-test-accuracy-last-10");
        assert_eq!(rule("\"><b>"), "plot-b");
        assert_eq!(rule("鳥"), "plot");
    }

    #[test]
    fn spreads_that_are_not_finite_are_none() {
        assert!(!Point::spread(1.0, f64::NAN).is_spread());
        assert_eq!(Point::between(1.0, f64::NAN, 2.0).drawn().unwrap().low, 1.0);
        assert!(Point::alone(f64::INFINITY).drawn().is_none());
        assert_eq!(Point::spread(0.86, 0.004).text(Scale::Percent), "86.00 % ± 0.40");
        assert_eq!(Point::between(0.01, -0.01, 0.02).text(Scale::Points), "+1.00 [-1.00, +2.00]");
    }
}
