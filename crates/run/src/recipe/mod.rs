//! Recipes: every setting of a run, by name, from layers that lie over one another.
//!
//! ```text
//! defaults  <-  recipe files (TOML)  <-  --set key=value  <-  flags
//! ```
//!
//! [`Layers`] collects and checks what people write: a key that does not exist, a value of the wrong kind or a name that
//! nothing has is an error that says in which file or flag it stands and what was probably meant. What the data is
//! ([`Layers::data`]) can be had at once; the rest ([`Layers::resolve`]) waits until it is known whether the data are pictures
//! or features, because defaults depend on that. The answer is a [`Recipe`], in which every setting has its value.
//!
//! Paths are relative to the folder the program runs in, as on the command line.
//!
//! `[optimiser]` and `[schedule]` begin with those of the host, unless another `kind` is asked for: then with that kind's own
//! defaults. What a layer below wrote for another kind is not used.
//!
//! A table `[matrix]` spans many runs ([`expand`]).
//!
//! ```
//! use negscale_methods::host::Kind;
//! use negscale_run::recipe::Layers;
//!
//! let layers = Layers::new().with_text("mine.toml", "epochs = 3\n[negscale]\nlambda = 0.5")?;
//! let recipe = layers.with_sets(["seed=7"])?.resolve(Kind::Images, Some(28))?;
//! assert_eq!((recipe.train.epochs, recipe.train.seed, recipe.train.net.as_str()), (3, 7, "cnn-small"));
//! # Ok::<(), negscale_methods::Error>(())
//! ```

mod data;
mod keys;
mod kinds;
mod layers;
mod matrix;
mod meanings;
mod resolve;
mod text;
mod value;

pub use data::DataSettings;
pub use keys::{Key, TableDoc, find, keys, tables};
pub use layers::Layers;
pub use matrix::{Cell, expand};
pub use value::Expected;

use negscale::PairCoverage;
use negscale_methods::trainer::TrainSettings;
use negscale_methods::{Result, plugins};

/// The recipe for somebody who asks for nothing.
pub const DEFAULT_RECIPE: &str = include_str!("../../recipes/default.toml");
/// The data that is used unless told otherwise; it is inside the program.
pub const DEFAULT_DATA: &str = "fashion-mnist-subset";
/// Its noise unless told otherwise.
pub const DEFAULT_NOISE: &str = "sym:0.5";
/// The host that is used unless told otherwise.
pub const DEFAULT_HOST: &str = "rolr";
/// The plug-in that is used unless told otherwise.
pub const DEFAULT_PLUGIN: &str = "negscale";
/// The method that is trained for comparison unless told otherwise.
pub const DEFAULT_BASELINE: &str = "cross-entropy";
/// Pictures up to this many pixels a side get the small network.
pub const SMALL_SIDE: usize = 40;

/// Larger pictures are brought to this many pixels a side unless told otherwise: photographs as they come would take days.
pub const LARGEST_SIDE: usize = 96;

/// A run with every setting resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// What is learnt from.
    pub data: DataSettings,
    /// What is trained, and how; settings of host and plug-in are complete.
    pub train: TrainSettings,
    /// A method to train equally long for comparison.
    pub baseline: Option<String>,
    /// Its own settings, complete.
    pub baseline_settings: toml::Table,
    /// Clean probabilities below this are flagged as wrong labels.
    pub flag_below: f64,
}

impl Recipe {
    /// What the plug-in will find to do in the class tree of data with these classes; unknown without a plug-in, or while the tree
    /// has yet to grow. A plug-in that could never act is an error.
    pub fn pair_coverage(&self, classes: &[String]) -> Result<Option<PairCoverage>> {
        let card = plugins::card(&self.train.plugin)?;
        if !card.attaches() {
            return Ok(None);
        }
        card.pair_coverage(&self.train.plugin_settings, &self.data.tree_for(classes)?)
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
