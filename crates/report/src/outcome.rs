//! What a finished run left in its folder, for comparing runs.
//!
//! `settings.toml` says what was run and, under `[provenance]`, on what; `results.json` holds its figures. Records of single
//! epochs (`metrics.jsonl`) are read only when asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::journal::read_metrics;
use negscale_records::EpochRecord;

const SETTINGS: &str = "settings.toml";
const RESULTS: &str = "results.json";
const METRICS: &str = "metrics.jsonl";

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its folder.
    pub folder: PathBuf,
    /// Training method.
    pub host: String,
    /// Plug-in; `none` for nothing.
    pub plugin: String,
    /// The plug-in with what of it acts, where that is less than its name promises.
    pub acting: String,
    /// Network.
    pub net: String,
    /// Data, by name or path.
    pub data: String,
    /// Noise that was added to it, as in the settings.
    pub noise: String,
    /// Seed of that noise.
    pub noise_seed: u64,
    /// Seed of training.
    pub seed: u64,
    /// Number of epochs.
    pub epochs: u64,
    /// Share of labels that noise changed, if any was added.
    pub noise_achieved: Option<f64>,
    /// How that noise is defined, in words.
    pub noise_convention: Option<String>,
    /// Every number of `results.json` by its name, what else the last epoch measured (such as `similarity related`), and
    /// `validation_last10`, the mean accuracy on held-out samples; what was not measured is not there.
    pub figures: BTreeMap<String, f64>,
    /// The same of the baseline that was trained beside it, if one was.
    pub baseline: BTreeMap<String, f64>,
    /// Precision of its ranking of labels at every twentieth of recall; empty where the truth is not known.
    pub audit_precision: Vec<f64>,
    /// Version of the program.
    pub version: String,
    /// What it ran on.
    pub hardware: String,
    /// The instructions that made its numbers, on which their last bits depend; runs of older versions do not say.
    pub instructions: Option<String>,
    /// When it started, in seconds since 1970.
    pub started: Option<u64>,
    /// All settings, without provenance.
    pub settings: Table,
}

impl Outcome {
    /// Reads the folder of a finished run.
    ///
    /// # Errors
    /// [`Error::NoRun`]: there is no run; [`Error::Unfinished`]: it has no results yet; [`Error::Damaged`]: a file is not
    /// what a run writes; [`Error::Io`]: the system cannot read.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(SETTINGS);
        let Some(text) = read_if_there(&path)? else { return Err(Error::NoRun { folder: folder.into() }) };
        let mut settings: Table = text.parse().map_err(|error: toml::de::Error| {
            damaged(&path, format!("it is not TOML ({})", error.message().trim()))
        })?;
        let origin = match settings.remove("provenance") {
            Some(Value::Table(origin)) => origin,
            _ => return Err(damaged(&path, "it has no table [provenance]")),
        };
        let text = |key: &str| match settings.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(damaged(&path, format!("`{key}` is missing or not a string"))),
        };
        let whole = |key: &str| {
            let number = settings.get(key).and_then(Value::as_integer);
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| damaged(&path, format!("`{key}` is missing or not a whole number")))
        };
        let said = |key: &str| origin.get(key).and_then(Value::as_str).map(str::to_owned);
        let epochs = whole("epochs")?;
        let results = folder.join(RESULTS);
        let Some(json) = read_if_there(&results)? else {
            let done = metrics(folder)?.len() as u64;
            return Err(Error::Unfinished { folder: folder.into(), done, epochs });
        };
        let json: Json = serde_json::from_str(&json)
            .map_err(|error| damaged(&results, format!("it is not JSON ({error})")))?;
        // Runs of older versions have no stamp in their results.
        let stamps = (json.get("run").and_then(Json::as_str), said("run"));
        if stamps.0.is_some_and(|run| stamps.1.as_deref() != Some(run)) {
            return Err(damaged(&results, "it does not belong to the same run as settings.toml next to it"));
        }
        let figures = numbers(&json).filter(|figures| !figures.is_empty());
        let mut figures = figures.ok_or_else(|| damaged(&results, "it holds no figures"))?;
        // What only some runs measure stands with their epochs.
        let mut records = metrics(folder)?;
        figures.extend(validation_last_10(&records).map(|mean| ("validation_last10".to_owned(), mean)));
        if let Some(last) = records.pop() {
            for (name, value) in last.more {
                figures.entry(name).or_insert(value);
            }
        }
        let plugin = text("plugin")?;
        let words = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        Ok(Self {
            folder: folder.into(),
            host: text("host")?,
            acting: words("plugin").unwrap_or_else(|| plugin.clone()),
            plugin,
            net: text("net")?,
            data: text("data")?,
            noise: text("noise")?,
            noise_seed: whole("noise_seed")?,
            seed: whole("seed")?,
            epochs,
            noise_achieved: origin.get("noise_achieved").and_then(number),
            noise_convention: said("noise_convention"),
            figures,
            baseline: match json.get("baseline") {
                None | Some(Json::Null) => BTreeMap::new(),
                Some(json) => {
                    numbers(json).ok_or_else(|| damaged(&results, "`baseline` is not a list of figures"))?
                }
            },
            audit_precision: row(json.get("audit_precision"))
                .ok_or_else(|| damaged(&results, "`audit_precision` is not a list of numbers"))?,
            instructions: words("instructions"),
            version: said("version").unwrap_or_default(),
            hardware: said("hardware").unwrap_or_default(),
            started: origin.get("started").and_then(Value::as_integer).and_then(|at| u64::try_from(at).ok()),
            settings,
        })
    }

    /// Host and plug-in, for people, and whether it uses true labels.
    #[must_use]
    pub fn method(&self) -> String {
        let name = if self.plugin == "none" {
            self.host.clone()
        } else {
            format!("{} + {}", self.host, self.acting)
        };
        mark_true_labels(&name, self.true_labels())
    }

    /// Whether its numbers were made by the same instructions as another's.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.instructions == other.instructions
    }

    /// How many true labels the method was given; most methods get none.
    #[must_use]
    pub fn true_labels(&self) -> u64 {
        self.figures.get("true_labels").map_or(0, |&count| count as u64)
    }

    /// A figure by its name.
    ///
    /// # Errors
    /// The run has none of that name, or it was not measured.
    pub fn figure(&self, name: &str) -> Result<f64> {
        self.figures.get(name).copied().ok_or_else(|| Error::Figure {
            folder: self.folder.clone(),
            name: name.into(),
            known: self.figures.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// A setting by its path, such as `epochs` or `negscale.lambda`; text without its quotes.
    #[must_use]
    pub fn setting(&self, path: &str) -> Option<String> {
        let mut parts = path.split('.');
        let first = self.settings.get(parts.next()?)?;
        let value = parts.try_fold(first, |value, part| value.as_table()?.get(part))?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// The records of its epochs.
    ///
    /// # Errors
    /// `metrics.jsonl` cannot be read.
    pub fn records(&self) -> Result<Vec<EpochRecord>> {
        Ok(read_metrics(&self.folder.join(METRICS))?.records)
    }
}

/// What to say below a table with pairs whose runs were not made by the same instructions.
#[must_use]
pub fn unlike_pairs(count: usize) -> String {
    format!(
        "Pairs of runs on CPUs with different instructions, which differ by more than the plug-in: {count}."
    )
}

/// A method's name, marked if it uses true labels: it must not be compared with others without saying so.
#[must_use]
pub fn mark_true_labels(name: &str, true_labels: u64) -> String {
    if true_labels == 0 { name.to_owned() } else { format!("{name} (uses {true_labels} true labels)") }
}

fn damaged(path: &Path, problem: impl Into<String>) -> Error {
    Error::Damaged { path: path.into(), problem: problem.into() }
}

fn read_if_there(path: &Path) -> Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| damaged(path, "it is not UTF-8 text")),
        // A file where a folder should be has no files inside either.
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(Error::io(path, error)),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// A list of numbers; empty if there is none.
fn row(json: Option<&Json>) -> Option<Vec<f64>> {
    match json {
        None | Some(Json::Null) => Some(Vec::new()),
        Some(json) => json.as_array()?.iter().map(Json::as_f64).collect(),
    }
}

/// The records of a run's epochs; none if it has not come that far.
fn metrics(folder: &Path) -> Result<Vec<EpochRecord>> {
    match read_metrics(&folder.join(METRICS)) {
        Ok(reading) => Ok(reading.records),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Accuracy on held-out samples against their labels as given, mean over the last ten epochs.
fn validation_last_10(records: &[EpochRecord]) -> Option<f64> {
    let last = &records[records.len().saturating_sub(10)..];
    let sum = last.iter().try_fold(0.0, |sum, record| Some(sum + record.validation_accuracy?))?;
    (!last.is_empty()).then(|| sum / last.len() as f64)
}

/// What to say where runs that are compared were not all made by the same instructions; nothing if they were, or do not say.
#[must_use]
pub fn several_instructions(runs: &[&Outcome]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.instructions.as_deref().unwrap_or("not recorded")).or_default() += 1;
    }
    if counts.len() < 2 {
        return None;
    }
    let all: Vec<String> = counts.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    Some(format!(
        "Runs were made on CPUs with different instructions ({}): the same seed gives other last bits on each, so differences \
         between such runs contain more chance than those on the same seed. Compare like with like.",
        all.join("; ")
    ))
}

fn numbers(json: &Json) -> Option<BTreeMap<String, f64>> {
    let all = json.as_object()?.iter();
    Some(all.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS_TEXT: &str = r#"
data = "cifar10-embeddings"
noise = "sym:0.5"
noise_seed = 3
host = "rolr"
plugin = "negscale"
net = "mlp"
epochs = 2
seed = 7

[negscale]
lambda = 0.5

[provenance]
run = "abc"
version = "0.1.0"
hardware = "a machine"
noise_achieved = 0.45
noise_convention = "symmetric"
started = 1794804889
"#;
    const RESULTS_TEXT: &str = r#"{"run": "abc", "method": "rolr + negscale", "instructions": "avx2+fma", "test_last": 0.5, "flagged": 12, "fit_clean": null,
        "baseline": {"test_last": 0.25}}"#;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_finished_run_is_read_whole() {
        let metrics = r#"{"epoch":0,"seconds":1,"learning_rate":0.1,"losses":{},"more":{"similarity related":0.25,"flagged":1}}"#;
        let folder = folder(&[(SETTINGS, SETTINGS_TEXT), (RESULTS, RESULTS_TEXT), (METRICS, metrics)]);
        let run = Outcome::read(folder.path()).unwrap();
        assert_eq!(
            (run.method().as_str(), run.seed, run.noise_seed, run.epochs),
            ("rolr + negscale", 7, 3, 2)
        );
        assert_eq!((run.noise.as_str(), run.noise_achieved), ("sym:0.5", Some(0.45)));
        assert_eq!((run.figure("test_last").unwrap(), run.figure("flagged").unwrap()), (0.5, 12.0));
        assert_eq!(run.figure("similarity related").unwrap(), 0.25, "of the last epoch");
        assert_eq!(run.baseline["test_last"], 0.25);
        assert_eq!(run.setting("negscale.lambda").as_deref(), Some("0.5"));
        assert_eq!((run.setting("data").as_deref(), run.setting("x.y")), (Some("cifar10-embeddings"), None));
        assert_eq!(run.records().unwrap().len(), 1);
        assert_eq!(run.instructions.as_deref(), Some("avx2+fma"));
        let error = run.figure("fit_clean").unwrap_err().to_string();
        assert!(error.contains("`fit_clean`") && error.contains("test_last"), "{error}");
    }

    #[test]
    fn the_accuracy_on_held_out_samples_is_that_of_the_last_ten_epochs() {
        let line = |epoch: usize| {
            let accuracy = if epoch < 2 { 0.9 } else { epoch as f64 / 100.0 };
            format!(
                "{{\"epoch\":{epoch},\"seconds\":1,\"learning_rate\":0.1,\"losses\":{{}},\"validation_accuracy\":{accuracy}}}\n"
            )
        };
        let metrics: String = (0..12).map(line).collect();
        let folder = folder(&[(SETTINGS, SETTINGS_TEXT), (RESULTS, RESULTS_TEXT), (METRICS, &metrics)]);
        let mean = Outcome::read(folder.path()).unwrap().figure("validation_last10").unwrap();
        assert!((mean - 0.065).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn a_method_that_was_told_true_labels_is_marked() {
        let results = RESULTS_TEXT.replace("\"flagged\": 12", "\"true_labels\": 500");
        let folder = folder(&[(SETTINGS, SETTINGS_TEXT), (RESULTS, results.as_str())]);
        let run = Outcome::read(folder.path()).unwrap();
        assert_eq!(
            (run.true_labels(), run.method().as_str()),
            (500, "rolr + negscale (uses 500 true labels)")
        );
    }

    #[test]
    fn a_plug_in_that_did_less_than_its_name_promises_is_named_after_what_it_did() {
        let results = RESULTS_TEXT.replace("\"flagged\": 12", "\"plugin\": \"negscale (SNOP alone)\"");
        let folder = folder(&[(SETTINGS, SETTINGS_TEXT), (RESULTS, results.as_str())]);
        let run = Outcome::read(folder.path()).unwrap();
        assert_eq!(
            (run.plugin.as_str(), run.method().as_str()),
            ("negscale", "rolr + negscale (SNOP alone)")
        );
    }

    #[test]
    fn runs_made_by_different_instructions_are_told_from_runs_made_by_the_same() {
        let read = |results: &str| {
            Outcome::read(folder(&[(SETTINGS, SETTINGS_TEXT), (RESULTS, results)]).path()).unwrap()
        };
        let (first, wide) = (read(RESULTS_TEXT), read(&RESULTS_TEXT.replace("avx2+fma", "avx512")));
        let older = read(&RESULTS_TEXT.replace("\"instructions\": \"avx2+fma\", ", ""));
        assert_eq!(several_instructions(&[&first, &first]), None);
        assert_eq!(several_instructions(&[&older, &older]), None);
        let note = several_instructions(&[&first, &wide, &first]).unwrap();
        assert!(note.contains("avx2+fma: 2") && note.contains("avx512: 1"), "{note}");
        assert!(several_instructions(&[&first, &older]).unwrap().contains("not recorded: 1"));
    }

    #[test]
    fn an_unfinished_run_a_damaged_one_and_none_are_told_apart() {
        let metrics = r#"{"epoch":0,"seconds":1,"learning_rate":0.1,"losses":{}}"#;
        let unfinished = folder(&[(SETTINGS, SETTINGS_TEXT), (METRICS, metrics)]);
        assert!(matches!(
            Outcome::read(unfinished.path()),
            Err(Error::Unfinished { done: 1, epochs: 2, .. })
        ));
        assert!(matches!(Outcome::read(folder(&[]).path()), Err(Error::NoRun { .. })));
        assert!(matches!(Outcome::read(Path::new("not/there")), Err(Error::NoRun { .. })));
        let damages = [
            [(SETTINGS, "data = "), (RESULTS, RESULTS_TEXT)],
            [(SETTINGS, "host = \"rolr\""), (RESULTS, RESULTS_TEXT)],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "{\"test_last\": 0.")],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "[]")],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "{}")],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "{\"run\": \"other\", \"test_last\": 0.5}")],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "{\"test_last\": 0.5, \"baseline\": 3}")],
            [(SETTINGS, SETTINGS_TEXT), (RESULTS, "{\"test_last\": 0.5, \"audit_precision\": [\"high\"]}")],
        ];
        for files in damages {
            let folder = folder(&files);
            let found = Outcome::read(folder.path());
            assert!(matches!(found, Err(Error::Damaged { .. })), "{files:?}: {found:?}");
        }
    }
}
