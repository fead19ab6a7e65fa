//! From a list of twigs, each knowing its parent, to a checked tree.
//!
//! Every way of making a [`Taxonomy`] ends here, so the rules of a tree are checked in one place:
//! one root, no circle, unique names, class indices 0 to C - 1 each used once, every leaf a class.
//! Nothing recurses, so depth is bounded by memory only.

use std::collections::HashMap;

use super::names::shortlist;
use super::{Node, Taxonomy};
use crate::{Error, Result};

/// A node before it is part of a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Twig {
    pub(super) name: String,
    /// Position of the parent in the list of twigs.
    pub(super) parent: Option<usize>,
    pub(super) class: Option<usize>,
    /// Line of the text, for messages.
    pub(super) line: Option<usize>,
    /// Depth as the text states it, to be compared with the true one.
    pub(super) stated_depth: Option<u32>,
}

impl Twig {
    pub(super) fn new(name: impl Into<String>, parent: Option<usize>, class: Option<usize>) -> Self {
        Self { name: name.into(), parent, class, ..Self::default() }
    }

    /// Names it inside a message about another one.
    pub(super) fn describe(&self) -> String {
        let Self { name, line, class, .. } = self;
        match (line, class) {
            (Some(line), _) => format!("`{name}` in line {line}"),
            (None, Some(class)) => format!("`{name}`, class {class}"),
            (None, None) => format!("`{name}`"),
        }
    }
}

/// Shapes the twigs into the tree called `tree`, or says which of them breaks a rule.
pub(super) fn grow(tree: &str, mut twigs: Vec<Twig>) -> Result<Taxonomy> {
    for twig in &mut twigs {
        if twig.name.trim().len() < twig.name.len() {
            twig.name = twig.name.trim().to_owned();
        }
    }
    let plot = Plot { tree, twigs: &twigs };
    let root = plot.only_root()?;
    plot.check_names()?;
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); twigs.len()];
    for (i, twig) in twigs.iter().enumerate() {
        if let Some(parent) = twig.parent {
            children[parent].push(i);
        }
    }
    let order = preorder(root, &children);
    if order.len() < twigs.len() {
        return Err(plot.circle(&order));
    }
    plot.check_classes(&children)?;

    // Renumbered so that every parent comes before its children: later walks need no search.
    let mut place = vec![0; twigs.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    let mut nodes: Vec<Node> = Vec::with_capacity(twigs.len());
    let mut class_nodes = vec![0; twigs.iter().filter(|twig| twig.class.is_some()).count()];
    for (new, &old) in order.iter().enumerate() {
        let twig = &twigs[old];
        let parent = twig.parent.map(|parent| place[parent]);
        let depth = parent.map_or(0, |parent| nodes[parent].depth + 1);
        if let Some(stated) = twig.stated_depth
            && stated != depth
        {
            let problem = format!(
                "the depth column says {stated}, but the node lies at depth {depth}; correct the number or the parent"
            );
            return Err(plot.flaw(old, problem));
        }
        if let Some(class) = twig.class {
            class_nodes[class] = new;
        }
        let children = children[old].iter().map(|&child| place[child]).collect();
        nodes.push(Node { name: twig.name.clone(), parent, depth, class: twig.class, children });
    }
    Ok(Taxonomy { name: tree.to_owned(), nodes, class_nodes })
}

/// All nodes below and including `root`, each before its children, children in their given order.
fn preorder(root: usize, children: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(children.len());
    let mut ahead = vec![root];
    while let Some(node) = ahead.pop() {
        order.push(node);
        ahead.extend(children[node].iter().rev());
    }
    order
}

struct Plot<'a> {
    tree: &'a str,
    twigs: &'a [Twig],
}

impl Plot<'_> {
    fn flaw(&self, twig: usize, problem: String) -> Error {
        let Twig { name, line, .. } = &self.twigs[twig];
        Error::Tree { tree: self.tree.to_owned(), line: *line, node: Some(name.clone()), problem }
    }

    fn only_root(&self) -> Result<usize> {
        let mut roots = (0..self.twigs.len()).filter(|&i| self.twigs[i].parent.is_none());
        match (roots.next(), roots.next()) {
            (Some(root), None) => Ok(root),
            (Some(first), Some(second)) => Err(self.flaw(
                second,
                format!(
                    "a second root, after {}; a tree has one root, so give this node a parent (put both \
                     under a common root if need be)",
                    self.twigs[first].describe()
                ),
            )),
            (None, _) if self.twigs.is_empty() => Err(Error::Tree {
                tree: self.tree.to_owned(),
                line: None,
                node: None,
                problem: "it is empty; give at least a root and one class".to_owned(),
            }),
            (None, _) => Err(self.flaw(
                0,
                "no root: every node, this first one included, names a parent; leave the parent of the \
                 topmost node empty"
                    .to_owned(),
            )),
        }
    }

    fn check_names(&self) -> Result<()> {
        let mut seen = HashMap::with_capacity(self.twigs.len());
        for (i, twig) in self.twigs.iter().enumerate() {
            if twig.name.is_empty() {
                return Err(self.flaw(i, "the name is empty; give every node a name".to_owned()));
            }
            if twig.name.contains(char::is_control) || twig.name.starts_with('#') {
                let problem = "a name may neither start with # (that marks a comment) nor contain tabs, \
                    line breaks or other control characters; rename it";
                return Err(self.flaw(i, problem.to_owned()));
            }
            if let Some(first) = seen.insert(twig.name.as_str(), i) {
                let problem = format!(
                    "the name is taken already by {}; names must be unique, so rename one of them",
                    self.twigs[first].describe()
                );
                return Err(self.flaw(i, problem));
            }
        }
        Ok(())
    }

    /// Which nodes form the circle that keeps them from the root, given the others.
    #[expect(
        clippy::expect_used,
        reason = "some node was not reached, and only the root, which was, has no parent"
    )]
    fn circle(&self, reached: &[usize]) -> Error {
        let mut visits = vec![0_u8; self.twigs.len()];
        for &i in reached {
            visits[i] = 2;
        }
        let mut at = visits.iter().position(|&count| count == 0).expect("a node that was not reached");
        let mut round = Vec::new();
        // The first lap ends up in the circle, the second one records it.
        while visits[at] < 2 {
            visits[at] += 1;
            if visits[at] == 2 {
                round.push(at);
            }
            at = self.twigs[at].parent.expect("the parent of a node that was not reached");
        }
        let start =
            round.iter().copied().min_by_key(|&i| (self.twigs[i].line, i)).expect("a node in the circle");
        let names = shortlist(round.iter().map(|&i| self.twigs[i].name.as_str()), 6);
        self.flaw(
            start,
            format!(
                "a circle: following the parents ({names}) leads back to this node; correct one of \
                these parents"
            ),
        )
    }

    fn check_classes(&self, children: &[Vec<usize>]) -> Result<()> {
        // A map, not a table: an index of four billion must not cost four billion entries.
        let mut holder = HashMap::new();
        for (i, twig) in self.twigs.iter().enumerate() {
            if let Some(class) = twig.class
                && let Some(first) = holder.insert(class, i)
            {
                let problem = format!(
                    "class index {class} is taken already by {}; every class needs an index of its own",
                    self.twigs[first].describe()
                );
                return Err(self.flaw(i, problem));
            }
        }
        let classes = holder.len();
        if let Some(leaf) =
            (0..self.twigs.len()).find(|&i| children[i].is_empty() && self.twigs[i].class.is_none())
        {
            let problem = "a leaf that is no class; give it a class index, give it children, or remove it";
            return Err(self.flaw(leaf, problem.to_owned()));
        }
        if let Some(missing) = (0..classes).find(|class| !holder.contains_key(class))
            && let Some((&largest, &i)) = holder.iter().max()
        {
            let problem = format!(
                "class index {largest}, but no node has class index {missing}; the tree has {classes} \
                 classes, so number them 0 to {} without a gap",
                classes - 1
            );
            return Err(self.flaw(i, problem));
        }
        Ok(())
    }
}
