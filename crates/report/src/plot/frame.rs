//! The rectangle that values are drawn in, with ticks and names of its axes.

use super::pen::{LETTER, LINE, Pen, wrap};
use super::{Caption, WIDTH};
use crate::scale::Scale;

/// Room left of the frame for the ticks' words, above it for the name of the axis, and below it for ticks and a name.
const LEFT: f64 = 56.0;
const TOP: f64 = 30.0;
const RIGHT: f64 = 8.0;
/// Lines that the name of a category may take.
const MOST_LINES: usize = 3;

/// Where the frame is, and which values it spans.
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub low: f64,
    pub high: f64,
}

impl Frame {
    /// A frame of a height over the values of `ticks`, with `spare` room at its right.
    pub fn new(height: f64, spare: f64, ticks: &[f64]) -> Self {
        let (low, high) = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
        Self { left: LEFT, right: WIDTH - RIGHT - spare, top: TOP, bottom: TOP + height, low, high }
    }

    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn middle(&self) -> (f64, f64) {
        ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0)
    }

    /// How far down a value is.
    pub fn y(&self, value: f64) -> f64 {
        let share = (self.high - value) / (self.high - self.low);
        self.top + share.clamp(-0.02, 1.02) * (self.bottom - self.top)
    }

    /// Centre of one of `count` slots of equal width.
    pub fn slot(&self, at: usize, count: usize) -> f64 {
        self.left + (at as f64 + 0.5) * self.width() / count.max(1) as f64
    }

    /// Lines and words of the values, the name of their axis above.
    pub fn draw_values(&self, pen: &mut Pen, caption: &Caption, scale: Scale, ticks: &[f64]) {
        pen.group("grid", "", |pen| {
            for &tick in ticks {
                let y = self.y(tick);
                pen.line(if tick == 0.0 { "zero" } else { "" }, (self.left, y), (self.right, y));
                pen.text("y", (self.left - 7.0, y), &scale.tick(tick));
            }
            pen.text("start name", (0.0, 12.0), &caption.y);
        });
    }

    /// Words below the frame, in slots of equal width, and the name of the axis; gives the height of it all.
    pub fn draw_categories(&self, pen: &mut Pen, caption: &Caption, names: &[String]) -> f64 {
        // Less one letter, so that neighbours stand apart.
        let most = ((self.width() / names.len().max(1) as f64 / LETTER) as usize).saturating_sub(1);
        let mut deepest = 1;
        pen.group("grid", "", |pen| {
            for (at, name) in names.iter().enumerate() {
                let lines = wrap(name, most.max(2), MOST_LINES);
                deepest = deepest.max(lines.len());
                let x = self.slot(at, names.len());
                pen.group("", name, |pen| pen.lines("x", (x, self.bottom + 18.0), &lines));
            }
        });
        self.name_below(pen, caption, deepest)
    }

    /// Words below the frame at given places, and the name of the axis; gives the height of it all.
    pub fn draw_places(&self, pen: &mut Pen, caption: &Caption, places: &[(f64, String)]) -> f64 {
        pen.group("grid", "", |pen| {
            for (x, words) in places {
                pen.text("x", (*x, self.bottom + 18.0), words);
            }
        });
        self.name_below(pen, caption, 1)
    }

    fn name_below(&self, pen: &mut Pen, caption: &Caption, lines: usize) -> f64 {
        let below = self.bottom + 25.0 + LINE * lines as f64;
        if caption.x.is_empty() {
            return below - LINE + 4.0;
        }
        pen.group("grid", "", |pen| pen.text("end name", (self.right, below), &caption.x));
        below + 8.0
    }

    /// Says that there is nothing to see.
    pub fn draw_nothing(&self, pen: &mut Pen) {
        pen.text("x", self.middle(), "no finite number");
    }
}
