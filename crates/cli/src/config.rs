//! `negscale config`: explains all settings, and shows those of a run.

use crate::paragraph::beside;
use crate::settings::Choices;
use anyhow::Result;
use negscale_run::recipe::{self, Key};

/// Explain settings, or show the resolved settings of a run.
#[derive(clap::Subcommand)]
pub enum Config {
    /// Explain the keys of a recipe: default and meaning.
    Explain {
        /// A key (epochs, negscale.lambda) or a table (optimiser) [default: all].
        key: Option<String>,
    },
    /// Show the settings that a run would have, as a recipe; opens the data, because defaults depend on it.
    Show {
        #[command(flatten)]
        choices: Box<Choices>,
    },
}

/// Runs the verb.
pub fn run(what: Config) -> Result<()> {
    match what {
        Config::Explain { key } => {
            let keys = key.as_deref().map(recipe::find).transpose()?;
            if let (Some([]), Some(name)) = (keys.as_deref(), &key) {
                say!("[{name}] has no settings");
            }
            let is_asked = |key: &Key| keys.as_ref().is_none_or(|keys| keys.contains(key));
            let mut is_first = true;
            for table in recipe::tables() {
                let asked: Vec<&Key> = table.keys.iter().filter(|key| is_asked(key)).collect();
                if asked.is_empty() {
                    continue;
                }
                let gap = if std::mem::take(&mut is_first) { "" } else { "\n" };
                let name =
                    if table.name.is_empty() { "top level".into() } else { format!("[{}]", table.name) };
                say!("{gap}{name}: {}", table.about);
                for key in asked {
                    let text = format!("{} (default: {})", key.meaning, key.default);
                    say!("{}", beside(2, &key.name, 18, &text));
                }
            }
        }
        Config::Show { choices } => {
            let layers = choices.layers()?;
            let splits = layers.data()?.open()?;
            say_part!("{}", layers.resolve_for(&splits.train)?.to_toml());
        }
    }
    Ok(())
}
