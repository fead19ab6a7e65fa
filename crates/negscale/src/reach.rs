//! What the plug-in finds to do in a class tree, known before the first batch.

use crate::taxonomy::Summary;
use crate::{Result, Settings, Taxonomy};
use std::fmt;

/// What becomes of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermReach {
    /// It is switched off, or has weight 0.
    Off,
    /// It is asked for, but no two classes stand in the relation that it speaks of: it is 0 in every batch.
    Idle,
    /// There are pairs for it.
    Acts,
}

/// Which pairs a class tree has at the thresholds of some settings, and which terms have a use for them. Prints as a short
/// phrase.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// The pairs of classes.
    pub pairs: Summary,
    /// The Structured Negative Orthogonality Penalty, which needs unrelated pairs.
    pub snop: TermReach,
    /// The Dissimilarity-Calibrated Similarity Adjustment, which needs related and unrelated ones.
    pub dcsa: TermReach,
}

impl Reach {
    /// Of these settings in this tree. Random pairs are as many as the tree has unrelated ones.
    pub fn of(settings: &Settings, tree: &Taxonomy) -> Result<Self> {
        let pairs = tree.summary(settings.thresholds()?);
        let term = |is_on: bool, has_pairs: bool| match (is_on, has_pairs) {
            (false, _) => TermReach::Off,
            (true, false) => TermReach::Idle,
            (true, true) => TermReach::Acts,
        };
        let inside = settings.global + settings.local;
        Ok(Self {
            snop: term(settings.snop && settings.lambda * inside > 0.0, pairs.unrelated > 0),
            dcsa: term(settings.dcsa && settings.mu > 0.0, pairs.unrelated > 0 && pairs.related > 0),
            pairs,
        })
    }

    /// Whether any term acts.
    pub fn acts(&self) -> bool {
        [self.snop, self.dcsa].contains(&TermReach::Acts)
    }

    /// Whether a term is asked for that can do nothing.
    pub fn is_idle(&self) -> bool {
        [self.snop, self.dcsa].contains(&TermReach::Idle)
    }

    /// What is asked for and cannot be done, each a sentence that says what to set; empty if all is well.
    pub fn warnings(&self) -> Vec<String> {
        if !self.is_idle() {
            return Vec::new();
        }
        let all = self.pairs.warnings().into_iter();
        // Without related pairs only DCSA is idle, which need not have been asked for.
        all.filter(|warning| self.dcsa == TermReach::Idle || !warning.starts_with("DCSA")).collect()
    }

    /// The name of a plug-in with what becomes of it, where that is less than the name promises.
    pub fn name(&self, plugin: &str) -> String {
        let less = match (self.snop, self.dcsa) {
            (TermReach::Acts, TermReach::Idle) => "SNOP alone",
            (TermReach::Off, TermReach::Off) => "weight 0",
            _ if !self.acts() => "no pairs",
            _ => return plugin.to_owned(),
        };
        format!("{plugin} ({less})")
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { related, unrelated, pairs, without_relative: lonely, .. } = &self.pairs;
        write!(f, "{related} of {pairs} class pairs related, {unrelated} unrelated")?;
        let (shown, more) = lonely.split_at(lonely.len().min(5));
        let shown = shown.join(", ");
        match (lonely.len(), more.len()) {
            (0, _) => Ok(()),
            (1, _) => write!(f, " ({shown} has no relative)"),
            (_, 0) => write!(f, " ({shown} have no relative)"),
            (_, more) => write!(f, " ({shown} and {more} more have no relative)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TermReach::{Acts, Idle, Off};

    const TWO_LEVELS: &str = "all\n  animals\n    cat\n    dog\n  vehicles\n    car\n    bus\n";

    fn reach(settings: Settings) -> Reach {
        Reach::of(&settings, &Taxonomy::from_indented("two", TWO_LEVELS, &[""; 0]).unwrap()).unwrap()
    }

    #[test]
    fn a_tree_of_two_levels_has_no_unrelated_pair_and_leaves_every_term_idle() {
        let found = reach(Settings::default());
        assert_eq!((found.snop, found.dcsa, found.acts()), (Idle, Idle, false));
        assert_eq!((found.pairs.related, found.pairs.unrelated), (2, 0));
        assert_eq!(found.name("negscale"), "negscale (no pairs)");
        assert!(found.warnings()[0].contains("eta_max below 4"), "{:?}", found.warnings());
        let mended = reach(Settings { eta_max: 3, ..Settings::default() });
        assert_eq!((mended.snop, mended.dcsa, mended.name("negscale").as_str()), (Acts, Acts, "negscale"));
        assert!(mended.warnings().is_empty());
    }

    #[test]
    fn each_ablation_is_judged_by_the_terms_that_it_keeps() {
        let apart = Settings { eta_min: 1, eta_max: 1, ..Settings::default() };
        let whole = reach(apart.clone());
        assert_eq!((whole.snop, whole.dcsa, whole.acts()), (Acts, Idle, true));
        assert_eq!(whole.name("negscale"), "negscale (SNOP alone)");
        assert_eq!(whole.warnings().len(), 1, "{:?}", whole.warnings());
        let snop_alone = reach(Settings { dcsa: false, ..apart.clone() });
        assert_eq!((snop_alone.dcsa, snop_alone.name("no-dcsa").as_str()), (Off, "no-dcsa"));
        assert!(snop_alone.warnings().is_empty(), "{:?}", snop_alone.warnings());
        let dcsa_alone = reach(Settings { snop: false, ..apart });
        assert_eq!((dcsa_alone.acts(), dcsa_alone.name("no-snop").as_str()), (false, "no-snop (no pairs)"));
        assert_eq!(dcsa_alone.warnings().len(), 1);
    }

    #[test]
    fn a_plug_in_without_weight_is_told_from_one_without_pairs() {
        let off = reach(Settings { lambda: 0.0, mu: 0.0, ..Settings::default() });
        assert_eq!((off.snop, off.dcsa, off.name("negscale").as_str()), (Off, Off, "negscale (weight 0)"));
        assert!(off.warnings().is_empty());
        let inside = Settings { global: 0.0, local: 0.0, dcsa: false, ..Settings::default() };
        assert_eq!(reach(inside).snop, Off);
    }

    #[test]
    fn the_built_in_trees_leave_no_term_idle() {
        for name in Taxonomy::builtin_names() {
            let found = Reach::of(&Settings::default(), &Taxonomy::builtin(name).unwrap()).unwrap();
            assert_eq!((found.snop, found.dcsa), (Acts, Acts), "{name}: {found}");
        }
        let cifar10 = Reach::of(&Settings::default(), &Taxonomy::builtin("cifar10").unwrap()).unwrap();
        let pairs = &cifar10.pairs;
        let begin = format!("{} of 45 class pairs related, {} unrelated", pairs.related, pairs.unrelated);
        assert!(cifar10.to_string().starts_with(&begin), "{cifar10}");
    }
}
