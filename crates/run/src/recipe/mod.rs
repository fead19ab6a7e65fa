//! Recipes: every setting of a run, by name, from layers that override one another.
//!
//! ```text
//! defaults  <-  recipe files (TOML)  <-  --set key=value  <-  flags
//! ```
//!
//! [`Layers`] collects and checks what people write: an unknown key, a value of the wrong kind or an unknown name
//! is an error that says in which file or flag it is and what was probably meant. What the data is
//! ([`Layers::data`]) can be had at once; the rest ([`Layers::resolve`]) waits until it is known whether the data are pictures
//! or features, because defaults depend on that. The answer is a [`Recipe`], in which every setting has its value.
//!
//! Paths are relative to the folder the program runs in, as on the command line.
//!
//! `[optimiser]` and `[schedule]` start from those of the host, unless another `kind` is asked for: then from that kind's own
//! defaults. What a layer below wrote for another kind is not used.
//!
//! A table `[matrix]` spans many runs, and `[arms]` compares methods over them ([`expand`]).
//!
//! ```
//! use negscale_methods::host::ItemKind;
//! use negscale_run::recipe::Layers;
//!
//! let layers = Layers::new().with_text("mine.toml", "epochs = 3\nplugin = \"negscale\"\n[negscale]\nlambda = 0.5")?;
//! let recipe = layers.with_sets(["seed=7"])?.resolve(ItemKind::Images, Some(28))?;
//! assert_eq!((recipe.train.epochs, recipe.train.seed, recipe.train.net.as_str()), (3, 7, "cnn-small"));
//! # Ok::<(), negscale_methods::Error>(())
//! ```

mod arms;
mod data;
mod keys;
mod kinds;
mod layers;
mod matrix;
mod meanings;
mod resolve;
mod text;
mod value;
mod written;

pub use arms::{Arm, Arms, SEEDS, Search, SettingList};
pub use data::DataSettings;
pub(crate) use data::permuted;
pub use keys::{Key, TableDoc, find, keys, tables};
pub use layers::Layers;
pub use matrix::{MatrixCell, Study, expand};
pub use value::Expected;

use negscale::taxonomy::Thresholds;
use negscale::{PairCoverage, Settings};
use negscale_methods::trainer::TrainSettings;
use negscale_methods::{Result, plugins};
use std::path::PathBuf;

/// The recipe for somebody who asks for nothing.
pub const DEFAULT_RECIPE: &str = include_str!("../../recipes/default.toml");
/// The default data, which is built into the program.
pub const DEFAULT_DATA: &str = "fashion-mnist-subset";
/// What data are called that are in memory.
const IN_MEMORY: &str = "in-memory";
/// Its default noise.
pub const DEFAULT_NOISE: &str = "sym:0.5";
/// The default host.
pub const DEFAULT_HOST: &str = "rolr";
/// The default plug-in: none, since none has been shown to earn its place (decision 018).
pub const DEFAULT_PLUGIN: &str = "none";
/// The default baseline.
pub const DEFAULT_BASELINE: &str = "cross-entropy";
/// Pictures up to this many pixels per side get the small network.
pub const SMALL_SIDE: usize = 40;

/// Larger pictures are brought to this many pixels per side by default: photographs as they come would take days.
pub const LARGEST_SIDE: usize = 96;

/// A run with every setting resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The training data.
    pub data: DataSettings,
    /// What is trained, and how; settings of host and plug-in are complete.
    pub train: TrainSettings,
    /// A baseline to train for as many epochs, for comparison.
    pub baseline: Option<String>,
    /// Its own settings, complete.
    pub baseline_settings: toml::Table,
    /// Clean probabilities below this are flagged as wrong labels; without it, as many labels as the estimate says are wrong.
    pub flag_below: Option<f64>,
    /// Who judges the labels of an audit.
    pub judge: Judge,
    /// Predictions that were made before, for an audit: a file of N x C probabilities. Then nothing is fitted to the items.
    pub pred_probs: Option<PathBuf>,
    /// The encoder that turns pictures into rows of numbers for an audit, if one does.
    pub encoder: Option<String>,
    /// Whether an audit looks for near-copies and outliers, however many rows there are.
    pub neighbours: bool,
}

/// Who judges the labels of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Judge {
    /// The host, while it is trained.
    #[default]
    Training,
    /// Small models that never see the label they judge; for features only.
    CrossFit,
}

impl Recipe {
    /// Which class pairs the plug-in will act on in the class tree of data with these classes; unknown without a plug-in, or
    /// before the tree is learnt. A plug-in that could never act is an error.
    pub fn pair_coverage(&self, classes: &[String]) -> Result<Option<PairCoverage>> {
        let card = plugins::card(&self.train.plugin)?;
        if !card.attaches() {
            return Ok(None);
        }
        card.pair_coverage(&self.train.plugin_settings, &self.data.tree_for(classes)?)
    }

    /// From which distances on classes are related and unrelated.
    pub fn thresholds(&self) -> Result<Thresholds> {
        let settings: Settings = negscale_methods::settings::read("negscale", &self.train.plugin_settings)?;
        Ok(settings.thresholds()?)
    }

    /// The run to compare with, if there is one: the baseline alone, with its own settings, on the same data with the same
    /// network, epochs, batches, optimiser, schedule and seed.
    pub fn of_baseline(&self) -> Option<Self> {
        let train = TrainSettings {
            host: self.baseline.clone()?,
            host_settings: self.baseline_settings.clone(),
            plugin: "none".into(),
            plugin_settings: toml::Table::new(),
            ..self.train.clone()
        };
        Some(Self { train, baseline: None, baseline_settings: toml::Table::new(), ..self.clone() })
    }
}
