//! Losses that attach to any training method.
//!
//! The trainer hands a plug-in the taps of every batch and adds what it answers. `none` answers nothing, so that a run with it is
//! the host's own, bit for bit.

mod negscale;
mod tree;

pub use tree::Tree;

use crate::host::{Beliefs, Card, Host, Tap};
use crate::{Error, Result, settings};
use ::negscale::taxonomy::{LEARNT_MAX_DISTANCE, Thresholds};
use ::negscale::{PairCoverage, Settings, Taxonomy};
use burn::tensor::Tensor;

/// What a plug-in adds to the loss of a batch.
#[derive(Debug, Clone)]
pub struct Added {
    /// To be added, with gradients.
    pub loss: Tensor<1>,
    /// Its parts, as reported; without weights.
    pub terms: Vec<(&'static str, f64)>,
}

/// A loss that attaches to any host.
pub trait Plugin: Send {
    /// What is to be added for a tap of network `net`, if anything. `batch` counts all batches of the run.
    fn attach(&mut self, tap: &Tap, net: usize, batch: u64) -> Result<Option<Added>>;

    /// The networks were reset: forget what is known of their features.
    fn forget(&mut self);

    /// The thresholds by which the host's guesses are weighed by the class tree, if they are.
    fn weighs_guesses(&self) -> Option<Thresholds>;

    /// Whether it must be told the labels that the host believes.
    fn wants_beliefs(&self) -> bool;

    /// Which class pairs it acts on, once it has a class tree.
    fn pair_coverage(&self) -> Option<&PairCoverage>;

    /// Whether it acts while the host warms up.
    fn acts_during_warm_up(&self) -> bool;

    /// Whether it still needs a class tree.
    fn wants_tree(&self) -> bool;

    /// Hands it the class tree.
    fn set_tree(&mut self, tree: &Taxonomy) -> Result<()>;

    /// State needed to resume, as text.
    fn state(&self) -> Result<String>;

    /// Restores a state saved by [`state`](Self::state).
    fn restore(&mut self, state: &str) -> Result<()>;
}

/// A plug-in by name.
#[derive(Debug, Clone, Copy)]
pub struct PluginCard {
    /// Name to ask for it by.
    pub id: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// What it changes in the settings of NegScale, or `None` for no plug-in at all.
    preset: Option<fn(Settings) -> Settings>,
}

/// All plug-ins.
pub const PLUGINS: &[PluginCard] = &[
    PluginCard { id: "none", about: "no plug-in: the training method alone", preset: None },
    PluginCard { id: "negscale", about: "SNOP and DCSA", preset: Some(|settings| settings) },
    PluginCard {
        id: "no-snop",
        about: "ablation: DCSA alone",
        preset: Some(|settings| settings.with_snop(false)),
    },
    PluginCard {
        id: "no-dcsa",
        about: "ablation: SNOP alone",
        preset: Some(|settings| settings.with_dcsa(false)),
    },
    PluginCard {
        id: "random-pairs",
        about: "ablation: unrelated pairs drawn at random",
        preset: Some(|settings| settings.with_pairs(::negscale::PairSource::Random)),
    },
];

/// Names of all plug-ins.
pub fn names() -> Vec<&'static str> {
    PLUGINS.iter().map(|card| card.id).collect()
}

/// The card of a plug-in.
pub fn card(name: &str) -> Result<&'static PluginCard> {
    PLUGINS.iter().find(|card| card.id == name).ok_or_else(|| Error::unknown("plug-in", name, names()))
}

impl PluginCard {
    /// Whether it is one at all.
    pub fn attaches(&self) -> bool {
        self.preset.is_some()
    }

    /// The plug-in with these settings of the table `[negscale]`.
    pub fn build(&self, table: &toml::Table) -> Result<Option<Box<dyn Plugin>>> {
        let attached = self.settings(table)?.map(negscale::Attached::new);
        Ok(attached.map(|attached| Box::new(attached) as Box<dyn Plugin>))
    }

    /// The settings in force; none where nothing is attached.
    fn settings(&self, table: &toml::Table) -> Result<Option<Settings>> {
        let settings: Settings = settings::read("negscale", table)?;
        let settings = settings.checked()?;
        Ok(self.preset.map(|preset| preset(settings)))
    }

    /// Which pairs it will find in a class tree, if that is there already. A plug-in that is asked for and could never act is
    /// refused; one whose weights are 0 is not.
    pub fn pair_coverage(&self, table: &toml::Table, tree: &Tree) -> Result<Option<PairCoverage>> {
        let Some(settings) = self.settings(table)? else { return Ok(None) };
        let nothing = |why: &str| {
            let problem = format!("it would have no effect. {why}; or set plugin = \"none\"");
            Error::Settings { place: format!("of plug-in `{}`", self.id), problem }
        };
        let Some(tree) = tree.taxonomy() else {
            if settings.eta_max >= LEARNT_MAX_DISTANCE {
                return Err(nothing(&format!(
                    "No class pair of a learnt tree is further apart than {LEARNT_MAX_DISTANCE} and negscale.eta_max = {}, \
                     so none is unrelated; choose eta_max below {LEARNT_MAX_DISTANCE}",
                    settings.eta_max
                )));
            }
            return Ok(None);
        };
        let coverage = PairCoverage::of(&settings, tree)?;
        if coverage.lacks_pairs() && !coverage.is_active() {
            let PairCoverage { pairs, .. } = &coverage;
            let why = format!("Class tree `{}`: {coverage}. {}", pairs.tree, coverage.warnings().join(". "));
            return Err(nothing(&why));
        }
        Ok(Some(coverage))
    }
}

/// The key of a plug-in that a host, as it is set, cannot serve, and what to do; nothing if they fit.
pub fn misfit(plugin: &dyn Plugin, card: &Card, host: &dyn Host) -> Option<(&'static str, String)> {
    let id = card.id;
    if plugin.weighs_guesses().is_some() && !host.weighs_guesses() {
        let problem = format!(
            "posterior = true weighs labels that the method guesses, but `{id}` guesses none that could be weighed; choose \
             another `host`, such as rolr or dividemix, or set negscale.posterior = false"
        );
        return Some(("negscale.posterior", problem));
    }
    if !plugin.wants_beliefs() {
        return None;
    }
    let (but, instead) = match (card.beliefs, host.taps_without_beliefs()) {
        (Beliefs::Own, None) => return None,
        (Beliefs::Own, Some(instead)) => {
            ("with these settings hands over given labels only", format!("set {id}.{instead}"))
        }
        (Beliefs::Predictions, _) => ("takes every label as given", "choose another `host`".to_owned()),
    };
    let problem = format!(
        "targets = \"refurbished\" needs labels corrected by the method, but `{id}` {but}; {instead}, or set \
         negscale.targets = \"given\""
    );
    Some(("negscale.targets", problem))
}
