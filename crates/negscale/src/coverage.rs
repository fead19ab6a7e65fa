//! Which pairs of classes the plug-in finds in a class tree, known before the first batch.

use crate::taxonomy::Summary;
use crate::{Result, Settings, Taxonomy, TermState};
use std::fmt;

/// Which pairs a class tree has at the thresholds of some settings, and which terms have a use for them. Prints as a short
/// phrase.
///
/// ```
/// use negscale::{PairCoverage, Settings, Taxonomy};
///
/// let tree = Taxonomy::from_indented("pets", "all\n  dogs\n    poodle\n    beagle\n  cats\n    siamese\n", &[""; 0])?;
/// let coverage = PairCoverage::of(&Settings::default(), &tree)?;
/// assert_eq!(coverage.to_string(), "1 of 3 class pairs related, 0 unrelated (siamese has no relative)");
/// assert!(!coverage.is_active()); // a tree of two levels has no unrelated pairs at eta_max = 5,
/// let coverage = PairCoverage::of(&Settings::default().with_eta_max(3), &tree)?;
/// assert!(coverage.is_active()); // but it has at 3
/// # Ok::<(), negscale::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PairCoverage {
    /// The pairs of classes.
    pub pairs: Summary,
    /// The Structured Negative Orthogonality Penalty, which needs unrelated pairs.
    pub snop: TermState,
    /// The Dissimilarity-Calibrated Similarity Adjustment, which needs related and unrelated ones.
    pub dcsa: TermState,
    /// The anchor of class means and exclusion, which need unrelated classes.
    pub others: TermState,
    /// Whether guessed labels are weighed by the tree.
    pub posterior: bool,
}

impl PairCoverage {
    /// Of these settings in this tree. Random pairs are as many as the tree has unrelated ones.
    pub fn of(settings: &Settings, tree: &Taxonomy) -> Result<Self> {
        let pairs = tree.summary(settings.thresholds()?);
        let term = |is_on: bool, has_pairs: bool| match (is_on, has_pairs) {
            (false, _) => TermState::Off,
            (true, false) => TermState::NoPairs,
            (true, true) => TermState::Active,
        };
        let inside = settings.global + settings.local;
        Ok(Self {
            snop: term(settings.snop && settings.lambda * inside > 0.0, pairs.unrelated > 0),
            dcsa: term(settings.dcsa && settings.mu > 0.0, pairs.unrelated > 0 && pairs.related > 0),
            others: term(settings.anchor + settings.exclusion > 0.0, pairs.unrelated > 0),
            posterior: settings.posterior,
            pairs,
        })
    }

    /// Whether any term can act.
    pub fn is_active(&self) -> bool {
        [self.snop, self.dcsa, self.others].contains(&TermState::Active)
    }

    /// Whether a term is asked for that is 0 in every batch, for want of pairs.
    pub fn lacks_pairs(&self) -> bool {
        [self.snop, self.dcsa, self.others].contains(&TermState::NoPairs)
    }

    /// What is asked for and cannot be done, each a sentence that says what to set; empty if all is well.
    pub fn warnings(&self) -> Vec<String> {
        if !self.lacks_pairs() {
            return Vec::new();
        }
        let all = self.pairs.warnings().into_iter();
        // Without related pairs only DCSA has nothing to do, and it need not have been asked for.
        all.filter(|warning| self.dcsa == TermState::NoPairs || !warning.starts_with("DCSA")).collect()
    }

    /// The name of a plug-in, with a note where it does less than the name promises.
    pub fn qualified_name(&self, plugin: &str) -> String {
        let less = match (self.snop, self.dcsa) {
            (TermState::Active, TermState::NoPairs) => "SNOP alone",
            (TermState::Off, TermState::Off) if self.others == TermState::Active => return plugin.to_owned(),
            (TermState::Off, TermState::Off) if self.posterior && plugin == "negscale" => "posterior alone",
            (TermState::Off, TermState::Off) if self.posterior => return plugin.to_owned(),
            (TermState::Off, TermState::Off) if self.others == TermState::Off => "weight 0",
            _ if !self.is_active() => "no pairs",
            _ => return plugin.to_owned(),
        };
        format!("{plugin} ({less})")
    }
}

impl fmt::Display for PairCoverage {
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
    use TermState::{Active, NoPairs, Off};

    const TWO_LEVELS: &str = "all\n  animals\n    cat\n    dog\n  vehicles\n    car\n    bus\n";

    fn coverage(settings: Settings) -> PairCoverage {
        PairCoverage::of(&settings, &Taxonomy::from_indented("two", TWO_LEVELS, &[""; 0]).unwrap()).unwrap()
    }

    #[test]
    fn a_tree_of_two_levels_has_no_unrelated_pair_and_leaves_every_term_without_pairs() {
        let found = coverage(Settings::default());
        assert_eq!((found.snop, found.dcsa, found.is_active()), (NoPairs, NoPairs, false));
        assert_eq!((found.pairs.related, found.pairs.unrelated), (2, 0));
        assert_eq!(found.qualified_name("negscale"), "negscale (no pairs)");
        assert!(found.warnings()[0].contains("eta_max below 4"), "{:?}", found.warnings());
        let mended = coverage(Settings::default().with_eta_max(3));
        assert_eq!(
            (mended.snop, mended.dcsa, mended.qualified_name("negscale").as_str()),
            (Active, Active, "negscale")
        );
        assert!(mended.warnings().is_empty());
    }

    #[test]
    fn each_ablation_is_judged_by_the_terms_that_it_keeps() {
        let apart = Settings::default().with_eta_min(1).with_eta_max(1);
        let whole = coverage(apart.clone());
        assert_eq!((whole.snop, whole.dcsa, whole.is_active()), (Active, NoPairs, true));
        assert_eq!(whole.qualified_name("negscale"), "negscale (SNOP alone)");
        assert_eq!(whole.warnings().len(), 1, "{:?}", whole.warnings());
        let snop_alone = coverage(apart.clone().with_dcsa(false));
        assert_eq!((snop_alone.dcsa, snop_alone.qualified_name("no-dcsa").as_str()), (Off, "no-dcsa"));
        assert!(snop_alone.warnings().is_empty(), "{:?}", snop_alone.warnings());
        let dcsa_alone = coverage(apart.with_snop(false));
        assert_eq!(
            (dcsa_alone.is_active(), dcsa_alone.qualified_name("no-snop").as_str()),
            (false, "no-snop (no pairs)")
        );
        assert_eq!(dcsa_alone.warnings().len(), 1);
    }

    #[test]
    fn a_plug_in_without_weight_is_told_from_one_without_pairs() {
        let off = coverage(Settings::default().with_lambda(0.0).with_mu(0.0));
        assert_eq!(
            (off.snop, off.dcsa, off.qualified_name("negscale").as_str()),
            (Off, Off, "negscale (weight 0)")
        );
        assert!(off.warnings().is_empty());
        let inside = Settings::default().with_global(0.0).with_local(0.0).with_dcsa(false);
        assert_eq!(coverage(inside).snop, Off);
    }

    #[test]
    fn the_built_in_trees_have_pairs_for_every_term() {
        for name in Taxonomy::builtin_names() {
            let found = PairCoverage::of(&Settings::default(), &Taxonomy::builtin(name).unwrap()).unwrap();
            assert_eq!((found.snop, found.dcsa), (Active, Active), "{name}: {found}");
        }
        let cifar10 = PairCoverage::of(&Settings::default(), &Taxonomy::builtin("cifar10").unwrap()).unwrap();
        let pairs = &cifar10.pairs;
        let begin = format!("{} of 45 class pairs related, {} unrelated", pairs.related, pairs.unrelated);
        assert!(cifar10.to_string().starts_with(&begin), "{cifar10}");
    }
}
