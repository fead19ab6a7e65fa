//! Losses that attach to any training method.
//!
//! The trainer hands a plug-in the taps of every batch and adds what it answers. `none` answers nothing, so that a run with it is
//! the host's own, bit for bit.

mod exclusion;
mod negscale;
mod notes;
mod tree;

pub use tree::Tree;

use crate::host::{Beliefs, Card, Host, Tap};
use crate::{Error, Result, settings};
use ::negscale::taxonomy::{LEARNT_MAX_DISTANCE, Relation};
use ::negscale::{PairCoverage, Settings, Taxonomy};
use burn::tensor::Tensor;
use negscale_nets::Scan;
use std::collections::BTreeMap;
use std::sync::Arc;

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

    /// What it wants to be shown at the start of every epoch in which it acts.
    fn wants_look(&self) -> Wants;

    /// Shows it the training set at the start of an epoch.
    fn look(&mut self, look: &Look) -> Result<()>;

    /// Tells it the length of the host's gradient at the features of a network, after the backward pass of a batch, and whether the
    /// classifier sees these features after a ReLU.
    fn hear(&mut self, net: usize, length: f64, is_rectified: bool);

    /// Numbers worth noting with the epoch that is over: means over its batches. They start afresh.
    fn take_notes(&mut self) -> BTreeMap<String, f64>;

    /// The networks were reset: forget what is known of their features.
    fn forget(&mut self);

    /// Whether the host's guesses are to be weighed by the class tree.
    fn weighs_guesses(&self) -> bool;

    /// Relations of all pairs of classes, C x C, once there is a class tree.
    fn relations(&self) -> Option<&[Relation]>;

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

    /// State needed to resume.
    fn state(&self) -> Result<PluginState>;

    /// Restores a state saved by [`state`](Self::state).
    fn restore(&mut self, state: PluginState) -> Result<()>;
}

/// What a plug-in wants to be shown at the start of an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// How likely each label is right, and what is believed of it.
    pub beliefs: bool,
    /// The features of all samples, by each network.
    pub features: bool,
}

/// The training set at the start of an epoch.
#[derive(Debug)]
pub struct Look<'a> {
    /// Which epoch, from 0.
    pub epoch: usize,
    /// Labels as given.
    pub given: &'a [u32],
    /// Probability that each is right; empty before anything is known.
    pub clean: Vec<f32>,
    /// What is believed or predicted, N x C; empty before anything is known.
    pub believed: &'a [f32],
    /// Scans with features by each network, if they were asked for.
    pub scans: Vec<Arc<Scan>>,
}

/// State of a plug-in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginState {
    /// As text.
    pub text: String,
    /// Numbers by name.
    pub floats: BTreeMap<String, Vec<f32>>,
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
    PluginCard {
        id: "negscale",
        about: "SNOP and DCSA, the paper's plug-in; against its controls it has shown no gain of its own (book, Results)",
        preset: Some(|settings| settings),
    },
    PluginCard {
        id: "tree-posterior",
        about: "no loss: guessed labels are weighed by how often wrong labels stand in each relation of the class tree",
        preset: Some(|settings| settings.with_snop(false).with_dcsa(false).with_posterior(true)),
    },
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
        about: "ablation: SNOP's unrelated pairs drawn at random",
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
    if plugin.weighs_guesses() && !host.weighs_guesses() {
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
