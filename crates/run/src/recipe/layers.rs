//! What people write, layer over layer, checked as it comes.

use super::data::DataSettings;
use super::keys::{self, Key, join};
use super::value::{Expected, describe};
use super::written::{check, insert, parse};
use super::{DEFAULT_DATA, IN_MEMORY, Judge};
use negscale_data::own::{Header, OwnOptions};
use negscale_methods::{Error, Result, hosts};
use negscale_records::nearest;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Which layer overrides which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    File,
    Set,
    Flag,
}

/// Settings that any audit can use, whoever judges.
const NOT_OF_TRAINING: &[&str] = &[
    "data",
    "data_dir",
    "labels",
    "header",
    "label_column",
    "label_columns",
    "truth_column",
    "source_column",
    "text_column",
    "array",
    "feature_columns",
    "ignore_columns",
    "id_column",
    "test",
    "test_labels",
    "class_names",
    "samples",
    "noise",
    "noise_seed",
    "tree",
    "seed",
    "threads",
];

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub value: Value,
    /// A file, or a flag.
    pub place: String,
}

/// Values by the path of their keys.
pub(super) type Entries = BTreeMap<String, Entry>;

/// Settings as written, layer over layer; what is not set takes its default.
#[derive(Debug, Clone)]
pub struct Layers {
    keys: Vec<Key>,
    layers: Vec<(Rank, Entries)>,
}

impl Default for Layers {
    fn default() -> Self {
        Self::new()
    }
}

pub(super) fn wrong(place: impl Into<String>, problem: impl Into<String>) -> Error {
    Error::Settings { place: place.into(), problem: problem.into() }
}

impl Layers {
    /// Defaults only.
    pub fn new() -> Self {
        Self { keys: keys::keys(), layers: Vec::new() }
    }

    /// Whether these settings say who judges the labels of an audit: by name, or because they choose something of a training.
    pub fn choose_judge(&self) -> Option<Judge> {
        let keys = || self.layers.iter().flat_map(|(_, entries)| entries.keys());
        let is_training =
            |key: &&String| !key.starts_with("audit.") && !NOT_OF_TRAINING.contains(&key.as_str());
        if keys().any(|key| key == "audit.judge") {
            None
        } else {
            keys().find(is_training).map(|_| Judge::Training)
        }
    }

    /// With a recipe file over the files before.
    pub fn with_file(self, path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })?;
        self.with_text(&path.display().to_string(), &text)
    }

    /// Layers for a dataset that is in memory already: no data is named, and no noise is laid over its labels.
    pub fn in_memory() -> Result<Self> {
        Self::new().over_in_memory()
    }

    /// These layers, for a dataset that is in memory already.
    pub(crate) fn over_in_memory(self) -> Result<Self> {
        self.with_text("data in memory", &format!("data = \"{IN_MEMORY}\"\nnoise = \"none\""))
    }

    /// With the text of a recipe over the files before; `place` is what errors call it.
    pub fn with_text(self, place: &str, text: &str) -> Result<Self> {
        self.with_table(place, parse(place, text)?)
    }

    /// With a recipe, already parsed, over the files before.
    pub(super) fn with_table(self, place: &str, table: Table) -> Result<Self> {
        let entries = self.checked(table, place)?;
        Ok(self.with_entries(entries))
    }

    /// With values, already checked, over the files before.
    pub(super) fn with_entries(mut self, entries: Entries) -> Self {
        self.lay(Rank::File, entries);
        self
    }

    /// Values that have been checked, by the path of their keys.
    pub(super) fn checked(&self, table: Table, place: &str) -> Result<Entries> {
        let mut entries = Entries::new();
        self.enter("", table, place, &mut entries)?;
        Ok(entries)
    }

    /// With pairs `key=value` over all files; keys are written with their table, as in `table.key`. A value that is not TOML is text.
    pub fn with_sets<T: AsRef<str>>(mut self, pairs: impl IntoIterator<Item = T>) -> Result<Self> {
        for pair in pairs {
            let pair = pair.as_ref();
            let place = format!("--set {pair}");
            let Some((path, text)) = pair.split_once('=') else {
                return Err(wrong(
                    format!("in {place}"),
                    "`=` is missing; write KEY=VALUE, such as epochs=3 or negscale.lambda=0.5",
                ));
            };
            let (path, text) = (path.trim(), text.trim());
            let is_text = self.key(path).is_some_and(|key| key.expected == Expected::Text);
            let value = match text.parse::<Value>() {
                Ok(value) if !is_text || value.is_str() => value,
                _ => Value::String(text.into()),
            };
            self.put(Rank::Set, path, value, &place)?;
        }
        Ok(self)
    }

    /// With the value of a flag (named as on the command line, such as `--epochs`) over everything else.
    pub fn with_flag(mut self, flag: &str, key: &str, value: impl Into<Value>) -> Result<Self> {
        self.put(Rank::Flag, key, value.into(), flag)?;
        Ok(self)
    }

    /// Enters a value by the path of its key.
    fn put(&mut self, rank: Rank, path: &str, value: Value, place: &str) -> Result<()> {
        let mut table = Table::new();
        insert(&mut table, path, value);
        let entries = self.checked(table, place)?;
        self.lay(rank, entries);
        Ok(())
    }

    /// Every file is a layer; all pairs together are one, and so are all flags.
    fn lay(&mut self, rank: Rank, entries: Entries) {
        match self.layers.iter_mut().find(|(other, _)| *other == rank && rank != Rank::File) {
            Some((_, there)) => there.extend(entries),
            None => self.layers.push((rank, entries)),
        }
        self.layers.sort_by_key(|(rank, _)| *rank);
    }

    fn key(&self, path: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.path() == path)
    }

    /// Checks what is in a table and enters it.
    fn enter(&self, table: &str, given: Table, place: &str, entries: &mut Entries) -> Result<()> {
        for (name, value) in given {
            let path = join(table, &name);
            if let Some(key) = self.key(&path) {
                let value = check(key, value, place)?;
                entries.insert(path, Entry { value, place: place.into() });
            } else if path == "provenance" {
                // How a saved recipe came about: for people.
            } else if ["matrix", "arms", "search"].contains(&path.as_str()) {
                let problem = format!(
                    "[{path}] describes several runs: run them all with `negscale sweep run`, or remove it"
                );
                return Err(wrong(format!("in {place}"), problem));
            } else if self.is_table(&path) {
                let Value::Table(inner) = value else {
                    let problem = format!("`{path}` must be a table; it is {}", describe(&value));
                    return Err(wrong(format!("in {place}"), problem));
                };
                self.enter(&path, inner, place, entries)?;
            } else {
                return Err(self.unknown(table, &name, place));
            }
        }
        Ok(())
    }

    /// Tables of all keys, and those of hosts without any.
    fn tables(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.table.as_str()).chain(hosts::METHODS.iter().map(|card| card.id))
    }

    /// Whether it is a table, or one around tables.
    fn is_table(&self, path: &str) -> bool {
        self.tables().any(|known| {
            known.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    fn unknown(&self, table: &str, name: &str, place: &str) -> Error {
        let mut known: Vec<&str> = Vec::new();
        let inside = join(table, "");
        let inner = self.tables().filter_map(|other| other.strip_prefix(&inside));
        let here = self.keys.iter().filter(|key| key.table == table).map(|key| key.name.as_str());
        for name in here.chain(inner.filter(|name| !name.is_empty() && !name.contains('.'))) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        let of = if table.is_empty() { String::new() } else { format!(" in [{table}]") };
        let Some(near) = nearest(name, known.iter().copied()).first().copied() else {
            return wrong(
                format!("in {place}"),
                format!("there is no key `{name}`{of}: the table has no settings"),
            );
        };
        // A key whose table was forgotten is found by its name.
        let astray = self.keys.iter().find(|key| key.name == name && key.table != table).map(Key::path);
        let near = astray.unwrap_or_else(|| near.to_owned());
        let all = known.join(", ");
        wrong(
            format!("in {place}"),
            format!("there is no key `{name}`{of}; did you mean `{near}`? All names{of}: {all}"),
        )
    }

    /// The value of a key in the topmost layer that sets it.
    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.layers.iter().rev().find_map(|(_, entries)| entries.get(path))
    }

    /// All layers, the lowest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entries> {
        self.layers.iter().map(|(_, entries)| entries)
    }

    /// The uppermost values of all keys in a table and the tables inside it, over its defaults.
    pub(super) fn over(&self, table: &str, defaults: Table) -> Table {
        let mut all = defaults;
        let inside = format!("{table}.");
        for entries in self.entries() {
            for (path, entry) in entries {
                if let Some(rest) = path.strip_prefix(&inside) {
                    insert(&mut all, rest, entry.value.clone());
                }
            }
        }
        all
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        // Empty text takes back what a layer below says.
        self.get(key)?.value.as_str().filter(|text| !text.is_empty())
    }

    fn texts(&self, key: &str) -> Vec<String> {
        let items = self.get(key).and_then(|entry| entry.value.as_array()).into_iter().flatten();
        items.filter_map(|item| item.as_str()).map(str::to_owned).collect()
    }

    fn header(&self) -> Result<Header> {
        let word = self.text("header").unwrap_or(Header::Auto.word());
        word.parse().map_err(|problem: String| wrong(self.place("header"), problem))
    }

    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        self.get(key)?.value.as_integer().and_then(|number| u64::try_from(number).ok())
    }

    /// Whether a key that is off by default is on.
    pub(super) fn switch(&self, key: &str) -> bool {
        self.get(key).and_then(|entry| entry.value.as_bool()) == Some(true)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.value.as_float()
    }

    /// A key with the place its value comes from, for errors.
    pub(super) fn place(&self, path: &str) -> String {
        match self.get(path) {
            Some(entry) => format!("in {}, `{path}`", entry.place),
            None => format!("`{path}` (by default)"),
        }
    }

    /// The data, its noise and its tree: known before anything is opened.
    pub fn data(&self) -> Result<DataSettings> {
        let path = |key| self.text(key).map(PathBuf::from);
        let text = |key| self.text(key).map(str::to_owned);
        let data = self.text("data").unwrap_or(DEFAULT_DATA);
        let noise = match self.text("noise") {
            Some(noise) => noise,
            None if data == DEFAULT_DATA => super::DEFAULT_NOISE,
            None => "none",
        };
        let side = self.whole("side").map(|side| side as usize);
        if side == Some(0) {
            return Err(wrong(self.place("side"), "it is 0; images need at least 1 pixel per side"));
        }
        let samples = self.whole("samples").map(|samples| samples as usize);
        Ok(DataSettings {
            data: data.into(),
            data_dir: path("data_dir"),
            own: OwnOptions {
                labels: path("labels"),
                header: self.header()?,
                label_column: text("label_column"),
                label_columns: self.texts("label_columns"),
                truth_column: text("truth_column"),
                source_column: text("source_column"),
                text_column: text("text_column"),
                image_column: text("image_column"),
                array: text("array"),
                feature_columns: self.texts("feature_columns"),
                ignore_columns: self.texts("ignore_columns"),
                id_column: text("id_column"),
                test: path("test"),
                test_labels: path("test_labels"),
                class_names: path("class_names"),
                skip_unreadable: self.switch("skip_unreadable"),
                ..OwnOptions::default()
            },
            samples,
            side,
            noise: noise.parse()?,
            noise_seed: self.whole("noise_seed").unwrap_or(0),
            tree: self.text("tree").unwrap_or("auto").into(),
        })
    }
}
