//! A tree as a picture: root on the left, classes on the right, one column per depth, so that the
//! distance of two classes can be counted off as the edges between them.

use std::fmt::Write;

use super::Taxonomy;

const ROW: f64 = 26.0;
const BOX: f64 = 20.0;
const GAP: f64 = 38.0;
const MARGIN: f64 = 18.0;
const CORNER: f64 = 6.0;
const HEAD: f64 = 46.0;
const LONGEST_LABEL: usize = 40;

/// Hues of the branches, light and dark: line and fill. Told apart by most colour-blind people.
const HUES: [(&str, &str, &str, &str); 8] = [
    ("#2f6db3", "#e6f0fa", "#7db4ec", "#1a3350"),
    ("#b4541f", "#fbece2", "#f0a070", "#4a2b18"),
    ("#2d7d5a", "#e3f3eb", "#74c9a1", "#183b2c"),
    ("#8a4a9e", "#f3e8f6", "#cf9be0", "#3b2244"),
    ("#8c6d10", "#f8f1d8", "#dcbf5a", "#3d3210"),
    ("#a83a5e", "#fae6ed", "#ee93b0", "#481b2b"),
    ("#1f7a8c", "#e0f2f5", "#6cc5d6", "#12383f"),
    ("#5c6370", "#eceef1", "#aab2bf", "#2b3038"),
];

impl Taxonomy {
    /// A picture of the tree as a self-contained SVG file, for light and dark backgrounds alike.
    #[expect(clippy::expect_used, reason = "a String takes whatever is written")]
    pub fn to_svg(&self) -> String {
        let layout = Layout::of(self);
        let mut svg = String::new();
        layout.draw(self, &mut svg).expect("a String takes whatever is written");
        svg
    }
}

struct Layout {
    /// Left edge of every column, one per depth.
    columns: Vec<f64>,
    /// Middle of every node's row.
    y: Vec<f64>,
    label: Vec<String>,
    width: Vec<f64>,
    hue: Vec<Option<usize>>,
    size: (f64, f64),
}

impl Layout {
    fn of(tree: &Taxonomy) -> Self {
        let nodes = &tree.nodes;
        let label: Vec<String> = nodes.iter().map(|node| shorten(&node.name)).collect();
        let index_width = tree.classes().saturating_sub(1).to_string().len() as f64 * 7.0 + 12.0;
        let width: Vec<f64> = nodes
            .iter()
            .zip(&label)
            .map(|(node, label)| {
                text_width(label) + 18.0 + if node.class.is_some() { index_width } else { 0.0 }
            })
            .collect();

        let depths = nodes.iter().map(|node| node.depth as usize + 1).max().unwrap_or(0);
        let mut column_width = vec![0.0_f64; depths];
        for (node, &width) in nodes.iter().zip(&width) {
            let column = &mut column_width[node.depth as usize];
            *column = column.max(width);
        }
        let mut columns = Vec::with_capacity(depths);
        let mut x = MARGIN;
        for width in column_width {
            columns.push(x);
            x += width + GAP;
        }

        // Leaves from top to bottom, then every parent halfway between its first and last child.
        let mut y = vec![0.0; nodes.len()];
        let mut next = HEAD + ROW / 2.0;
        for (i, node) in nodes.iter().enumerate() {
            if node.children.is_empty() {
                y[i] = next;
                next += ROW;
            }
        }
        for (i, node) in nodes.iter().enumerate().rev() {
            if let (Some(&first), Some(&last)) = (node.children.first(), node.children.last()) {
                y[i] = (y[first] + y[last]) / 2.0;
            }
        }

        let title = text_width(&caption(tree)) * 0.95 + text_width(tree.name()) * 1.3;
        let size = ((x - GAP + MARGIN).max(title + 3.0 * MARGIN), next - ROW / 2.0 + MARGIN);
        Self { columns, y, label, width, hue: hues(tree), size }
    }

    fn draw(&self, tree: &Taxonomy, svg: &mut String) -> std::fmt::Result {
        let (w, h) = self.size;
        let title = escape(&format!("Class tree {}", tree.name()));
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="negscale-tree" role="img" width="{w:.0}" height="{h:.0}" viewBox="0 0 {w:.0} {h:.0}">"#
        )?;
        writeln!(svg, "<title>{title}</title>")?;
        self.style(svg)?;
        writeln!(svg, r#"<rect class="page" width="{w:.0}" height="{h:.0}" rx="8"/>"#)?;
        writeln!(
            svg,
            r#"<text class="head" x="{MARGIN}" y="28">{}<tspan class="note" dx="10">{}</tspan></text>"#,
            escape(&shorten(tree.name())),
            escape(&caption(tree))
        )?;
        for i in 0..tree.nodes.len() {
            self.edges(tree, i, svg)?;
        }
        for i in 0..tree.nodes.len() {
            self.node(tree, i, svg)?;
        }
        writeln!(svg, "</svg>")
    }

    /// Plain rules with a second set for dark surroundings. Every rule starts with the name of the
    /// picture, so that several pictures can stand in one HTML page without repainting it.
    fn style(&self, svg: &mut String) -> std::fmt::Result {
        let rule = |svg: &mut String, colours: &str| {
            for rule in colours.split('|') {
                writeln!(svg, ".negscale-tree {}", rule.trim())?;
            }
            std::fmt::Result::Ok(())
        };
        writeln!(svg, "<style>")?;
        rule(
            svg,
            "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#1f2328}
            |.head{font-size:16px;font-weight:600}|.note{font-size:12px;font-weight:400;fill:#667079}
            |.page{fill:#fff}|.edge{fill:none;stroke:#b6bec7;stroke-width:1.2}
            |.box{fill:#f3f4f6;stroke:#d5dae0;stroke-width:1}|.inner{fill:#59636e}
            |.index{font-size:11px;fill:#8b949e;text-anchor:end}|.class{font-weight:500}",
        )?;
        for (k, (line, fill, _, _)) in HUES.iter().enumerate() {
            rule(
                svg,
                &format!(
                    ".box.h{k}{{fill:{fill};stroke:{line};stroke-opacity:.35}}|.edge.h{k}{{stroke:{line}}}|.inner.h{k}{{fill:{line}}}"
                ),
            )?;
        }
        writeln!(svg, "@media (prefers-color-scheme:dark){{")?;
        rule(
            svg,
            "text{fill:#e6e9ec}|.note{fill:#98a2ad}|.page{fill:#14181d}|.edge{stroke:#4a545f}
            |.box{fill:#222830;stroke:#38414b}|.inner{fill:#a3adb8}|.index{fill:#7d8791}",
        )?;
        for (k, (_, _, line, fill)) in HUES.iter().enumerate() {
            rule(
                svg,
                &format!(
                    ".box.h{k}{{fill:{fill};stroke:{line}}}|.edge.h{k}{{stroke:{line}}}|.inner.h{k}{{fill:{line}}}"
                ),
            )?;
        }
        writeln!(svg, "}}\n</style>")
    }

    fn hue_class(&self, node: usize) -> String {
        self.hue[node].map(|hue| format!(" h{hue}")).unwrap_or_default()
    }

    /// The trunk out of a node, in its own colour, and an elbow with rounded corners to each child, in
    /// the child's.
    fn edges(&self, tree: &Taxonomy, i: usize, svg: &mut String) -> std::fmt::Result {
        let node = &tree.nodes[i];
        let Some(&x2) = self.columns.get(node.depth as usize + 1) else { return Ok(()) };
        let y1 = self.y[i];
        // The bend keeps to the gap between columns, clear of the boxes of longer-named neighbours.
        let bend = x2 - GAP / 2.0;
        let start = bend - CORNER;
        if !node.children.is_empty() {
            let (x1, class) = (self.columns[node.depth as usize] + self.width[i], self.hue_class(i));
            writeln!(svg, r#"<path class="edge{class}" d="M{x1:.1} {y1:.1}H{start:.1}"/>"#)?;
        }
        for &child in &node.children {
            let (y2, class) = (self.y[child], self.hue_class(child));
            let turn = (y2 - y1).clamp(-2.0 * CORNER, 2.0 * CORNER) / 2.0;
            write!(svg, r#"<path class="edge{class}" d="M{start:.1} {y1:.1}"#)?;
            if turn != 0.0 {
                let (down, up, end) = (y1 + turn, y2 - turn, bend + CORNER);
                write!(
                    svg,
                    "Q{bend:.1} {y1:.1} {bend:.1} {down:.1}V{up:.1}Q{bend:.1} {y2:.1} {end:.1} {y2:.1}"
                )?;
            }
            writeln!(svg, r#"H{x2:.1}"/>"#)?;
        }
        Ok(())
    }

    fn node(&self, tree: &Taxonomy, i: usize, svg: &mut String) -> std::fmt::Result {
        let node = &tree.nodes[i];
        let (x, y, width) = (self.columns[node.depth as usize], self.y[i], self.width[i]);
        let (top, base, class) = (y - BOX / 2.0, y + 4.5, self.hue_class(i));
        write!(svg, "<g>")?;
        if self.label[i] != node.name {
            write!(svg, "<title>{}</title>", escape(&node.name))?;
        }
        // Groups are tinted boxes with muted names; classes stand out by dark names and their index.
        if !node.children.is_empty() {
            write!(
                svg,
                r#"<rect class="box{class}" x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{BOX}" rx="6"/>"#
            )?;
        }
        let label = escape(&self.label[i]);
        match node.class {
            Some(index) => {
                let left = x + width - text_width(&self.label[i]) - 9.0;
                write!(svg, r#"<text class="index" x="{:.1}" y="{base:.1}">{index}</text>"#, left - 6.0)?;
                write!(svg, r#"<text class="class" x="{left:.1}" y="{base:.1}">{label}</text>"#)?;
            }
            None => {
                write!(svg, r#"<text class="inner{class}" x="{:.1}" y="{base:.1}">{label}</text>"#, x + 9.0)?
            }
        }
        writeln!(svg, "</g>")
    }
}

fn caption(tree: &Taxonomy) -> String {
    let classes = tree.classes();
    let noun = if classes == 1 { "class" } else { "classes" };
    format!("{classes} {noun}; distance = number of edges between two classes")
}

/// Colours the branches below the first depth that has three nodes or more (two, failing that).
fn hues(tree: &Taxonomy) -> Vec<Option<usize>> {
    let mut count = Vec::new();
    for node in &tree.nodes {
        let depth = node.depth as usize;
        if depth == count.len() {
            count.push(0);
        }
        count[depth] += 1;
    }
    let level =
        count.iter().position(|&nodes| nodes >= 3).or_else(|| count.iter().position(|&nodes| nodes == 2));
    let mut hue = vec![None; tree.nodes.len()];
    let mut next = 0;
    for (i, node) in tree.nodes.iter().enumerate() {
        if Some(node.depth as usize) == level {
            hue[i] = Some(next % HUES.len());
            next += 1;
        } else if let Some(parent) = node.parent {
            hue[i] = hue[parent];
        }
    }
    hue
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= LONGEST_LABEL {
        return name.to_owned();
    }
    name.chars().take(LONGEST_LABEL - 1).chain(['…']).collect()
}

/// Roughly how wide 13 px text runs; fonts differ, so a little generous.
fn text_width(text: &str) -> f64 {
    let letter = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | '\'' | '(' | ')' | '/' | '-' => 5.2,
        'm' | 'w' | 'M' | 'W' => 11.6,
        c if c.is_ascii_uppercase() => 9.0,
        c if c.is_ascii() => 7.9,
        _ => 13.0,
    };
    text.chars().map(letter).sum()
}

/// Text as it may stand in XML. Two characters are no XML even when escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
