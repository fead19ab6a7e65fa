//! Fitting a tree to the classes of a data set.

use std::collections::HashMap;

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::{Match, NameIndex, loose, nearest};
use crate::{Error, Result};

impl Taxonomy {
    /// The same tree with the classes numbered and spelt as in a data set.
    ///
    /// Names are matched exactly or, failing that, without regard to case, spaces, `_` and `-`
    /// (`Guinea Pig` is `guinea_pig`). Classes of the tree that the data lacks are dropped, together with
    /// groups that become empty; the distances between the remaining classes stay as they were. Classes
    /// of the data that the tree lacks are an error that names every one of them.
    ///
    /// The classes take the data's spelling, except where another node bears that very name.
    pub fn for_classes(&self, names: &[impl AsRef<str>]) -> Result<Self> {
        let names: Vec<&str> = names.iter().map(|name| name.as_ref().trim()).collect();
        let index = NameIndex::new(self.class_names());
        let mut absent = Vec::new();
        // New class index of every node that stays a class.
        let mut class_of_node: HashMap<usize, usize> = HashMap::new();
        for (class, &name) in names.iter().enumerate() {
            let old = match index.find(name) {
                Match::At(old) => old,
                Match::Absent => {
                    absent.push(name);
                    continue;
                }
                Match::Ambiguous(a, b) => {
                    let (a, b) = (self.class_name(a), self.class_name(b));
                    let problem = format!(
                        "a class of the data that could be `{a}` or `{b}` of the tree; spell it exactly"
                    );
                    return Err(self.flaw(name, problem));
                }
            };
            if let Some(first) = class_of_node.insert(self.class_nodes[old], class) {
                let problem = format!(
                    "classes {first} (`{}`) and {class} (`{name}`) of the data both fit this class; class \
                     names must differ in more than case and separators",
                    names[first]
                );
                return Err(self.flaw(self.class_name(old), problem));
            }
        }
        if !absent.is_empty() {
            // All are named, but past the first few a guess at what was meant helps nobody.
            let hints = absent.iter().enumerate().map(|(i, name)| match i {
                0..20 => self.explain_absence(name),
                _ => format!("`{name}`"),
            });
            let hint = hints.collect::<Vec<_>>().join(", ");
            let absent = absent.into_iter().map(str::to_owned).collect();
            return Err(Error::AbsentClasses { tree: self.name.clone(), absent, hint });
        }
        self.with_classes(&names, &class_of_node)
    }

    fn with_classes(&self, names: &[&str], class_of_node: &HashMap<usize, usize>) -> Result<Self> {
        // Children come after their parents, so walking backwards sees what is below before what is above.
        let mut stays = vec![false; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate().rev() {
            stays[i] |= class_of_node.contains_key(&i);
            if let (true, Some(parent)) = (stays[i], node.parent) {
                stays[parent] = true;
            }
        }
        let taken: HashMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
        let mut place = vec![0; self.nodes.len()];
        let mut twigs = Vec::new();
        for (i, node) in self.nodes.iter().enumerate().filter(|&(i, _)| stays[i]) {
            place[i] = twigs.len();
            let class = class_of_node.get(&i).copied();
            let name = match class.map(|class| names[class]) {
                Some(wanted) if taken.get(wanted).is_none_or(|&holder| holder == i) => wanted,
                _ => &node.name,
            };
            twigs.push(Twig::new(name, node.parent.map(|parent| place[parent]), class));
        }
        grow(&self.name, twigs)
    }

    fn explain_absence(&self, name: &str) -> String {
        let wanted = loose(name);
        if self.nodes.iter().any(|node| node.class.is_none() && loose(&node.name) == wanted) {
            return format!("`{name}` (a group of the tree, not a class)");
        }
        match nearest(name, self.class_names()) {
            Some(near) => format!("`{name}` (did you mean `{near}`?)"),
            None => format!("`{name}`"),
        }
    }

    fn flaw(&self, node: &str, problem: String) -> Error {
        Error::Tree { tree: self.name.clone(), line: None, node: Some(node.to_owned()), problem }
    }
}
