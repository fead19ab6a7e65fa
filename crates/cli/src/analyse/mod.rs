//! `negscale analyse`: is dissimilarity invariant under label noise? Measured on a run, or on features and labels in files.

mod files;
mod print;
mod run;

use crate::source::Split;
use anyhow::{Context, Result, bail};
use negscale::taxonomy::{LearntSettings, Thresholds, class_means};
use negscale::{Settings, Taxonomy};
use negscale_atomic_file::OwnFolder;
use negscale_nets::Scan;
use negscale_similarity::perturbation::{Seen, Terms, bound, perturbation};
use negscale_similarity::{Analysis, Labels, Subject, Target, Units, change, kendall, similarity};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measure the similarity of all pairs of samples: same class, related, unrelated; labels right and wrong; change against a
/// clean run.
///
/// RUN is the folder of a run that has ended: its data is opened and its noise laid over it again, and its model gives the features.
/// Or name features and labels in files (--features, --given, --tree). With a clean run (--clean, --clean-features) the same pairs are
/// compared in both.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of a run.
    #[arg(required_unless_present = "features")]
    run: Option<PathBuf>,
    /// Folder of a run on the same data without noise, to compare with.
    #[arg(long, value_name = "RUN", requires = "run")]
    clean: Option<PathBuf>,
    /// Part of the run's data.
    #[arg(long, default_value = "train", requires = "run")]
    split: Split,
    /// Features in a file (.npy, .npz, .safetensors, .csv), a row for each sample, instead of a run.
    #[arg(long, value_name = "FILE", conflicts_with = "run", requires = "given", requires = "tree")]
    features: Option<PathBuf>,
    /// Labels as given (.npy, .csv, or .txt with one a line): numbers or names of the tree's classes.
    #[arg(long, value_name = "FILE", requires = "features")]
    given: Option<PathBuf>,
    /// True labels, if known.
    #[arg(long, value_name = "FILE", requires = "features")]
    truth: Option<PathBuf>,
    /// Features of a clean run, rows in the same order.
    #[arg(long, value_name = "FILE", requires = "features")]
    clean_features: Option<PathBuf>,
    /// Class tree: a built-in name or a file; `learnt` grows one from the features [default: the run's].
    #[arg(long, value_name = "TREE")]
    tree: Option<String>,
    /// Classes up to this distance are related [default: the run's, else 3].
    #[arg(long)]
    eta_min: Option<u32>,
    /// Classes beyond this distance are unrelated [default: the run's, else 5].
    #[arg(long)]
    eta_max: Option<u32>,
    /// File to write the analysis into [default: analysis.json in the run's folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the features into this file, a row of 32-bit numbers for each sample.
    #[arg(long, value_name = "FILE.npy")]
    save_features: Option<PathBuf>,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// What a network, or a file, says of the samples.
struct View {
    name: String,
    method: Option<String>,
    noise: Option<String>,
    accuracy: Option<f64>,
    steps: Vec<negscale_similarity::ByRelation<f64>>,
    /// Features, and logits where they are known (else empty).
    scan: Scan,
    /// C x d, where it is known.
    classifier: Option<Vec<f32>>,
}

/// Everything that is to be judged.
struct Matter {
    data: String,
    split: &'static str,
    classes: Vec<String>,
    given: Vec<u32>,
    truth: Option<Vec<u32>>,
    tree: Taxonomy,
    settings: Settings,
    batch: usize,
    run: View,
    clean: Option<View>,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let mut out = arguments.out.clone();
    // A run's folder is held while the analysis is written into it.
    let mut own = None;
    // Inside the pool: then a parallel step wakes the other threads only.
    let analysis = rayon::scope(|_| {
        let matter = match &arguments.run {
            Some(folder) => {
                let matter = run::open(folder, &arguments)?;
                if out.is_none() {
                    let is_train = arguments.split == Split::Train;
                    let name = if is_train { "analysis.json" } else { "analysis-test.json" };
                    out = Some(own.insert(OwnFolder::share(folder)?).file(name)?);
                }
                matter
            }
            None => files::open(&arguments)?,
        };
        if let Some(path) = &arguments.save_features {
            save_features(path, &matter.run.scan)?;
        }
        judge(&matter)
    })?;
    if let Some(path) = &out {
        let text = serde_json::to_string_pretty(&analysis)?;
        negscale_atomic_file::write_bytes(path, format!("{text}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json {
        say!("{}", serde_json::to_string(&analysis)?);
        return Ok(());
    }
    print::print(&analysis)?;
    for path in out.iter().chain(&arguments.save_features) {
        say!("written: {}", path.display());
    }
    Ok(())
}

impl Arguments {
    /// Settings of NegScale with the thresholds asked for.
    fn over(&self, settings: Settings) -> Result<Settings> {
        let (eta_min, eta_max) =
            (self.eta_min.unwrap_or(settings.eta_min), self.eta_max.unwrap_or(settings.eta_max));
        Thresholds::new(eta_min, eta_max)?;
        Ok(settings.with_eta_min(eta_min).with_eta_max(eta_max))
    }
}

/// The tree that the features of the classes suggest.
fn grow(classes: &[String], scan: &Scan, given: &[u32]) -> Result<Taxonomy> {
    let labels: Vec<usize> = given.iter().map(|&label| label as usize).collect();
    let means = class_means(classes, &scan.features, scan.dim, &labels)
        .context("no class tree can be learnt from these features; name one with --tree")?;
    Ok(Taxonomy::learnt(classes, &means, &LearntSettings::default())?)
}

fn judge(matter: &Matter) -> Result<Analysis> {
    let Matter { tree, settings, given, .. } = matter;
    let labels = Labels::new(given, matter.truth.as_deref(), tree, settings.thresholds()?)?;
    let units = Units::new(&matter.run.scan.features, matter.run.scan.dim)?;
    let clean_units = match &matter.clean {
        Some(clean) => Some(Units::new(&clean.scan.features, clean.scan.dim).context("of the clean run")?),
        None => None,
    };
    let (mut skipped, mut of_clean, mut changes) = (units.zeros(), None, None);
    let of_run = match &clean_units {
        Some(clean) => {
            let (of_run, clean_similarity, found) = change(&units, clean, &labels)?;
            skipped = (0..units.len()).filter(|&i| units.is_zero(i) || clean.is_zero(i)).count();
            (of_clean, changes) = (Some(clean_similarity), Some(found));
            of_run
        }
        None => similarity(&units, &labels)?,
    };
    let subject = |view: &View, units: &Units, similarity| -> Result<Subject> {
        let by = matter.truth.as_deref().unwrap_or(given);
        let logits = (!view.scan.logits.is_empty()).then(|| kendall::orders(&view.scan.logits, &labels));
        Ok(Subject {
            name: view.name.clone(),
            method: view.method.clone(),
            noise: view.noise.clone(),
            accuracy: view.accuracy,
            similarity,
            class_means: similarity::class_means(units, by, tree.classes())?,
            orders: logits.transpose()?,
            steps: view.steps.clone(),
        })
    };
    let run = subject(&matter.run, &units, of_run)?;
    let (mut clean, mut agreement, mut moved, mut bounds) = (None, None, None, None);
    if let (Some(view), Some(clean_units), Some(of_clean)) = (&matter.clean, &clean_units, of_clean) {
        clean = Some(subject(view, clean_units, of_clean)?);
        let (ours, theirs) = (&matter.run.scan.logits, &view.scan.logits);
        let have_logits = !ours.is_empty() && !theirs.is_empty();
        if have_logits {
            agreement = Some(kendall::agreement(ours, theirs, &labels)?);
        }
        // Features of different sizes cannot be rotated into each other.
        if units.dim() == clean_units.dim() {
            (moved, bounds) = match &matter.run.classifier {
                Some(classifier) if have_logits => {
                    let terms = Terms { classifier, tree, settings, batch: matter.batch };
                    let seen = Seen { units: &units, logits: ours };
                    bound(seen, Seen { units: clean_units, logits: theirs }, &labels, &terms)?
                }
                _ => (perturbation(&units, clean_units, &labels)?, None),
            };
        }
    }
    Ok(Analysis {
        version: 1,
        target: Target {
            data: matter.data.clone(),
            split: matter.split.into(),
            samples: labels.len(),
            skipped,
            wrong: labels.wrong(),
            classes: matter.classes.clone(),
            tree: tree.name().into(),
            eta_min: settings.eta_min,
            eta_max: settings.eta_max,
        },
        run,
        clean,
        change: changes,
        agreement,
        perturbation: moved,
        bound: bounds,
    })
}

/// Writes features as a `.npy` file of version 1.
fn save_features(path: &Path, scan: &Scan) -> Result<()> {
    if path.extension().is_none_or(|extension| extension != "npy") {
        bail!("--save-features {}: the name must end in .npy", path.display());
    }
    let rows = scan.features.len() / scan.dim.max(1);
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {}), }}", scan.dim);
    // Magic, version, length and header together fill whole blocks of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    negscale_atomic_file::write_atomic(path, |file| {
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        scan.features.iter().try_for_each(|x| file.write_all(&x.to_le_bytes()))
    })
    .with_context(|| format!("cannot write {}", path.display()))
}
