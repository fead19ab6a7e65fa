//! Trees as indented text, the form in which people draft them.
//!
//! ```text
//! entity
//!   vehicle: automobile, truck      # a node with its leaves
//!   mammal
//!     carnivore: cat, dog
//!     deer, horse                   # several leaves in a line
//! ```

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::{Match, NameIndex, nearest};
use crate::{Error, Result};

impl Taxonomy {
    /// Reads indented text: one node per line, deeper indentation means further down.
    ///
    /// `name: a, b, c` is short for `name` with the leaves a, b and c below it; more lines may follow
    /// below the same node. `a, b` puts several leaves side by side. `#` starts a comment, at the start
    /// of a line or after a blank. Indent by spaces or by tabs, but not by both.
    ///
    /// With `class_names` given, the nodes named there are the classes, in that order and spelt with the
    /// same forgiveness as in [`for_classes`](Self::for_classes); every leaf must be among them, and a
    /// node with children may be. With an empty list the leaves are the classes, in order of appearance.
    /// A class whose name contains a comma or a colon needs the [table form](Self::from_tsv).
    pub fn from_indented(name: &str, text: &str, class_names: &[impl AsRef<str>]) -> Result<Self> {
        let class_names: Vec<&str> = class_names.iter().map(|name| name.as_ref().trim()).collect();
        let mut draft =
            Draft { tree: name, twigs: Vec::new(), has_children: Vec::new(), announced: Vec::new() };
        draft.read(text.strip_prefix('\u{feff}').unwrap_or(text))?;
        draft.check_announced()?;
        if class_names.is_empty() {
            draft.number_leaves();
        } else {
            draft.number_by(&class_names)?;
        }
        grow(name, draft.twigs)
    }
}

struct Draft<'a> {
    tree: &'a str,
    twigs: Vec<Twig>,
    has_children: Vec<bool>,
    /// Nodes written `name:`, whose children must follow.
    announced: Vec<usize>,
}

impl Draft<'_> {
    fn flaw(&self, line: Option<usize>, node: &str, problem: impl Into<String>) -> Error {
        Error::Tree { tree: self.tree.to_owned(), line, node: Some(node.to_owned()), problem: problem.into() }
    }

    fn add(&mut self, name: &str, parent: Option<usize>, line: usize) -> Result<usize> {
        if name.is_empty() {
            let problem = "a name is missing between two commas or beside a colon; remove the extra sign";
            let node = parent.map(|parent| self.twigs[parent].name.clone());
            return Err(Error::Tree {
                tree: self.tree.to_owned(),
                line: Some(line),
                node,
                problem: problem.into(),
            });
        }
        if let Some(parent) = parent {
            self.has_children[parent] = true;
        }
        self.has_children.push(false);
        self.twigs.push(Twig { line: Some(line), ..Twig::new(name, parent, None) });
        Ok(self.twigs.len() - 1)
    }

    fn read(&mut self, text: &str) -> Result<()> {
        // Open levels from the root to the last line: width of the indentation, and the node there
        // (none where a line lists several leaves, below which nothing can hang).
        let mut levels: Vec<(usize, Option<usize>)> = Vec::new();
        // The sign used for indentation so far.
        let mut sign = None;
        for (i, content) in text.lines().enumerate() {
            let (line, content) = (i + 1, without_comment(content).trim_end());
            let body = content.trim_start_matches([' ', '\t']);
            if body.is_empty() {
                continue;
            }
            let indent = &content[..content.len() - body.len()];
            let width = indent.len();
            for c in indent.chars() {
                if *sign.get_or_insert(c) != c {
                    let problem = "indented by tabs and by spaces, or otherwise than the lines above; use \
                        one of the two throughout";
                    return Err(self.flaw(Some(line), body, problem));
                }
            }
            let mut shallowest = usize::MAX;
            while let Some(&(above, _)) = levels.last()
                && above >= width
            {
                shallowest = above;
                levels.pop();
            }
            if shallowest != usize::MAX && shallowest != width {
                let problem = format!(
                    "indented by {width}, which matches none of the lines above; indent it like its \
                     siblings, or more than its parent"
                );
                return Err(self.flaw(Some(line), body, problem));
            }
            let parent = match levels.last() {
                None => None,
                Some(&(_, Some(parent))) => Some(parent),
                Some(&(_, None)) => {
                    let problem = "indented below a line of several leaves, so its parent is unclear; \
                        give that parent a line of its own";
                    return Err(self.flaw(Some(line), body, problem));
                }
            };
            let node = self.read_line(body, parent, line)?;
            levels.push((width, node));
        }
        Ok(())
    }

    /// Adds the nodes of one line; the node below which further lines may hang, if there is one.
    fn read_line(&mut self, body: &str, parent: Option<usize>, line: usize) -> Result<Option<usize>> {
        if let Some((name, leaves)) = body.split_once(':') {
            let node = self.add(name.trim(), parent, line)?;
            if leaves.trim().is_empty() {
                self.announced.push(node);
            } else {
                for leaf in leaves.split(',') {
                    self.add(leaf.trim(), Some(node), line)?;
                }
            }
            return Ok(Some(node));
        }
        if !body.contains(',') {
            return self.add(body, parent, line).map(Some);
        }
        for leaf in body.split(',') {
            self.add(leaf.trim(), parent, line)?;
        }
        Ok(None)
    }

    fn check_announced(&self) -> Result<()> {
        match self.announced.iter().find(|&&node| !self.has_children[node]) {
            None => Ok(()),
            Some(&node) => {
                let Twig { name, line, .. } = &self.twigs[node];
                let problem = "has a colon but no members; list them after the colon or on indented lines \
                    below, or remove the colon";
                Err(self.flaw(*line, name, problem))
            }
        }
    }

    fn number_leaves(&mut self) {
        let leaves =
            self.twigs.iter_mut().zip(&self.has_children).filter(|(_, has_children)| !**has_children);
        for (class, (leaf, _)) in leaves.enumerate() {
            leaf.class = Some(class);
        }
    }

    fn number_by(&mut self, class_names: &[&str]) -> Result<()> {
        let index = NameIndex::new(class_names.iter().copied());
        let mut found = vec![None; class_names.len()];
        // Leaves first: where a group bears the name of its class in another case, the leaf is meant.
        let mut order: Vec<usize> = (0..self.twigs.len()).collect();
        order.sort_by_key(|&i| self.has_children[i]);
        for i in order {
            let (line, is_leaf) = (self.twigs[i].line, !self.has_children[i]);
            let name = self.twigs[i].name.clone();
            let class = match index.find(&name) {
                Match::At(class) => class,
                _ if !is_leaf => continue,
                Match::Ambiguous(a, b) => {
                    let problem = format!(
                        "could be either of the classes `{}` and `{}`; spell it exactly",
                        class_names[a], class_names[b]
                    );
                    return Err(self.flaw(line, &name, problem));
                }
                Match::Absent => {
                    let hint = nearest(&name, class_names.iter().copied())
                        .map(|near| format!(" (did you mean `{near}`?)"))
                        .unwrap_or_default();
                    let problem = format!(
                        "a leaf that is not in the list of classes{hint}; add it to the list, correct its \
                         name, or remove it"
                    );
                    return Err(self.flaw(line, &name, problem));
                }
            };
            match found[class] {
                None => {
                    found[class] = Some(i);
                    self.twigs[i].class = Some(class);
                }
                Some(_) if !is_leaf => {}
                Some(first) => {
                    let first: &Twig = &self.twigs[first];
                    let problem = format!(
                        "class `{}` stands in the tree already, as {}; a class has one place, so remove \
                         one of them",
                        class_names[class],
                        first.describe()
                    );
                    return Err(self.flaw(line, &name, problem));
                }
            }
        }
        match found.iter().position(Option::is_none) {
            None => Ok(()),
            Some(class) => {
                let name = class_names[class];
                if class_names[..class].contains(&name) {
                    return Err(self.flaw(
                        None,
                        name,
                        "listed twice among the classes; class names must be unique",
                    ));
                }
                let problem = format!("class {class} of the list is nowhere in the tree; add a line for it");
                Err(self.flaw(None, name, problem))
            }
        }
    }
}

/// Cuts a comment off: `#` at the start or after a blank, so that `C#` stays a name.
fn without_comment(line: &str) -> &str {
    let start = line
        .char_indices()
        .find(|&(at, c)| c == '#' && line[..at].chars().next_back().is_none_or(char::is_whitespace))
        .map_or(line.len(), |(at, _)| at);
    &line[..start]
}
