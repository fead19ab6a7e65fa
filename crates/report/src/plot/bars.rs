//! Bars of a few groups side by side in a few categories, with error bars and lines to compare with.
//!
//! A bar is read by its length, so bars stand on zero. Where all values lie close together ($\max - \min$ below 15 % of the
//! largest), lengths would tell nothing: then the values are marks on an axis that fits them.

use super::frame::Frame;
use super::pen::{LETTER, Pen, SMALL, letters};
use super::{Caption, Key, Plot, Point, Sign, series_class, text_of};
use crate::scale::{Scale, drawable, ticks};

const HEIGHT: f64 = 190.0;
/// Spread of values, relative to the largest, below which bars would look all alike.
const ALIKE: f64 = 0.15;

/// Values of a few groups in a few categories.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Title, note, axes.
    pub caption: Caption,
    /// What the values are.
    pub scale: Scale,
    /// Names along the axis.
    pub categories: Vec<String>,
    /// What stands side by side in every category.
    pub groups: Vec<BarGroup>,
    /// Values to compare with, as lines across.
    pub rules: Vec<ReferenceLine>,
}

/// The values of one group, by category.
#[derive(Debug, Clone)]
pub struct BarGroup {
    /// What they are.
    pub name: String,
    /// One for each category; `None` is not measured.
    pub points: Vec<Option<Point>>,
}

/// A value to compare with.
#[derive(Debug, Clone)]
pub struct ReferenceLine {
    /// What it is.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Group whose colour it has.
    pub group: usize,
}

impl Bars {
    /// Draws what was measured; `None` if nothing was.
    #[must_use]
    pub fn draw(&self) -> Option<Plot> {
        let Self { caption, scale, categories, groups, rules } = self;
        let scale = *scale;
        if !groups.iter().any(|group| group.points.iter().take(categories.len()).any(Option::is_some)) {
            return None;
        }
        let drawn = |group: usize, at: usize| groups[group].points.get(at).and_then(|p| (*p)?.drawn());
        let places = || (0..categories.len()).flat_map(|at| (0..groups.len()).map(move |group| (at, group)));
        let mut finite: Vec<f64> = rules.iter().filter_map(|rule| drawable(rule.value)).collect();
        finite.extend(places().filter_map(|(at, group)| drawn(group, at)).flat_map(|p| [p.low, p.high]));
        let is_bar = scale != Scale::Percent || !is_alike(&finite);
        let ticks = match scale {
            Scale::Percent if is_bar => {
                let mut with_zero = finite.clone();
                with_zero.push(0.0);
                ticks(scale, &with_zero)
            }
            _ => ticks(scale, &finite),
        };
        let frame = Frame::new(HEIGHT, 0.0, &ticks);
        let slot = frame.width() / categories.len().max(1) as f64;
        let wide = (slot * 0.8 / groups.len() as f64).min(46.0);

        let mut pen = Pen::default();
        frame.draw_values(&mut pen, caption, scale, &ticks);
        let height = frame.draw_categories(&mut pen, caption, categories);
        if finite.is_empty() {
            frame.draw_nothing(&mut pen);
        }
        let zero = frame.y(0.0f64.clamp(frame.low, frame.high));
        for (at, group) in places() {
            let Some(point) = drawn(group, at) else { continue };
            let x =
                frame.slot(at, categories.len()) + (group as f64 - (groups.len() as f64 - 1.0) / 2.0) * wide;
            let title = format!("{}, {}: {}", categories[at], groups[group].name, point.text(scale));
            pen.group(&series_class(group), &title, |pen| {
                let y = frame.y(point.value);
                if is_bar {
                    pen.rect(
                        "bar",
                        "",
                        (x - wide / 2.0 + 1.0, y.min(zero)),
                        (wide - 2.0, (y - zero).abs().max(1.0)),
                    );
                }
                if point.is_spread() {
                    let (low, high) = (frame.y(point.low), frame.y(point.high));
                    let cap = (wide / 5.0).min(5.0);
                    pen.line("whisker", (x, low), (x, high));
                    pen.line("whisker", (x - cap, low), (x + cap, low));
                    pen.line("whisker", (x - cap, high), (x + cap, high));
                }
                if !is_bar {
                    pen.mark(group, (x, y), 5.0);
                }
            });
            let words = scale.brief(point.value);
            let class = match letters(&words) as f64 {
                count if count * LETTER <= wide => Some("x value"),
                count if count * SMALL <= wide => Some("x value small"),
                _ => None,
            };
            if let Some(class) = class {
                let hangs = is_bar && point.value < 0.0;
                let y = if hangs { frame.y(point.low) + 15.0 } else { frame.y(point.high) - 6.0 };
                pen.text(class, (x, y), &words);
            }
        }
        let mut keys: Vec<Key> =
            groups.iter().enumerate().map(|(number, group)| key(number, &group.name, is_bar)).collect();
        for rule in rules {
            if let Some(value) = drawable(rule.value) {
                let title = format!("{}: {}", rule.name, scale.exact(value));
                let y = frame.y(value);
                pen.group(&series_class(rule.group), &title, |pen| {
                    pen.line("halo", (frame.left, y), (frame.right, y));
                    pen.line("rule", (frame.left, y), (frame.right, y));
                });
            }
            let note = scale.show(rule.value);
            keys.push(Key { name: rule.name.clone(), note, number: rule.group, sign: Sign::Rule });
        }
        let mut header = vec![caption.x.clone()];
        header.extend(groups.iter().map(|group| group.name.clone()));
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (at, name) in categories.iter().enumerate() {
            let cells =
                groups.iter().map(|group| text_of(group.points.get(at).and_then(Option::as_ref), scale));
            rows.push(std::iter::once(name.clone()).chain(cells).collect());
        }
        for rule in rules {
            let cells = (0..groups.len())
                .map(|group| if group == rule.group { scale.exact(rule.value) } else { String::new() });
            rows.push(std::iter::once(rule.name.clone()).chain(cells).collect());
        }
        let told: Vec<String> = places()
            .filter_map(|(at, group)| {
                Some(format!(
                    "{}, {}: {}",
                    categories[at],
                    groups[group].name,
                    scale.show(drawn(group, at)?.value)
                ))
            })
            .take(40)
            .collect();
        let description = format!("{}. {}", caption.title, told.join("; "));
        Some(Plot { caption: caption.clone(), description, height, body: pen.finish(), keys, header, rows })
    }
}

fn key(number: usize, name: &str, is_bar: bool) -> Key {
    let sign = if is_bar { Sign::Box } else { Sign::Mark };
    Key { name: name.to_owned(), note: String::new(), number, sign }
}

fn is_alike(finite: &[f64]) -> bool {
    let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    low > 0.0 && high - low < ALIKE * high
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, ODD, sound};
    use super::*;

    fn bars(scale: Scale, values: &[f64]) -> Bars {
        Bars {
            caption: Caption::new(HOSTILE, "", "noise", "similarity"),
            scale,
            categories: (0..values.len()).map(|n| format!("{HOSTILE}{n}")).collect(),
            groups: vec![BarGroup {
                name: HOSTILE.into(),
                points: values.iter().map(|v| Some(Point::spread(*v, v.abs() / 50.0))).collect(),
            }],
            rules: vec![ReferenceLine { name: HOSTILE.into(), value: values[0], group: 0 }],
        }
    }

    #[test]
    fn odd_values_and_names_give_a_sound_drawing() {
        for scale in [Scale::FullPercent, Scale::Percent, Scale::Unit, Scale::Plain, Scale::Points] {
            sound(&bars(scale, &ODD).draw().unwrap());
            for odd in ODD {
                let svg = sound(&bars(scale, &[odd]).draw().unwrap());
                assert!(!svg.contains("<script"));
            }
        }
    }

    #[test]
    fn every_value_has_a_bar_and_stands_in_the_table() {
        let plot = bars(Scale::Percent, &[0.2, 0.5, 0.9]).draw().unwrap();
        assert_eq!(plot.body.matches("class=\"bar\"").count(), 3);
        assert_eq!(plot.rows[1][1], "50.00 % ± 1.00");
        assert!(plot.body.contains(">50.0</text>"));
    }

    #[test]
    fn values_close_together_are_marks_on_an_axis_that_fits_them() {
        let plot = bars(Scale::Percent, &[0.90, 0.91]).draw().unwrap();
        assert!(!plot.body.contains("class=\"bar\"") && plot.body.matches("class=\"mark\"").count() == 2);
        assert!(!plot.body.contains(">0 %<"));
    }

    #[test]
    fn a_value_below_zero_hangs_from_the_line() {
        let plot = bars(Scale::Plain, &[-1.0, 1.0]).draw().unwrap();
        let tops: Vec<f64> = plot
            .body
            .split("class=\"bar\"")
            .skip(1)
            .map(|bar| bar.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(tops[0] > tops[1]);
    }

    #[test]
    fn nothing_measured_is_no_plot() {
        let mut none = bars(Scale::Percent, &[1.0]);
        none.groups[0].points = vec![None];
        assert!(none.draw().is_none());
        none.groups.clear();
        assert!(none.draw().is_none());
    }
}
