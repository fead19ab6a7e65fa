//! Where data comes from: arguments that several verbs share.

use anyhow::{Context, Result};
use negscale_data::folders::Folders;
use negscale_data::inspect::{Shared, shared};
use negscale_data::own::{self, Header, OwnOptions};
use negscale_data::{Dataset, Items, NoiseContext, Splits, known, open};
use negscale_run::recipe::DataSettings;
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

    /// The same to read from: the folder that was named must be there.
    pub fn to_read(&self) -> Result<Folders> {
        Ok(Folders::to_read(self.data_dir.as_deref())?)
    }

    /// The same for noise that is read from tables.
    pub fn noise_context(&self) -> NoiseContext {
        NoiseContext { folders: self.folders().looked_in().to_vec(), ..NoiseContext::default() }
    }
}

/// What the data itself does not say.
#[derive(clap::Args)]
pub struct Own {
    /// File of labels (.npy, .csv, or .txt with one a line), for an array or instead of those of the data. Columns `index`, `path` or of
    /// ids say whose label it is; without them, labels are in the order of the data.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Whether the file of labels, or the table where there is none, begins with a header [default: as the file tells].
    #[arg(long, value_name = "yes|no")]
    pub header: Option<Header>,
    /// Column of the labels.
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
    /// Column of the true labels, if known.
    #[arg(long, value_name = "NAME")]
    pub truth_column: Option<String>,
    /// Array of the features in .npz and .safetensors, or column of lists of numbers in Parquet.
    #[arg(long, value_name = "NAME")]
    pub array: Option<String>,
    /// Columns of the features in a table, separated by commas [default: all others].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub feature_columns: Vec<String>,
    /// Columns of a table that are left out, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ignore_columns: Vec<String>,
    /// Column of ids in a table: no feature, but named in audit.csv; `none` if there is none, whatever columns are called.
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Test data, in a form of its own.
    #[arg(long, value_name = "PATH")]
    pub test: Option<PathBuf>,
    /// File of labels for the test data.
    #[arg(long, value_name = "FILE")]
    pub test_labels: Option<PathBuf>,
    /// File of class names, one a line.
    #[arg(long, value_name = "FILE")]
    pub class_names: Option<PathBuf>,
    /// Leave out pictures that cannot be read, instead of refusing all.
    #[arg(long)]
    pub skip_unreadable: bool,
}

impl Own {
    fn options(&self) -> OwnOptions {
        OwnOptions {
            labels: self.labels.clone(),
            header: self.header.unwrap_or(Header::Auto),
            array: self.array.clone(),
            feature_columns: self.feature_columns.clone(),
            ignore_columns: self.ignore_columns.clone(),
            id_column: self.id_column.clone(),
            label_column: self.label_column.clone(),
            truth_column: self.truth_column.clone(),
            test: self.test.clone(),
            test_labels: self.test_labels.clone(),
            class_names: self.class_names.clone(),
            skip_unreadable: self.skip_unreadable,
            ..OwnOptions::default()
        }
    }
}

/// Opens a known set or the user's own.
pub fn open_data(what: &str, place: &Place, own: &Own) -> Result<Splits> {
    let splits = open(what, &place.to_read()?, &own.options())?;
    tell_notes(&splits);
    Ok(splits)
}

/// Opens the data of a run. Pictures that cannot be read are refused here, before anything is made, unless they are to be left out.
pub fn open_to_learn(settings: &DataSettings, quiet: bool) -> Result<Splits> {
    let splits = settings.open()?;
    if !quiet {
        tell_all(&splits);
    }
    if !settings.own.skip_unreadable {
        splits.check_readable()?;
    }
    Ok(splits)
}

/// Refuses pictures that cannot be read, all at once; those that are to be left out are no longer there.
pub fn check_readable(dataset: &Dataset, own: &Own) -> Result<()> {
    if own.skip_unreadable { Ok(()) } else { Ok(Splits::new(dataset.clone(), None).check_readable()?) }
}

/// Says what a person should know of how the data was read.
pub fn tell_notes(splits: &Splits) {
    splits.notes.iter().for_each(|note| eprintln!("note: {note}"));
}

/// Says what a person should know of data that is to be learnt from: also which vectors are in both parts. Pictures are not read
/// through for that; `negscale data inspect` does.
fn tell_all(splits: &Splits) {
    tell_notes(splits);
    let (Some(test), Items::Features(_)) = (&splits.test, splits.train.items()) else { return };
    let found = shared(&splits.train, test, 1);
    if found.items > 0 {
        eprintln!("warning: {}", describe_shared(&found, test.len(), "test"));
    }
}

/// Items that are in two parts, in words.
pub fn describe_shared(found: &Shared, of: usize, part: &str) -> String {
    let Shared { items, contradicting, .. } = found;
    format!(
        "{items} of {of} items of the {part} part are in the training part as well, {contradicting} with another label: \
         accuracy on them shows what was memorised"
    )
}

/// A part of a data set.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Split {
    /// What is learned from.
    Train,
    /// What is judged by.
    Test,
    /// A second set to judge by, such as ILSVRC12 for mini-WebVision.
    SecondTest,
}

/// The part asked for; unasked the test part, or all there is where there is none.
pub fn choose(splits: Splits, split: Option<Split>) -> Result<Dataset> {
    let Splits { train, test, second_test, .. } = splits;
    match split {
        None => Ok(test.unwrap_or(train)),
        Some(Split::Train) => Ok(train),
        Some(Split::Test) => test.with_context(|| {
            format!("`{}` has no test part: leave --split out, or name one with --test", train.name())
        }),
        Some(Split::SecondTest) => second_test
            .with_context(|| format!("`{}` has no second test part: leave --split out", train.name())),
    }
}

/// Opens items that need no labels: the user's own at a path, or a part of a data set.
pub fn open_items(what: &str, split: Option<Split>, place: &Place, own: &Own) -> Result<Dataset> {
    let path = std::path::Path::new(what);
    if split.is_none() && !known::is_known(what) && path.exists() {
        let items = own::open_items(path, &own.options())?;
        tell_notes(&items);
        return Ok(items.train);
    }
    choose(open_data(what, place, own)?, split)
}
