//! Settings of a run from the command line.

use anyhow::Result;
use negscale_learn::recipe::Layers;
use std::path::PathBuf;

/// What is chosen on the command line.
#[derive(clap::Args)]
pub struct Choices {
    /// A recipe.
    recipe: Option<PathBuf>,
    /// A setting.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Data.
    #[arg(long)]
    data: Option<String>,
    /// Noise.
    #[arg(long)]
    noise: Option<String>,
    /// Host.
    #[arg(long)]
    host: Option<String>,
    /// Plug-in.
    #[arg(long)]
    plugin: Option<String>,
    /// Epochs.
    #[arg(long)]
    epochs: Option<i64>,
}

impl Choices {
    pub fn layers(&self) -> Result<Layers> {
        let mut layers = Layers::new();
        if let Some(recipe) = &self.recipe {
            layers = layers.with_file(recipe)?;
        }
        layers = layers.with_sets(&self.sets)?;
        let flags =
            [("data", &self.data), ("noise", &self.noise), ("host", &self.host), ("plugin", &self.plugin)];
        for (key, value) in flags {
            if let Some(value) = value {
                layers = layers.with_flag(&format!("--{key}"), key, value.clone())?;
            }
        }
        if let Some(epochs) = self.epochs {
            layers = layers.with_flag("--epochs", "epochs", epochs)?;
        }
        Ok(layers)
    }
}
