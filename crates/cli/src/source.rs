//! Where data comes from: arguments that several verbs share.

use anyhow::{Context, Result};
use negscale_data::folders::Folders;
use negscale_data::inspect::{Shared, shared};
use negscale_data::own::{self, Header, OwnOptions};
use negscale_data::{Dataset, Items, NoiseContext, Splits, known, open};
use negscale_run::recipe::DataSettings;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where data is looked for.
#[derive(clap::Args)]
pub struct Place {
    /// Folder to search first and to fetch into; NEGSCALE_DATA and the platform's cache folder are searched next.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
}

impl Place {
    /// The folders, in the order in which they are searched.
    pub fn folders(&self) -> Folders {
        Folders::of_process(self.data_dir.as_deref())
    }

    /// The same, for reading: a folder named by the user must exist.
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
    /// File of labels (.npy, .csv, or .txt with one per line), for data without labels or to replace them. A column `index`, `path` or of
    /// ids matches labels to items; without one, labels are in the order of the data.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Whether the labels file (or, without one, the table) has a header line [default: detected].
    #[arg(long, value_name = "yes|no")]
    pub header: Option<Header>,
    /// Column with the labels.
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
    /// Column with the true labels, if known.
    #[arg(long, value_name = "NAME")]
    pub truth_column: Option<String>,
    /// Columns with labels by several annotators, separated by commas: the label is their majority vote, and blank cells are no votes. An
    /// audit estimates their consensus and how good each of them is.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "label_column")]
    pub label_columns: Vec<String>,
    /// Column that says where labels come from, such as a camera or a site: not a feature; an audit counts wrong labels by it.
    #[arg(long, value_name = "NAME")]
    pub source_column: Option<String>,
    /// Column of a table that holds texts: an encoder makes rows of numbers of them, in audits and with `negscale embed`.
    #[arg(long, value_name = "NAME", conflicts_with = "feature_columns")]
    pub text_column: Option<String>,
    /// Array with the features in .npz and .safetensors, or the list column with them in Parquet.
    #[arg(long, value_name = "NAME")]
    pub array: Option<String>,
    /// Columns with the features in a table, separated by commas [default: all others].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub feature_columns: Vec<String>,
    /// Columns of a table to ignore, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ignore_columns: Vec<String>,
    /// Column with ids in a table: not a feature, but shown in audit.csv; `none` if no column is an id, whatever its name.
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Test data; it may be in another format than the training data.
    #[arg(long, value_name = "PATH")]
    pub test: Option<PathBuf>,
    /// Labels file for the test data.
    #[arg(long, value_name = "FILE")]
    pub test_labels: Option<PathBuf>,
    /// File with class names, one per line.
    #[arg(long, value_name = "FILE")]
    pub class_names: Option<PathBuf>,
    /// Skip images that cannot be read instead of stopping with an error.
    #[arg(long)]
    pub skip_unreadable: bool,
}

impl Own {
    /// The same for whoever opens data.
    pub fn options(&self) -> OwnOptions {
        OwnOptions {
            labels: self.labels.clone(),
            header: self.header.unwrap_or(Header::Auto),
            array: self.array.clone(),
            feature_columns: self.feature_columns.clone(),
            ignore_columns: self.ignore_columns.clone(),
            id_column: self.id_column.clone(),
            label_column: self.label_column.clone(),
            label_columns: self.label_columns.clone(),
            truth_column: self.truth_column.clone(),
            source_column: self.source_column.clone(),
            text_column: self.text_column.clone(),
            test: self.test.clone(),
            test_labels: self.test_labels.clone(),
            class_names: self.class_names.clone(),
            skip_unreadable: self.skip_unreadable,
            ..OwnOptions::default()
        }
    }

    /// The same as words of a command line.
    pub fn words(&self) -> Vec<OsString> {
        let Self { labels, header, label_column, truth_column, label_columns, source_column, array, .. } =
            self;
        let Self {
            text_column,
            feature_columns,
            ignore_columns,
            id_column,
            test,
            test_labels,
            class_names,
            ..
        } = self;
        let header = header.map(Header::word);
        let files =
            [("labels", labels), ("test", test), ("test-labels", test_labels), ("class-names", class_names)];
        let files = files.into_iter().filter_map(|(name, file)| Some((name, file.clone()?.into_os_string())));
        let one = [
            ("header", header),
            ("label-column", label_column.as_deref()),
            ("truth-column", truth_column.as_deref()),
            ("source-column", source_column.as_deref()),
            ("text-column", text_column.as_deref()),
            ("array", array.as_deref()),
            ("id-column", id_column.as_deref()),
        ];
        let one = one.into_iter().filter_map(|(name, text)| Some((name, text?.into())));
        let many = [
            ("label-columns", label_columns),
            ("feature-columns", feature_columns),
            ("ignore-columns", ignore_columns),
        ];
        let many = many.into_iter().filter(|(_, list)| !list.is_empty());
        let many = many.map(|(name, list)| (name, list.join(",").into()));
        let mut words = Vec::new();
        for (name, value) in files.chain(one).chain(many) {
            words.extend([format!("--{name}").into(), value]);
        }
        if self.skip_unreadable {
            words.push("--skip-unreadable".into());
        }
        words
    }
}

/// Opens a known dataset or the user's own.
pub fn open_data(what: &str, place: &Place, own: &Own) -> Result<Splits> {
    let splits = open(what, &place.to_read()?, &own.options())?;
    tell_notes(&splits);
    Ok(splits)
}

/// Opens the data of a run. Images that cannot be read are refused here, before anything is made, unless they are to be skipped.
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

/// Refuses images that cannot be read, all at once; those that are to be left out are no longer there.
pub fn check_readable(dataset: &Dataset, own: &Own) -> Result<()> {
    if own.skip_unreadable { Ok(()) } else { Ok(Splits::new(dataset.clone(), None).check_readable()?) }
}

/// Prints notes on how the data was read.
pub fn tell_notes(splits: &Splits) {
    splits.notes.iter().for_each(|note| eprintln!("note: {note}"));
}

/// Says what a person should know of data that is to be learnt from: also which vectors are in both parts. Images are not read
/// through for that; `negscale data inspect` does.
fn tell_all(splits: &Splits) {
    tell_notes(splits);
    let (Some(test), Items::Features(_)) = (&splits.test, splits.train.items()) else { return };
    let found = shared(&splits.train, test, 1);
    if found.items > 0 {
        eprintln!("warning: {}", describe_shared(&found, test.len(), "test"));
    }
}

/// Items that are in two splits, in words.
pub fn describe_shared(found: &Shared, of: usize, part: &str) -> String {
    let Shared { items, contradicting, .. } = found;
    format!(
        "{items} of {of} items of the {part} split are also in the training split, {contradicting} of them with another label: \
         accuracy on these items shows what was memorised"
    )
}

/// A split of a dataset.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Split {
    /// Training split.
    Train,
    /// Test split.
    Test,
    /// Second test split, such as ILSVRC12 for mini-WebVision.
    SecondTest,
}

/// The split asked for; by default the test split, or everything where there is none.
pub fn choose(splits: Splits, split: Option<Split>) -> Result<Dataset> {
    let Splits { train, test, second_test, .. } = splits;
    match split {
        None => Ok(test.unwrap_or(train)),
        Some(Split::Train) => Ok(train),
        Some(Split::Test) => test.with_context(|| {
            format!("`{}` has no test split: leave --split out, or name one with --test", train.name())
        }),
        Some(Split::SecondTest) => second_test
            .with_context(|| format!("`{}` has no second test split: leave --split out", train.name())),
    }
}

/// Opens items that need no labels: the user's own at a path, or a part of a dataset.
pub fn open_items(what: &str, split: Option<Split>, place: &Place, own: &Own) -> Result<Dataset> {
    let path = std::path::Path::new(what);
    if split.is_none() && !known::is_known(what) && path.exists() {
        let items = own::open_items(path, &own.options())?;
        tell_notes(&items);
        return Ok(items.train);
    }
    choose(open_data(what, place, own)?, split)
}
