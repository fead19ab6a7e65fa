//! Where data comes from: arguments that several verbs share.

use anyhow::Result;
use negscale_data::folders::Folders;
use negscale_data::own::OwnOptions;
use negscale_data::{NoiseContext, Splits, open};
use std::path::PathBuf;

/// Where data is looked for.
#[derive(clap::Args)]
pub struct Place {
    /// Folder to look in first, and to fetch into; then those of NEGSCALE_DATA, then the platform's cache.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
}

impl Place {
    /// The folders, in the order in which they are looked in.
    pub fn folders(&self) -> Folders {
        Folders::of_process(self.data_dir.as_deref())
    }

    /// The same for noise that is read from tables.
    pub fn noise_context(&self) -> NoiseContext {
        NoiseContext { folders: self.folders().looked_in().to_vec(), ..NoiseContext::default() }
    }
}

/// What the data itself does not say.
#[derive(clap::Args)]
pub struct Own {
    /// File of labels for an array (.npy, .csv, or .txt with one a line).
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Column of the labels.
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
    /// Column of the true labels, if known.
    #[arg(long, value_name = "NAME")]
    pub truth_column: Option<String>,
    /// Test data, in a form of its own.
    #[arg(long, value_name = "PATH")]
    pub test: Option<PathBuf>,
    /// File of labels for the test data.
    #[arg(long, value_name = "FILE")]
    pub test_labels: Option<PathBuf>,
    /// File of class names, one a line.
    #[arg(long, value_name = "FILE")]
    pub class_names: Option<PathBuf>,
}

/// Opens a known set or the user's own.
pub fn open_data(what: &str, place: &Place, own: &Own) -> Result<Splits> {
    let options = OwnOptions {
        labels: own.labels.clone(),
        label_column: own.label_column.clone(),
        truth_column: own.truth_column.clone(),
        test: own.test.clone(),
        test_labels: own.test_labels.clone(),
        class_names: own.class_names.clone(),
        ..OwnOptions::default()
    };
    Ok(open(what, &place.folders(), &options)?)
}
