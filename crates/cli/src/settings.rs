//! Settings of a run as a person gives them: a recipe, `--set` and flags.

use crate::source::{Own, Place};
use anyhow::{Context, Result};
use negscale_run::recipe::{DEFAULT_RECIPE, Layers};
use std::path::{Path, PathBuf};

/// Where settings come from: the recipe overrides the defaults, `--set` the recipe, other flags `--set`.
#[derive(clap::Args)]
pub struct Choices {
    /// Recipe: a TOML file of settings (`negscale config explain` lists them) [default without --data: the built-in one, `negscale config show`].
    #[arg(value_name = "RECIPE")]
    pub recipe: Option<PathBuf>,
    /// Set a key, such as epochs=3 or negscale.lambda=0.5; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Training data: a known dataset (`negscale data list`) or a path.
    #[arg(long)]
    pub data: Option<String>,
    /// Label noise to add, such as sym:0.5 or none.
    #[arg(long)]
    pub noise: Option<String>,
    /// Training method (`negscale methods` lists them).
    #[arg(long)]
    pub host: Option<String>,
    /// Plug-in loss: negscale, none, or an ablation.
    #[arg(long)]
    pub plugin: Option<String>,
    /// Network (`negscale methods` lists them).
    #[arg(long)]
    pub net: Option<String>,
    /// How products are taken: f32, bf16, or auto (bf16 where this CPU is fast at it) [default: auto].
    #[arg(long)]
    pub precision: Option<String>,
    /// Number of epochs.
    #[arg(long)]
    pub epochs: Option<u32>,
    /// Random seed of training.
    #[arg(long)]
    pub seed: Option<u32>,
    /// Device to compute on: cpu, or a GPU that the program was built for.
    #[arg(long)]
    pub device: Option<String>,
    /// Where data is looked for.
    #[command(flatten)]
    pub place: Place,
    /// What the data itself does not say.
    #[command(flatten)]
    pub own: Own,
}

impl Choices {
    /// Whether any of these names the data.
    pub fn name_data(&self) -> bool {
        self.recipe.is_some() || self.data.is_some() || self.set.iter().any(|set| set.starts_with("data="))
    }

    /// The layers of settings.
    pub fn layers(&self) -> Result<Layers> {
        self.layers_over(Layers::new())
    }

    /// The layers of settings, on top of these.
    pub fn layers_over(&self, mut layers: Layers) -> Result<Layers> {
        if let Some(recipe) = &self.recipe {
            layers = layers.with_file(recipe)?;
        } else if !self.name_data() {
            layers = layers.with_text("the default recipe", DEFAULT_RECIPE)?;
        }
        layers = layers.with_sets(&self.set)?;
        let texts = [
            ("--data", "data", &self.data),
            ("--noise", "noise", &self.noise),
            ("--host", "host", &self.host),
            ("--plugin", "plugin", &self.plugin),
            ("--net", "net", &self.net),
            ("--precision", "precision", &self.precision),
            ("--device", "device", &self.device),
            ("--label-column", "label_column", &self.own.label_column),
            ("--truth-column", "truth_column", &self.own.truth_column),
            ("--source-column", "source_column", &self.own.source_column),
            ("--text-column", "text_column", &self.own.text_column),
            ("--array", "array", &self.own.array),
            ("--id-column", "id_column", &self.own.id_column),
            ("--header", "header", &self.own.header.map(|header| header.word().to_owned())),
        ];
        for (flag, key, text) in texts {
            if let Some(text) = text {
                layers = layers.with_flag(flag, key, text.as_str())?;
            }
        }
        let lists = [
            ("--label-columns", "label_columns", &self.own.label_columns),
            ("--feature-columns", "feature_columns", &self.own.feature_columns),
            ("--ignore-columns", "ignore_columns", &self.own.ignore_columns),
        ];
        for (flag, key, names) in lists {
            if !names.is_empty() {
                layers = layers.with_flag(flag, key, names.clone())?;
            }
        }
        let paths = [
            ("--data-dir", "data_dir", &self.place.data_dir),
            ("--labels", "labels", &self.own.labels),
            ("--test", "test", &self.own.test),
            ("--test-labels", "test_labels", &self.own.test_labels),
            ("--class-names", "class_names", &self.own.class_names),
        ];
        for (flag, key, path) in paths {
            if let Some(path) = path {
                layers = layers.with_flag(flag, key, as_text(flag, path)?)?;
            }
        }
        for (flag, key, number) in [("--epochs", "epochs", self.epochs), ("--seed", "seed", self.seed)] {
            if let Some(number) = number {
                layers = layers.with_flag(flag, key, number)?;
            }
        }
        if self.own.skip_unreadable {
            layers = layers.with_flag("--skip-unreadable", "skip_unreadable", true)?;
        }
        Ok(layers)
    }
}

pub(crate) fn as_text<'a>(flag: &str, path: &'a Path) -> Result<&'a str> {
    path.to_str().with_context(|| format!("{flag} {}: the path is not UTF-8; rename it", path.display()))
}
