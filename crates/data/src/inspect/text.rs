//! A report as text.

use super::{Duplicates, Features, Images, Labels, Noise, Range, Report, Unreadable};
use std::fmt::{self, Display, Formatter, Write};

/// Classes and shapes are listed one by one up to this many; of more, as many from the top as fit.
const LISTED: usize = 100;
/// A noise matrix wider than this does not fit a screen.
const WIDEST_MATRIX: usize = 20;
const BAR: usize = 30;

/// A name on one line, cut to a width. Names come from files of others: nothing in them may steer a terminal.
fn shown(name: &str, width: usize) -> String {
    let clean: Vec<char> =
        name.chars().take(width + 1).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match clean.len() > width {
        true => clean[..width.saturating_sub(2)].iter().collect::<String>() + "..",
        false => clean.into_iter().collect(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn several(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl Report {
    fn class(&self, label: u32) -> String {
        self.labels
            .classes
            .get(label as usize)
            .map_or_else(|| label.to_string(), |class| shown(&class.name, 24))
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let (items, classes) =
            (several(self.items, "item", "items"), several(self.labels.classes.len(), "class", "classes"));
        writeln!(f, "{}: {items}, {classes}", shown(&self.name, 80))?;
        write_labels(f, self, &self.labels)?;
        if let Some(images) = &self.images {
            write_images(f, images)?;
        }
        if let Some(features) = &self.features {
            write_features(f, features)?;
        }
        if self.images.is_some() || self.features.is_some() {
            write_unreadable(f, &self.unreadable)?;
        }
        if let Some(duplicates) = &self.duplicates {
            write_duplicates(f, self, duplicates)?;
        }
        if let Some(noise) = &self.noise {
            write_noise(f, self, noise)?;
        }
        Ok(())
    }
}

fn write_labels(f: &mut Formatter, report: &Report, labels: &Labels) -> fmt::Result {
    write!(f, "\nlabels        ")?;
    match (labels.lowest, labels.highest) {
        (Some(low), Some(high)) => write!(f, "{low} to {high}")?,
        _ => write!(f, "none")?,
    }
    match labels.unused.len() {
        0 => writeln!(f, ", every class used")?,
        n => {
            let first = listed(labels.unused.iter().take(5).map(|&label| report.class(label)));
            let more = if n > 5 { ", ..." } else { "" };
            writeln!(f, ", {} without items: {first}{more}", several(n, "class", "classes"))?;
        }
    }
    let with_truth = labels.classes.iter().any(|class| class.truth.is_some());
    let names: Vec<String> = labels.classes.iter().map(|class| shown(&class.name, 24)).collect();
    let wide = names.iter().take(LISTED).map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    let most = labels.classes.iter().map(|class| class.given).max().unwrap_or(0).max(1);
    write!(f, "\n    #  {:wide$}  {:>8}", "class", "given")?;
    writeln!(f, "{}  {:>8}", if with_truth { "      true" } else { "" }, "share")?;
    for (at, (class, name)) in labels.classes.iter().zip(&names).enumerate().take(LISTED) {
        write!(f, "{at:5}  {name:wide$}  {:8}", class.given)?;
        if let Some(truth) = class.truth {
            write!(f, "  {truth:8}")?;
        }
        let bar = "#".repeat((class.given * BAR).div_ceil(most));
        let line = format!("  {:>8}  {bar}", percent(class.given as f64 / report.items.max(1) as f64));
        writeln!(f, "{}", line.trim_end())?;
    }
    match labels.classes.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => writeln!(f, "       and {more} more"),
    }
}

fn write_images(f: &mut Formatter, images: &Images) -> fmt::Result {
    writeln!(
        f,
        "\nimages        {} readable, {}",
        images.readable,
        several(images.kinds, "shape", "shapes")
    )?;
    for shape in images.shapes.iter().take(10) {
        let kind = match shape.channels {
            1 => "grey".to_owned(),
            3 => "colour".to_owned(),
            n => format!("{n} channels"),
        };
        writeln!(f, "  {:>6} x {:<6} {kind:8} {:8}", shape.width, shape.height, shape.count)?;
    }
    match images.kinds.saturating_sub(10) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more"),
    }
}

fn write_features(f: &mut Formatter, features: &Features) -> fmt::Result {
    let range = |range: &Option<Range>| match range {
        Some(Range { low, high }) => format!("{low:.4} to {high:.4}"),
        None => "-".to_owned(),
    };
    writeln!(f, "\nfeatures      {} of {} numbers", several(features.finite, "row", "rows"), features.dim)?;
    writeln!(f, "  values      {}", range(&features.values))?;
    writeln!(f, "  means       {} by column", range(&features.means))?;
    writeln!(f, "  deviations  {} by column", range(&features.deviations))?;
    if features.nan + features.infinite > 0 {
        let first = listed(&features.not_finite);
        let (nan, infinite) = (features.nan, features.infinite);
        writeln!(f, "  not finite  {nan} with NaN, {infinite} with an infinity, among them rows {first}")?;
    }
    if features.constant > 0 {
        let (count, first) =
            (several(features.constant, "column", "columns"), listed(&features.constant_first));
        writeln!(f, "  constant    {count}, among them {first}")?;
    }
    Ok(())
}

fn write_unreadable(f: &mut Formatter, unreadable: &Unreadable) -> fmt::Result {
    writeln!(f, "\nunreadable    {}", unreadable.count)?;
    for failure in &unreadable.first {
        let origin = failure.origin.as_deref().map(|origin| format!(" ({})", shown(origin, 200)));
        writeln!(f, "  {}{}: {}", failure.index, origin.unwrap_or_default(), shown(&failure.reason, 300))?;
    }
    if unreadable.count > unreadable.first.len() {
        writeln!(f, "  and {} more", unreadable.count - unreadable.first.len())?;
    }
    Ok(())
}

fn write_duplicates(f: &mut Formatter, report: &Report, duplicates: &Duplicates) -> fmt::Result {
    let Duplicates { groups, items, contradicting, first } = duplicates;
    if *groups == 0 {
        return writeln!(f, "\nduplicates    none");
    }
    let groups = several(*groups, "group", "groups");
    writeln!(f, "\nduplicates    {items} items in {groups}, {contradicting} with differing labels")?;
    for group in first {
        let more = if group.size > group.indices.len() { ", ..." } else { "" };
        let mut labels = group.labels.clone();
        labels.sort_unstable();
        labels.dedup();
        let labels = listed(labels.into_iter().map(|label| report.class(label)));
        writeln!(f, "  {}{more}: {labels}", listed(&group.indices))?;
    }
    Ok(())
}

fn write_noise(f: &mut Formatter, report: &Report, noise: &Noise) -> fmt::Result {
    let wrong = several(noise.wrong, "label differs", "labels differ");
    writeln!(f, "\nnoise         {} ({wrong} from the truth)", percent(noise.rate))?;
    match &noise.counts {
        Some(counts) if counts.len() <= WIDEST_MATRIX => write_matrix(f, report, noise, counts)?,
        _ => {}
    }
    if !noise.confusions.is_empty() {
        writeln!(f, "\n  most frequent (true -> given)")?;
    }
    for confusion in &noise.confusions {
        let (truth, given) = (report.class(confusion.truth), report.class(confusion.given));
        writeln!(f, "  {:8}  {truth} -> {given}", confusion.count)?;
    }
    Ok(())
}

fn write_matrix(f: &mut Formatter, report: &Report, noise: &Noise, counts: &[Vec<usize>]) -> fmt::Result {
    let most = counts.iter().flatten().max().copied().unwrap_or(0);
    let wide = most.to_string().len().max(2) + 1;
    let names: Vec<String> = (0..counts.len()).map(|class| shown(&report.class(class as u32), 16)).collect();
    let name_wide = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut header = String::new();
    (0..counts.len()).try_for_each(|class| write!(header, "{class:wide$}"))?;
    writeln!(f, "  rows: true, columns: given, last: share of the row that is wrong")?;
    writeln!(f, "  {:name_wide$}     {header}", "")?;
    for (class, ((row, name), rate)) in counts.iter().zip(&names).zip(&noise.rates).enumerate() {
        write!(f, "  {name:name_wide$}  {class:2} ")?;
        for count in row {
            match count {
                0 => write!(f, "{:>wide$}", ".")?,
                count => write!(f, "{count:wide$}")?,
            }
        }
        writeln!(f, "  {:>8}", rate.map_or("-".to_owned(), percent))?;
    }
    Ok(())
}
