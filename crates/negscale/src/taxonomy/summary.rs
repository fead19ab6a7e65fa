//! A tree in figures: what the thresholds make of its pairs, and what the plug-in can do with them.

use std::collections::BTreeMap;
use std::fmt;

use super::names::shortlist;
use super::{Relation, Taxonomy, Thresholds};

/// How the pairs of different classes divide at given thresholds. Prints as a short report.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Name of the tree.
    pub tree: String,
    /// Number of classes.
    pub classes: usize,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// Pairs of different classes, each counted once: C (C - 1) / 2.
    pub pairs: usize,
    /// Pairs with $0 < D \le \eta_{\min}$, the size of $\mathcal{P}_{\mathrm{sim}}$ over classes.
    pub related: usize,
    /// Pairs in between.
    pub neutral: usize,
    /// Pairs with $D > \eta_{\max}$, the size of $\mathcal{P}_{\mathrm{neg}}$ over classes.
    pub unrelated: usize,
    /// How many pairs have each distance.
    pub histogram: BTreeMap<u32, usize>,
    /// Names of the classes that are related to no other.
    pub without_relative: Vec<String>,
    /// Names of the classes that are unrelated to no other.
    pub without_unrelated: Vec<String>,
}

impl Taxonomy {
    /// Counts the pairs of each relation and the classes left out of them.
    pub fn summary(&self, thresholds: Thresholds) -> Summary {
        let classes = self.classes();
        let mut histogram = BTreeMap::new();
        let (mut without_relative, mut without_unrelated) = (Vec::new(), Vec::new());
        let mut to_node = Vec::new();
        for a in 0..classes {
            self.distances_from(a, &mut to_node);
            let (mut relatives, mut strangers) = (0, 0);
            for (b, &node) in self.class_nodes.iter().enumerate() {
                match thresholds.relation(to_node[node]) {
                    Relation::Related => relatives += 1,
                    Relation::Unrelated => strangers += 1,
                    Relation::Same | Relation::Neutral => {}
                }
                if b > a {
                    *histogram.entry(to_node[node]).or_insert(0) += 1;
                }
            }
            if relatives == 0 {
                without_relative.push(self.class_name(a).to_owned());
            }
            if strangers == 0 {
                without_unrelated.push(self.class_name(a).to_owned());
            }
        }
        let count = |wanted| {
            histogram
                .iter()
                .filter(|&(&d, _)| thresholds.relation(d) == wanted)
                .map(|(_, &pairs)| pairs)
                .sum()
        };
        Summary {
            tree: self.name.clone(),
            classes,
            thresholds,
            pairs: classes * classes.saturating_sub(1) / 2,
            related: count(Relation::Related),
            neutral: count(Relation::Neutral),
            unrelated: count(Relation::Unrelated),
            histogram,
            without_relative,
            without_unrelated,
        }
    }
}

impl Summary {
    /// What the plug-in cannot do at these thresholds, each a sentence; empty if all is well.
    pub fn warnings(&self) -> Vec<String> {
        let (eta_min, eta_max) = (self.thresholds.eta_min(), self.thresholds.eta_max());
        let mut warnings = Vec::new();
        let (Some(smallest), Some(largest)) =
            (self.histogram.keys().next(), self.histogram.keys().next_back())
        else {
            warnings
                .push("SNOP and DCSA will be off: the tree has a single class, hence no pairs".to_owned());
            return warnings;
        };
        if self.unrelated == 0 {
            warnings.push(format!(
                "SNOP and DCSA will be off: no class pair is unrelated (P_neg is empty), as the largest \
                 distance is {largest} and eta_max = {eta_max}; choose eta_max below {largest} or a \
                 deeper tree"
            ));
        }
        if self.related == 0 {
            warnings.push(format!(
                "DCSA will be off: no class pair is related (P_sim is empty), as the smallest distance is \
                 {smallest} and eta_min = {eta_min}; choose eta_min = {smallest} or more"
            ));
        }
        warnings
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tree, classes, pairs, .. } = self;
        let (eta_min, eta_max) = (self.thresholds.eta_min(), self.thresholds.eta_max());
        let percent = |count: usize| 100.0 * count as f64 / (*pairs).max(1) as f64;
        let named =
            |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let (classes, pairs) = (named(*classes, "class", "classes"), named(*pairs, "pair", "pairs"));
        writeln!(f, "class tree {tree}: {classes}, {pairs} of different classes")?;
        let in_between =
            if eta_min == eta_max { "none".to_owned() } else { format!("{eta_min} < D <= {eta_max}") };
        for (relation, condition, count) in [
            ("related", format!("0 < D <= {eta_min}"), self.related),
            ("neutral", in_between, self.neutral),
            ("unrelated", format!("D > {eta_max}"), self.unrelated),
        ] {
            writeln!(f, "  {relation:<10} {condition:<12} {count:>7}  {:5.1} %", percent(count))?;
        }
        writeln!(f, "  pairs by distance D")?;
        let widest = self.histogram.values().copied().max().unwrap_or(1);
        for (d, &count) in &self.histogram {
            let bar = "#".repeat((30 * count).div_ceil(widest));
            writeln!(f, "  {d:>4} {count:>7}  {bar}")?;
        }
        for (what, names) in
            [("a related class", &self.without_relative), ("an unrelated class", &self.without_unrelated)]
        {
            if !names.is_empty() {
                writeln!(f, "  classes without {what}: {}", shortlist(names.iter().map(String::as_str), 12))?;
            }
        }
        for warning in self.warnings() {
            writeln!(f, "  warning: {warning}")?;
        }
        Ok(())
    }
}
