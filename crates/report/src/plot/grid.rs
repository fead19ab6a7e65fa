//! Values over two settings: a cell for each pair, shaded by its value, with the number in it.
//!
//! Shades go up to 45 % of the colour only, so that one ink is readable on all of them, in light and in dark.

use super::pen::{LETTER, LINE, Pen, SMALL, cut, letters, wrap};
use super::{Caption, Plot, Point, WIDTH, text_of};
use crate::scale::Scale;

/// Room for the names of rows: at least, at most.
const LEFT: (f64, f64) = (62.0, 130.0);
const TOP: f64 = 30.0;
const TALLEST: f64 = 46.0;
/// Percent of the colour in the deepest shade.
const DEEPEST: f64 = 45.0;

/// Values over two settings.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Title, note and the names of both settings.
    pub caption: Caption,
    /// What the values are.
    pub scale: Scale,
    /// Values of the setting that runs to the right.
    pub columns: Vec<String>,
    /// Values of the setting that runs up, from the bottom.
    pub rows: Vec<String>,
    /// Row by row, `columns` cells in each; `None` is not measured.
    pub cells: Vec<Option<Point>>,
}

impl Grid {
    /// Draws what was measured; `None` if nothing was.
    #[must_use]
    pub fn draw(&self) -> Option<Plot> {
        let Self { caption, scale, columns, rows, cells } = self;
        let scale = *scale;
        let cell = |row: usize, column: usize| cells.get(row * columns.len() + column)?.as_ref();
        let places = || (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| (row, column)));
        if !places().any(|(row, column)| cell(row, column).is_some()) {
            return None;
        }
        let finite: Vec<f64> =
            places().filter_map(|(row, column)| Some(cell(row, column)?.drawn()?.value)).collect();
        let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
        let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let longest = rows.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
        let left = (longest * LETTER + 12.0).clamp(LEFT.0, LEFT.1);
        let (wide, tall) =
            ((WIDTH - left) / columns.len() as f64, (260.0 / rows.len() as f64).clamp(20.0, TALLEST));
        let (right, bottom) = (WIDTH, TOP + tall * rows.len() as f64);

        let mut pen = Pen::default();
        pen.text("start name", (0.0, 12.0), &caption.y);
        for (row, name) in rows.iter().enumerate() {
            let y = bottom - (row as f64 + 0.5) * tall;
            pen.group("grid", name, |pen| {
                pen.text("y", (left - 8.0, y), &cut(name, ((left - 8.0) / LETTER) as usize))
            });
        }
        let mut deepest = 1;
        for (column, name) in columns.iter().enumerate() {
            let lines = wrap(name, ((wide / LETTER) as usize).max(2), 2);
            deepest = deepest.max(lines.len());
            let at = (left + (column as f64 + 0.5) * wide, bottom + 17.0);
            pen.group("grid", name, |pen| pen.lines("x", at, &lines));
        }
        let below = bottom + 25.0 + LINE * deepest as f64;
        pen.text("end name", (right, below), &caption.x);
        for (row, column) in places() {
            let Some(point) = cell(row, column) else { continue };
            let (x, y) = (left + column as f64 * wide, bottom - (row as f64 + 1.0) * tall);
            let title = format!(
                "{} {}, {} {}: {}",
                caption.x,
                columns[column],
                caption.y,
                rows[row],
                point.text(scale)
            );
            let share = point.drawn().map(|p| if high > low { (p.value - low) / (high - low) } else { 1.0 });
            let is_best = high > low && point.value == high;
            pen.group("cell", &title, |pen| {
                let style = format!("--shade:{:.0}%", share.unwrap_or(0.0) * DEEPEST);
                let class = if is_best { "best" } else { "" };
                pen.rect(class, &style, (x + 1.5, y + 1.5), (wide - 3.0, tall - 3.0));
                let words = scale.brief(point.value);
                let spread = (point.is_spread() && tall >= 40.0)
                    .then(|| format!("± {}", scale.width((point.high - point.low) / 2.0)));
                let spread = spread.filter(|words| letters(words) as f64 * SMALL <= wide);
                let (middle, up) = (x + wide / 2.0, if spread.is_some() { 3.0 } else { -4.0 });
                if letters(&words) as f64 * LETTER <= wide + 4.0 {
                    pen.text(
                        if is_best { "x value best" } else { "x value" },
                        (middle, y + tall / 2.0 - up),
                        &words,
                    );
                }
                if let Some(words) = spread {
                    pen.text("x small", (middle, y + tall / 2.0 + 13.0), &words);
                }
            });
        }
        let best = places().find(|&(row, column)| cell(row, column).is_some_and(|p| p.value == high));
        let best = best.map_or_else(String::new, |(row, column)| {
            format!(
                "largest {} at {} {}, {} {}",
                scale.show(high),
                caption.x,
                columns[column],
                caption.y,
                rows[row]
            )
        });
        let header =
            std::iter::once(format!("{} \\ {}", caption.y, caption.x)).chain(columns.iter().cloned());
        let table = (0..rows.len()).rev().map(|row| {
            let cells = (0..columns.len()).map(|column| text_of(cell(row, column), scale));
            std::iter::once(rows[row].clone()).chain(cells).collect()
        });
        Some(Plot {
            description: format!("{} over {} and {}: {best}", caption.title, caption.x, caption.y),
            header: header.collect(),
            rows: table.collect(),
            caption: caption.clone(),
            height: below + 8.0,
            body: pen.finish(),
            keys: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, ODD, sound};
    use super::*;

    fn grid(columns: usize, values: &[f64]) -> Grid {
        Grid {
            caption: Caption::new("Grid", "", "lambda", HOSTILE),
            scale: Scale::Percent,
            columns: (0..columns).map(|n| format!("{HOSTILE}{n}")).collect(),
            rows: (0..values.len().div_ceil(columns)).map(|n| n.to_string()).collect(),
            cells: values.iter().map(|v| Some(Point::alone(*v))).collect(),
        }
    }

    #[test]
    fn every_cell_shows_its_number_and_the_largest_is_marked() {
        let plot = grid(2, &[0.81, 0.82, 0.90, 0.84]).draw().unwrap();
        for words in [">81.0<", ">82.0<", ">90.0<", ">84.0<"] {
            assert!(plot.body.contains(words), "{words}");
        }
        assert_eq!(plot.body.matches("class=\"best\"").count(), 1);
        assert!(plot.body.contains("--shade:45%") && plot.body.contains("--shade:0%"));
        // The first row is at the bottom, in the drawing and in the table.
        assert_eq!(plot.rows[1][1], "81.00 %");
    }

    #[test]
    fn odd_values_missing_cells_and_many_columns_give_a_sound_drawing() {
        sound(&grid(3, &ODD).draw().unwrap());
        sound(&grid(1, &[f64::NAN]).draw().unwrap());
        sound(&grid(60, &vec![0.5; 3600]).draw().unwrap());
        let mut short = grid(2, &[0.1, 0.2, 0.3, 0.4]);
        short.cells.truncate(1);
        sound(&short.draw().unwrap());
        short.cells.clear();
        assert!(short.draw().is_none());
        let empty = Grid { columns: vec![], ..short };
        assert!(empty.draw().is_none());
    }
}
