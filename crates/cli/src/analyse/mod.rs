//! `negscale analyse`: is dissimilarity invariant under label noise? Measured on a run, or on features and labels in files.

mod print;

use crate::source::Split;
use anyhow::{Context, Result, bail};
use negscale_atomic_file::OwnFolder;
use negscale_run::analysis::{
    self, AnalysisFiles, AnalysisOptions, analyse_files, analyse_run, save_features,
};
use std::path::PathBuf;

/// Measure the similarity of all pairs of samples: same class, related, unrelated; labels right and wrong; change against a
/// clean run.
///
/// RUN is the folder of a finished run: its data is opened, the same noise is added, and its model computes the features.
/// Or give features and labels in files (--features, --given, --tree). With a clean run (--clean, --clean-features), the same pairs
/// are compared in both.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    /// Folder of a run.
    #[arg(required_unless_present = "features")]
    run: Option<PathBuf>,
    /// Folder of a run on the same data without noise, to compare with.
    #[arg(long, value_name = "RUN", requires = "run")]
    clean: Option<PathBuf>,
    /// Split of the run's data.
    #[arg(long, default_value = "train", requires = "run")]
    split: Split,
    /// File of features (.npy, .npz, .safetensors, .csv), one row per sample, instead of a run.
    #[arg(long, value_name = "FILE", conflicts_with = "run", requires = "given", requires = "tree")]
    features: Option<PathBuf>,
    /// Given labels (.npy, .csv, or .txt with one per line): numbers or names of the tree's classes.
    #[arg(long, value_name = "FILE", requires = "features")]
    given: Option<PathBuf>,
    /// True labels, if known.
    #[arg(long, value_name = "FILE", requires = "features")]
    truth: Option<PathBuf>,
    /// Features of a clean run, rows in the same order.
    #[arg(long, value_name = "FILE", requires = "features")]
    clean_features: Option<PathBuf>,
    /// Class tree: a built-in name or a file; `learnt` builds one from the features [default: the run's].
    #[arg(long, value_name = "TREE")]
    tree: Option<String>,
    /// Classes up to this distance are related [default: the run's, else 3].
    #[arg(long)]
    eta_min: Option<u32>,
    /// Classes beyond this distance are unrelated [default: the run's, else 5].
    #[arg(long)]
    eta_max: Option<u32>,
    /// File to write the analysis to [default: analysis.json in the run's folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the features to this file, one row of 32-bit floats per sample.
    #[arg(long, value_name = "FILE.npy")]
    save_features: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { run, clean, split, features, given, truth, clean_features, .. } = &arguments;
    let Arguments { tree, eta_min, eta_max, mut out, save_features: saved, json, .. } = arguments.clone();
    let options = AnalysisOptions { split: (*split).into(), tree, eta_min, eta_max };
    // A run's folder is held while the analysis is written into it.
    let mut own = None;
    let (analysis, scan) = match (run, features, given) {
        (Some(folder), ..) => {
            let found = analyse_run(folder, clean.as_deref(), &options)?;
            if out.is_none() {
                let name = if *split == Split::Train { "analysis.json" } else { "analysis-test.json" };
                out = Some(own.insert(OwnFolder::share(folder)?).file(name)?);
            }
            found
        }
        (None, Some(features), Some(given)) => {
            let (features, given) = (features.clone(), given.clone());
            let (truth, clean_features) = (truth.clone(), clean_features.clone());
            analyse_files(&AnalysisFiles { features, given, truth, clean_features }, &options)?
        }
        _ => bail!("name the folder of a run, or files with --features, --given and --tree"),
    };
    if let Some(path) = &saved {
        save_features(path, &scan)?;
    }
    if let Some(path) = &out {
        let text = serde_json::to_string_pretty(&analysis)?;
        negscale_atomic_file::write_bytes(path, format!("{text}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if json {
        say!("{}", serde_json::to_string(&analysis)?);
        return Ok(());
    }
    print::print(&analysis)?;
    for path in out.iter().chain(&saved) {
        say!("written: {}", path.display());
    }
    Ok(())
}

impl From<Split> for analysis::Split {
    fn from(split: Split) -> Self {
        match split {
            Split::Train => Self::Train,
            Split::Test => Self::Test,
            Split::SecondTest => Self::SecondTest,
        }
    }
}
