//! The pLCA distance and what the two thresholds make of it.

use super::Taxonomy;
use crate::{Error, Result};

/// How two classes stand to each other at given [`Thresholds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same class: $D = 0$.
    Same,
    /// Close relatives, $0 < D \le \eta_{\min}$: a pair of the paper's $\mathcal{P}_{\mathrm{sim}}$.
    Related,
    /// Neither close nor far: the plug-in leaves such pairs alone.
    Neutral,
    /// Far apart, $D > \eta_{\max}$: a pair of the paper's $\mathcal{P}_{\mathrm{neg}}$.
    Unrelated,
}

/// The pair $(\eta_{\min}, \eta_{\max})$, checked once so that every later use is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thresholds {
    eta_min: u32,
    eta_max: u32,
}

impl Default for Thresholds {
    /// The paper's choice, (3, 5).
    fn default() -> Self {
        Self { eta_min: 3, eta_max: 5 }
    }
}

impl Thresholds {
    /// Refuses $\eta_{\min} > \eta_{\max}$, which would make a pair related and unrelated at once.
    pub fn new(eta_min: u32, eta_max: u32) -> Result<Self> {
        if eta_min > eta_max {
            return Err(Error::Setting {
                name: "eta_min",
                value: format!("{eta_min} (with eta_max = {eta_max})"),
                requirement: "eta_min must not exceed eta_max, or a pair would be related and unrelated \
                    at once",
            });
        }
        Ok(Self { eta_min, eta_max })
    }

    /// Largest distance of related classes.
    pub fn eta_min(self) -> u32 {
        self.eta_min
    }

    /// Largest distance of classes that are not unrelated.
    pub fn eta_max(self) -> u32 {
        self.eta_max
    }

    /// What a distance means.
    pub fn relation(self, distance: u32) -> Relation {
        match distance {
            0 => Relation::Same,
            d if d <= self.eta_min => Relation::Related,
            d if d > self.eta_max => Relation::Unrelated,
            _ => Relation::Neutral,
        }
    }
}

/// The distances of all pairs of classes, C x C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distances {
    classes: usize,
    values: Vec<u32>,
}

impl Distances {
    /// Distances that come from no tree, C x C, row by row: the same both ways, and 0 from a class to itself.
    pub fn new(classes: usize, values: Vec<u32>) -> Result<Self> {
        let fail =
            |problem: String| Err(Error::Tree { tree: "distances".into(), line: None, node: None, problem });
        if classes == 0 || values.len() != classes * classes {
            return fail(format!(
                "{} values for {classes} classes, not one for each two of them",
                values.len()
            ));
        }
        for (a, row) in values.chunks(classes).enumerate() {
            if row[a] != 0 {
                return fail(format!("class {a} is at distance {} from itself, which must be 0", row[a]));
            }
            for (b, there) in row[..a].iter().enumerate() {
                let back = values[b * classes + a];
                if *there != back {
                    return fail(format!(
                        "from class {a} to class {b} it is {there}, but {back} the other way"
                    ));
                }
            }
        }
        Ok(Self { classes, values })
    }

    /// $D(a, b)$.
    pub fn get(&self, a: usize, b: usize) -> u32 {
        self.row(a)[b]
    }

    /// The distances of class `a` to every class.
    pub fn row(&self, a: usize) -> &[u32] {
        &self.values[a * self.classes..(a + 1) * self.classes]
    }

    /// Number of classes C.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All C x C values, row by row.
    pub fn as_slice(&self) -> &[u32] {
        &self.values
    }

    /// The largest distance; 0 for a single class.
    pub fn largest(&self) -> u32 {
        self.values.iter().copied().max().unwrap_or(0)
    }
}

impl Taxonomy {
    /// pLCA distance $D(a, b)$ of two classes (see the [module](super) for the formula).
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        let (mut a, mut b) = (self.class_nodes[a], self.class_nodes[b]);
        let mut steps = 0;
        while a != b {
            // The deeper one climbs; at equal depth either may, the other follows.
            let deeper = if self.nodes[a].depth >= self.nodes[b].depth { &mut a } else { &mut b };
            let Some(parent) = self.nodes[*deeper].parent else { break };
            *deeper = parent;
            steps += 1;
        }
        steps
    }

    /// The distances of all pairs. Takes 4 C² bytes and time proportional to C times the nodes, so
    /// keep the result rather than asking again.
    pub fn distances(&self) -> Distances {
        let classes = self.classes();
        let mut values = Vec::with_capacity(classes * classes);
        let mut to_node = Vec::new();
        for class in 0..classes {
            self.distances_from(class, &mut to_node);
            values.extend(self.class_nodes.iter().map(|&node| to_node[node]));
        }
        Distances { classes, values }
    }

    /// How two classes stand to each other.
    pub fn relation(&self, a: usize, b: usize, thresholds: Thresholds) -> Relation {
        thresholds.relation(self.distance(a, b))
    }

    /// Fills `to_node` with the number of edges from a class to every node.
    pub(super) fn distances_from(&self, class: usize, to_node: &mut Vec<u32>) {
        const UNKNOWN: u32 = u32::MAX;
        to_node.clear();
        to_node.resize(self.nodes.len(), UNKNOWN);
        let mut at = Some(self.class_nodes[class]);
        let mut steps = 0;
        while let Some(node) = at {
            to_node[node] = steps;
            steps += 1;
            at = self.nodes[node].parent;
        }
        // Parents come first, so whatever is off the path up is one step further than its parent.
        for node in 0..to_node.len() {
            if to_node[node] == UNKNOWN
                && let Some(parent) = self.nodes[node].parent
            {
                to_node[node] = to_node[parent] + 1;
            }
        }
    }
}
