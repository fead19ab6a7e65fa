//! Trees as tables: one line per node, four columns separated by tabs.
//!
//! ```text
//! # comment
//! node        parent      depth  class_index
//! pet                     0
//! furry       pet         1
//! cat         furry       2      0
//! dog         furry       2      1
//! goldfish    pet         1      2
//! ```
//!
//! The heading is optional, and so are the depths: where one is given, it is checked. Nodes may come
//! in any order. Only the root has an empty parent, only classes have an index.

use std::collections::HashMap;

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::nearest;
use crate::{Error, Result};

const COLUMNS: &str = "node, parent, depth, class_index";

impl Taxonomy {
    /// Reads a table of nodes: columns `node`, `parent`, `depth`, `class_index`, separated by tabs.
    ///
    /// Lines starting with `#` are comments and a heading is optional. The class index is empty for
    /// nodes that are no classes. The depth may be left empty; if given, it must be right. Windows line
    /// ends and missing trailing tabs do no harm, nor does the order of the lines.
    pub fn from_tsv(name: &str, text: &str) -> Result<Self> {
        let rows = rows(name, text)?;
        let by_name: HashMap<&str, usize> =
            rows.iter().enumerate().rev().map(|(i, row)| (row.node, i)).collect();
        let twigs = rows.iter().map(|row| {
            let parent = match row.parent {
                "" => None,
                parent => Some(*by_name.get(parent).ok_or_else(|| {
                    let others = rows.iter().map(|row| row.node);
                    let hint = nearest(parent, others).map(|near| format!(" (did you mean `{near}`?)"));
                    let problem = format!(
                        "its parent `{parent}` is no node of the table{}; add a line for it or \
                            correct the name",
                        hint.unwrap_or_default()
                    );
                    row.flaw(name, problem)
                })?),
            };
            let stated_depth = row.number(name, "depth", row.depth)?;
            let class = row.number(name, "class index", row.class)?;
            Ok(Twig { name: row.node.to_owned(), parent, class, line: Some(row.line), stated_depth })
        });
        grow(name, twigs.collect::<Result<_>>()?)
    }

    /// The tree as a table that [`from_tsv`](Self::from_tsv) reads back to an equal tree.
    pub fn to_tsv(&self) -> String {
        let mut text = String::from("node\tparent\tdepth\tclass_index\n");
        for node in &self.nodes {
            let parent = node.parent.map_or("", |parent| &self.nodes[parent].name);
            let class = node.class.map(|class| class.to_string()).unwrap_or_default();
            text += &format!("{}\t{parent}\t{}\t{class}\n", node.name, node.depth);
        }
        text
    }
}

struct Row<'a> {
    line: usize,
    node: &'a str,
    parent: &'a str,
    depth: &'a str,
    class: &'a str,
}

impl Row<'_> {
    fn flaw(&self, tree: &str, problem: String) -> Error {
        Error::Tree {
            tree: tree.to_owned(),
            line: Some(self.line),
            node: Some(self.node.to_owned()),
            problem,
        }
    }

    fn number<T: std::str::FromStr>(&self, tree: &str, what: &str, cell: &str) -> Result<Option<T>> {
        match cell {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| {
                self.flaw(
                    tree,
                    format!("{what} `{cell}` is not a whole number from 0 up; the columns are {COLUMNS}"),
                )
            }),
        }
    }
}

fn rows<'a>(tree: &str, text: &'a str) -> Result<Vec<Row<'a>>> {
    let mut rows = Vec::new();
    // Some editors put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (i, content) in text.lines().enumerate() {
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        let mut cells = content.split('\t').map(str::trim);
        let mut cell = || cells.next().unwrap_or_default();
        let row = Row { line: i + 1, node: cell(), parent: cell(), depth: cell(), class: cell() };
        if let Some(extra) = cells.find(|cell| !cell.is_empty()) {
            return Err(row.flaw(tree, format!("a fifth column, `{extra}`; the columns are {COLUMNS}")));
        }
        if !content.contains('\t') {
            let problem = format!(
                "the line holds no tab; separate the columns {COLUMNS} by tabs, not by spaces or commas"
            );
            return Err(row.flaw(tree, problem));
        }
        let heading = rows.is_empty()
            && row.node.eq_ignore_ascii_case("node")
            && row.parent.eq_ignore_ascii_case("parent");
        // A heading is only the first line, and a tree of headings alone is empty.
        if heading && row.depth.parse::<u32>().is_err() {
            continue;
        }
        rows.push(row);
    }
    Ok(rows)
}
