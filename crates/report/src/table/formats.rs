//! The four forms.

use super::{Cell, Column, ColumnKind, NumberFormat, Table};

/// What stands for a number that is none.
const NONE: &str = "–";

/// One line of words: what would end the line or cannot be seen becomes a blank.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect()
}

/// A cell for people, with the sign between mean and deviation.
fn words(cell: &Cell) -> String {
    let number = |value, form: &NumberFormat| form.write(value).unwrap_or_else(|| NONE.into());
    match cell {
        Cell::Empty => NONE.into(),
        Cell::Text(text) => one_line(text),
        Cell::Number(value, form) => number(*value, form),
        Cell::Mean { mean, deviation, count, form } => {
            let deviation = deviation.and_then(|d| form.write(d)).map(|d| format!(" ± {d}"));
            format!("{}{} ({count})", number(*mean, form), deviation.unwrap_or_default())
        }
        Cell::Interval { value, ends, count, form } => {
            let ends = ends.map(|(low, high)| format!(" [{}, {}]", number(low, form), number(high, form)));
            format!("{}{} ({count})", number(*value, form), ends.unwrap_or_default())
        }
    }
}

impl Table {
    /// All cells as words, each with whether it is the best of its column.
    pub(crate) fn shown(&self) -> Vec<Vec<(String, bool)>> {
        self.marked().map(|row| row.into_iter().map(|(cell, best)| (words(cell), best)).collect()).collect()
    }

    /// Aligned text; the best of a column has a star.
    #[must_use]
    pub fn to_text(&self) -> String {
        let any_best = |column: usize| self.best(column).is_some();
        let mut lines: Vec<Vec<String>> = vec![self.columns.iter().map(|c| one_line(&c.head)).collect()];
        for row in self.marked() {
            let cell = |(column, (cell, best)): (usize, (&Cell, bool))| {
                let mark = if best {
                    "*"
                } else if any_best(column) {
                    " "
                } else {
                    ""
                };
                words(cell) + mark
            };
            lines.push(row.into_iter().enumerate().map(cell).collect());
        }
        let wide = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(wide).collect();
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &format!("{}\n", one_line(&self.title));
        }
        for (number, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(&self.columns).zip(&widths).map(|((cell, column), &width)| {
                if column.kind == ColumnKind::Text {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            text += cells.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
            if number == 0 {
                text += &"-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
                text.push('\n');
            }
        }
        if !self.note.is_empty() {
            text += &format!("{}\n", one_line(&self.note));
        }
        text
    }

    /// RFC 4180 with line feeds; cells a spreadsheet would take for a formula get an apostrophe in front; numbers are exact.
    /// Title and note are not part of it.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let heads = self.columns.iter().flat_map(|Column { head, kind, .. }| {
            let parts: &[&str] = match kind {
                ColumnKind::Text | ColumnKind::Number => &[""],
                ColumnKind::Mean => &[" mean", " sd", " n"],
                ColumnKind::Interval => &["", " low", " high", " n"],
            };
            parts.iter().map(move |part| quote(&guard(&format!("{head}{part}"))))
        });
        put(&mut text, heads.collect());
        for row in &self.rows {
            let mut cells = Vec::new();
            for (cell, column) in row.iter().zip(&self.columns) {
                let parts = exact(cell);
                let width = match column.kind {
                    ColumnKind::Text | ColumnKind::Number => 1,
                    ColumnKind::Mean => 3,
                    ColumnKind::Interval => 4,
                };
                // A cell of another kind than its column keeps its first number and leaves the others' places in order.
                cells.extend((0..width).map(|i| parts.get(i).cloned().unwrap_or_default()));
            }
            put(&mut text, cells);
        }
        text
    }

    /// A table of GitHub's Markdown; the best of a column is bold.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &format!("**{}**\n\n", markdown(&self.title));
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += &line(self.columns.iter().map(|column| markdown(&column.head)).collect());
        let rule =
            |column: &Column| if column.kind == ColumnKind::Text { "---".into() } else { "---:".into() };
        text += &line(self.columns.iter().map(rule).collect());
        for row in self.marked() {
            let cell = |(cell, best): (&Cell, bool)| {
                let words = markdown(&words(cell));
                if best { format!("**{words}**") } else { words }
            };
            text += &line(row.into_iter().map(cell).collect());
        }
        if !self.note.is_empty() {
            text += &format!("\n{}\n", markdown(&self.note));
        }
        text
    }

    /// A LaTeX `table` (package `booktabs`); the best of a column is bold.
    #[must_use]
    pub fn to_latex(&self) -> String {
        let sides: String =
            self.columns.iter().map(|c| if c.kind == ColumnKind::Text { 'l' } else { 'r' }).collect();
        let mut text = String::from("% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n");
        if !self.title.is_empty() {
            text += &format!("\\caption{{{}}}\n", latex(&self.title));
        }
        text += &format!("\\begin{{tabular}}{{{sides}}}\n\\toprule\n");
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        text += &line(self.columns.iter().map(|column| latex(&column.head)).collect());
        text += "\\midrule\n";
        for row in self.marked() {
            text += &line(row.into_iter().map(|(cell, best)| latex_cell(cell, best)).collect());
        }
        text += "\\bottomrule\n\\end{tabular}\n";
        if !self.note.is_empty() {
            text += &format!("\\par\\smallskip{{\\footnotesize {}}}\n", latex(&self.note));
        }
        text + "\\end{table}\n"
    }
}

/// Ends a line of CSV. A line of one empty cell would be no line at all for many readers.
fn put(text: &mut String, cells: Vec<String>) {
    let line = cells.join(",");
    *text += if line.is_empty() && cells.len() == 1 { "\"\"" } else { &line };
    text.push('\n');
}

/// The parts of a cell as CSV has them.
fn exact(cell: &Cell) -> Vec<String> {
    let part = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    match cell {
        Cell::Empty => vec![String::new()],
        Cell::Text(text) => vec![quote(&guard(text))],
        Cell::Number(value, _) => vec![value.to_string()],
        Cell::Mean { mean, deviation, count, .. } => {
            vec![mean.to_string(), part(*deviation), count.to_string()]
        }
        Cell::Interval { value, ends, count, .. } => {
            vec![value.to_string(), part(ends.map(|e| e.0)), part(ends.map(|e| e.1)), count.to_string()]
        }
    }
}

/// With an apostrophe in front of what a spreadsheet would run as a formula; blanks in front do not hide one.
fn guard(text: &str) -> String {
    const SIGNS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    let is_formula = text.trim_start_matches(' ').starts_with(SIGNS);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

fn quote(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Markdown in which every sign stands for itself.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        if matches!(c, '\\' | '|' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '~' | '#' | '&' | '$' | '!') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// LaTeX in which every sign stands for itself.
fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '<' => escaped += "\\textless{}",
            '>' => escaped += "\\textgreater{}",
            '|' => escaped += "\\textbar{}",
            '`' => escaped += "\\textasciigrave{}",
            '"' => escaped += "\\textquotedbl{}",
            '±' => escaped += "$\\pm$",
            '–' => escaped += "--",
            // After the end of a line, `[` and `*` would be an option of it; two hyphens would be a dash.
            '[' | ']' | '*' | '-' => escaped.extend(['{', c, '}']),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Numbers are set as mathematics, so that a minus is one.
fn latex_cell(cell: &Cell, best: bool) -> String {
    let number = |value: f64, form: &NumberFormat| form.write(value).unwrap_or_else(|| "\\textrm{--}".into());
    let strong = |text: String| if best { format!("\\mathbf{{{text}}}") } else { text };
    match cell {
        Cell::Empty => "--".into(),
        Cell::Text(text) => latex(text),
        Cell::Number(value, form) => format!("${}$", strong(number(*value, form))),
        Cell::Mean { mean, deviation, count, form } => {
            let deviation = deviation.and_then(|d| form.write(d)).map(|d| format!(" \\pm {d}"));
            format!("${}{}$ ({count})", strong(number(*mean, form)), deviation.unwrap_or_default())
        }
        Cell::Interval { value, ends, count, form } => {
            let ends = ends.map(|(low, high)| format!("\\ [{}, {}]", number(low, form), number(high, form)));
            format!("${}{}$ ({count})", strong(number(*value, form)), ends.unwrap_or_default())
        }
    }
}
