//! A run's folder: plain files, each complete or absent, and checkpoints to resume from.
//!
//! | file | content |
//! |---|---|
//! | `settings.toml` | the resolved settings, usable as a recipe, and where they come from |
//! | `metrics.jsonl`, `events/` | one record per epoch; the same for TensorBoard |
//! | `checkpoints/` | the two newest states, until the run is finished |
//! | `embeddings/` | rows of pictures that an audit has encoded, until it is finished |
//! | `ledger.parquet`, `audit.csv`, `model.safetensors`, `tree.tsv`, `report.html`, `results.json` | at the end |
//! | `audit.json`, `corrected.csv`, `evidence.csv` | at the end of an audit; `training.html` is the page of its training, if it trained |
//! | `summary.txt` | what was printed at the end; written last, so a run that has it is finished |
//!
//! Files that the program did not write itself are neither replaced nor removed: [`OwnFolder`] keeps the list.

use crate::error::bail;
pub use crate::place::{default_place, keep_apart, title};
use crate::recipe::Recipe;
use crate::{Material, Result, clock, instructions};
use anyhow::Context;
use negscale_atomic_file::{OwnFolder, create_folders};
use negscale_methods::trainer::{Trainer, device_kind};
use negscale_report::{EpochRecord, Journal, events_file, write_events};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SETTINGS: &str = "settings.toml";
/// Its checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// Rows of pictures that an audit has encoded.
const EMBEDDINGS: &str = "embeddings";
const EVENTS: &str = "events";
/// What was printed at the end.
const SUMMARY: &str = "summary.txt";
/// Files of a run of which only results are kept.
const RESULTS: [&str; 6] = [SETTINGS, "skipped.csv", "metrics.jsonl", "tree.tsv", "results.json", SUMMARY];
/// Files that a finished run of which everything is kept must have.
pub const PRODUCTS: [&str; 4] = ["ledger.parquet", "audit.csv", "model.safetensors", "report.html"];
/// Why a run of a sweep failed.
pub const FAILURE: &str = "failure.txt";
/// Settings for the process of a run in a sweep, and its error output; removed when it ends.
pub const OF_SWEEP: [&str; 2] = [".sweep.toml", ".sweep.err"];
/// Subfolder of the baseline's run.
pub const BASELINE: &str = "baseline";
/// The host name in the name of the TensorBoard file.
const HOST: &str = "negscale";
/// Checkpoints that are kept.
const KEPT: usize = 2;

/// A run's folder, held by this process alone.
pub struct RunFolder {
    /// The verb that made it.
    pub verb: &'static str,
    own: OwnFolder,
    stamp: String,
    /// When the run started, in seconds since 1970.
    pub started: u64,
}

/// Program version and the commit it was built from, if that is known.
pub fn version() -> String {
    match option_env!("NEGSCALE_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}

impl RunFolder {
    /// Opens or creates the folder, and checks that it holds this very run.
    pub fn open(
        verb: &'static str,
        place: &Path,
        recipe: &Recipe,
        material: &Material,
        fresh: bool,
    ) -> Result<Self> {
        let own = open_own(place)?;
        own.remove_parts()?;
        if fresh {
            remove(&own, |_| true)?;
            let baseline = place.join(BASELINE);
            if OwnFolder::is_ours(&baseline) {
                open_own(&baseline)?.dissolve()?;
            }
        }
        let named = [
            "audit.json",
            "corrected.csv",
            "evidence.csv",
            "consensus.csv",
            "training.html",
            "model-2.safetensors",
        ];
        own.claim(RESULTS.into_iter().chain(PRODUCTS).chain(named))?;
        let noise = material.noise.as_ref().map_or("none", |noise| noise.hash.as_str());
        let words =
            [&recipe.fingerprint(), &material.fingerprint, noise, env!("CARGO_PKG_VERSION")].join("\n");
        let stamp: String = Sha256::digest(words).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut folder = Self { verb, own, stamp, started: clock::now() };
        let settings = place.join(SETTINGS);
        if settings.exists() {
            folder.compare(&settings, recipe, material)?;
        } else {
            let text = folder.describe(recipe, material)?;
            write(&settings, text.as_bytes())?;
        }
        Ok(folder)
    }

    /// The settings with where they come from.
    fn describe(&self, recipe: &Recipe, material: &Material) -> Result<String> {
        let mut origin = toml::Table::new();
        let mut put = |key: &str, value: toml::Value| drop(origin.insert(key.into(), value));
        put("run", self.stamp.clone().into());
        put("version", version().into());
        put("started", (self.started as i64).into());
        put("data_fingerprint", material.fingerprint.clone().into());
        put("samples", (material.train.len() as i64).into());
        put("hardware", hardware().into());
        put("instructions", instructions::on(&recipe.train.device).into());
        if let Some(noise) = &material.noise {
            put("noise_hash", noise.hash.clone().into());
            put("noise_achieved", noise.achieved.into());
            put("noise_convention", noise.convention.clone().into());
        }
        let origin = toml::to_string(&toml::Table::from_iter([("provenance".to_owned(), origin.into())]))?;
        let verb = self.verb;
        let head = format!("# The settings of this run; `negscale {verb} settings.toml` repeats it.\n");
        Ok(format!("{head}{}\n{origin}", recipe.to_toml()))
    }

    /// Refuses a folder that holds another run.
    fn compare(&mut self, path: &Path, recipe: &Recipe, material: &Material) -> Result<()> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let found: toml::Table = toml::from_str(&text).with_context(|| {
            format!("{} is damaged; choose another --out, or start over with --fresh", path.display())
        })?;
        let origin = found.get("provenance").and_then(toml::Value::as_table).cloned();
        let origin = origin.with_context(|| {
            format!("{} does not say where it comes from: it has no [provenance]. Choose another --out, or start over with --fresh", path.display())
        })?;
        if let Some(started) = origin.get("started").and_then(toml::Value::as_integer) {
            self.started = started as u64;
        }
        if origin.get("run").and_then(toml::Value::as_str) == Some(&self.stamp) {
            return Ok(());
        }
        let ours: toml::Table = toml::from_str(&recipe.to_toml())?;
        let mut differences = Vec::new();
        list_differences("", &found, &ours, &mut differences);
        let data = origin.get("data_fingerprint").and_then(toml::Value::as_str);
        if data != Some(&material.fingerprint) {
            differences.push("the data itself has changed".into());
        }
        let device = found.get("device").and_then(toml::Value::as_str).map_or("cpu", device_kind);
        let ours = device_kind(&recipe.train.device);
        if device != ours {
            differences.push(format!("it was computed on {device}, and this is {ours}"));
        }
        if differences.is_empty() {
            differences.push("it was written by another version of the program".into());
        }
        differences.truncate(6);
        bail!(
            "{} holds another run: {}. Choose another --out, or start over there with --fresh",
            self.place().display(),
            differences.join("; ")
        )
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        self.own.place()
    }

    /// What is run, in one hash: settings, data, noise and version.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Its settings as they are written.
    pub fn settings(&self) -> Result<String> {
        let path = self.file(SETTINGS);
        Ok(fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?)
    }

    /// Removes all but settings, metrics, tree and results.
    pub fn slim(&self) -> Result<()> {
        remove(&self.own, |name| !RESULTS.contains(&name))
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// A file that is written into it by others than this module, on the list of its files.
    pub(crate) fn own_file(&self, name: &str) -> Result<PathBuf> {
        Ok(self.own.file(name)?)
    }

    /// Marks the run as finished, with what was printed, and removes the checkpoints: nothing is left to resume.
    pub fn finish(&self, summary: &str) -> Result<()> {
        write(&self.file(SUMMARY), summary.as_bytes())?;
        self.remove_checkpoints()
    }

    /// Removes the checkpoints of the run and of its baseline.
    pub fn remove_checkpoints(&self) -> Result<()> {
        // Rows of encoded pictures are there to go on with, as checkpoints are.
        let is_checkpoint =
            |name: &str| [CHECKPOINTS, EMBEDDINGS].iter().any(|of| Path::new(name).starts_with(of));
        self.own.remove(is_checkpoint)?;
        let baseline = self.file(BASELINE);
        if OwnFolder::is_ours(&baseline) {
            open_own(&baseline)?.remove(is_checkpoint)?;
        }
        Ok(())
    }

    /// What was printed when the run was finished, if it is and its results are there; `needed` are files that must be, too.
    pub fn finished(&self, results: &str, needed: &[&str]) -> Result<Option<String>> {
        let path = self.file(SUMMARY);
        if !path.exists() || !self.file(results).exists() {
            return Ok(None);
        }
        let missing: Vec<&str> = needed.iter().copied().filter(|name| !self.file(name).exists()).collect();
        if !missing.is_empty() {
            bail!(
                "{} holds a finished run without {}: choose another --out, or train it again there with --fresh",
                self.place().display(),
                missing.join(", ")
            );
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(text))
    }

    /// Checkpoints, newest first.
    fn checkpoints(&self) -> Vec<PathBuf> {
        // Of what is there, not of all that ever was: a long run has written very many.
        let there = fs::read_dir(self.file(CHECKPOINTS)).into_iter().flatten().flatten();
        let names = there.map(|entry| format!("{CHECKPOINTS}/{}", entry.file_name().to_string_lossy()));
        let mut paths: Vec<PathBuf> =
            names.filter(|name| self.own.has(name)).map(|name| self.file(&name)).collect();
        paths.sort_unstable_by(|a, b| b.cmp(a));
        paths
    }

    /// The trainer restored from the newest intact checkpoint, or a new one; with notes on checkpoints that are damaged.
    pub fn restore(&self, make: impl Fn() -> Result<Trainer>) -> Result<(Trainer, Vec<String>)> {
        let (mut notes, checkpoints) = (Vec::new(), self.checkpoints());
        for path in &checkpoints {
            let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut trainer = make()?;
            match trainer.restore(&bytes, &self.stamp, &path.display().to_string()) {
                Ok(()) => return Ok((trainer, notes)),
                Err(error @ negscale_methods::Error::Checkpoint { .. }) => notes.push(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        if checkpoints.is_empty() {
            return Ok((make()?, notes));
        }
        bail!("no checkpoint can be used: {}. Start over with --fresh", notes.join("; "))
    }

    /// Saves the trainer's state and removes old checkpoints.
    pub fn save(&self, trainer: &Trainer) -> Result<()> {
        let folder = self.file(CHECKPOINTS);
        create_folders(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // Batches and epochs only grow, so names sort by age.
        let name = format!("{:06}-{:010}.checkpoint", trainer.epochs_done(), trainer.batches_done());
        write(&self.own.file(&format!("{CHECKPOINTS}/{name}"))?, &trainer.save(&self.stamp)?)?;
        for old in self.checkpoints().iter().skip(KEPT) {
            fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        Ok(())
    }

    /// The records so far, as many as there are epochs done, and the file to append to.
    pub fn journal(&self, done: usize) -> Result<(Journal, Vec<EpochRecord>)> {
        let path = self.file("metrics.jsonl");
        let (mut journal, reading) = Journal::open(&path)?;
        let mut records = reading.records;
        if records.len() > done {
            journal.rewind(done as u64)?;
            records.truncate(done);
        }
        if records.len() < done {
            bail!(
                "{} holds {} of {done} epochs: it was changed; start over with --fresh",
                path.display(),
                records.len()
            );
        }
        Ok((journal, records))
    }

    /// Writes the records for TensorBoard.
    pub fn write_events(&self, records: &[EpochRecord]) -> Result<()> {
        self.own.claim([format!("{EVENTS}/{}", events_file(self.started, HOST)).as_str()])?;
        write_events(&self.file(EVENTS), self.started, HOST, records)?;
        Ok(())
    }

    /// Adds to a write error what is safe and what to do.
    pub fn keep<T>(&self, written: Result<T, impl Into<crate::Error>>, trainer: &Trainer) -> Result<T> {
        let saved = !self.checkpoints().is_empty();
        Ok(written.map_err(Into::into).with_context(|| {
            let place = self.place().display();
            let safe = if saved { "the last checkpoint is intact" } else { "there is no checkpoint yet" };
            format!(
                "epoch {} could not be saved in {place}; {safe}: free some disk space and run the same command again",
                trainer.epochs_done()
            )
        })?)
    }
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(negscale_atomic_file::write_bytes(path, bytes)
        .with_context(|| format!("cannot write {}", path.display()))?)
}

/// Opens a folder for results; the error says what to do.
pub(crate) fn open_own(place: &Path) -> Result<OwnFolder> {
    Ok(OwnFolder::open(place).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => anyhow::anyhow!("{error}; wait for it or choose another --out"),
        _ => error.into(),
    })?)
}

/// Removes files of a run. Those of the sweep that started this process are still in use.
fn remove(own: &OwnFolder, is_asked: impl Fn(&str) -> bool) -> Result<()> {
    Ok(own.remove(|name| !OF_SWEEP.contains(&name) && is_asked(name))?)
}

fn list_differences(place: &str, found: &toml::Table, ours: &toml::Table, into: &mut Vec<String>) {
    let mut keys: Vec<&String> = found.keys().chain(ours.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys
        .into_iter()
        .filter(|key| !["provenance", "data_dir", "threads", "device"].contains(&key.as_str()))
    {
        let name = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        match (found.get(key), ours.get(key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => list_differences(&name, a, b, into),
            (a, b) if a != b => {
                let text = |value: Option<&toml::Value>| value.map_or("absent".into(), |v| v.to_string());
                let mut said = format!("{name} is {} there but {} here", text(a), text(b));
                if let ("precision", Some(theirs)) = (name.as_str(), a.and_then(toml::Value::as_str)) {
                    // By default it follows the CPU, so that nobody need have changed it.
                    said += &format!(" (resume that run with --precision {theirs})");
                }
                into.push(said);
            }
            _ => {}
        }
    }
}

/// What this runs on.
pub fn hardware() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = name.map_or("unknown CPU", |(_, name)| name.trim());
    format!("{name}, {} threads, {}", rayon::current_num_threads(), negscale_cpu::instructions())
}
