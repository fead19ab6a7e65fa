//! Is dissimilarity invariant under label noise? Measured on a run, or on features and labels in files.

mod files;
mod run_folder;

pub use files::AnalysisFiles;

use crate::Result;
use crate::error::bail;
use anyhow::Context;
use negscale::taxonomy::{LearntSettings, Thresholds, class_means};
use negscale::{Settings, Taxonomy};
use negscale_nets::{Classifier, Scan};
use negscale_similarity::perturbation::{BoundInputs, NetworkOutput, bound, perturbation};
use negscale_similarity::{
    Analysis, LabelNoise, Labels, Subject, Target, Units, change, drift, kendall, similarity,
};
use std::io::Write;
use std::path::Path;

/// A split of a run's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Split {
    /// The samples that were trained on.
    #[default]
    Train,
    /// The test set.
    Test,
    /// The second test set.
    SecondTest,
}

/// What is measured, and by which class tree.
#[derive(Debug, Clone, Default)]
pub struct AnalysisOptions {
    /// Split of a run's data.
    pub split: Split,
    /// Class tree: a built-in name or a file; `learnt` grows one from the features; nothing for the run's.
    pub tree: Option<String>,
    /// Classes up to this distance are related; nothing for the run's, else 3.
    pub eta_min: Option<u32>,
    /// Classes beyond this distance are unrelated; nothing for the run's, else 5.
    pub eta_max: Option<u32>,
}

impl AnalysisOptions {
    /// Settings of NegScale with the thresholds asked for.
    fn over(&self, settings: Settings) -> Result<Settings> {
        let (eta_min, eta_max) =
            (self.eta_min.unwrap_or(settings.eta_min), self.eta_max.unwrap_or(settings.eta_max));
        Thresholds::new(eta_min, eta_max)?;
        Ok(settings.with_eta_min(eta_min).with_eta_max(eta_max))
    }
}

/// Measures a finished run, beside a run on the same data without noise if there is one. Gives the features too, as they were
/// measured.
pub fn analyse_run(
    folder: &Path,
    clean: Option<&Path>,
    options: &AnalysisOptions,
) -> Result<(Analysis, Scan)> {
    // Inside the pool: then a parallel step wakes the other threads only.
    rayon::scope(|_| finish(run_folder::open(folder, clean, options)?))
}

/// Measures features and labels in files.
pub fn analyse_files(files: &AnalysisFiles, options: &AnalysisOptions) -> Result<(Analysis, Scan)> {
    rayon::scope(|_| finish(files::open(files, options)?))
}

fn finish(matter: Matter) -> Result<(Analysis, Scan)> {
    Ok((measure(&matter)?, matter.run.scan))
}

/// Features of the samples, from a network or a file.
struct View {
    name: String,
    method: Option<String>,
    noise: Option<String>,
    accuracy: Option<f64>,
    steps: Vec<negscale_similarity::ByRelation<f64>>,
    /// Features, and logits where they are known (else empty).
    scan: Scan,
    /// What makes logits of features, where it is known.
    classifier: Option<Classifier>,
}

/// Everything that is analysed.
struct Matter {
    data: String,
    split: &'static str,
    classes: Vec<String>,
    given: Vec<u32>,
    truth: Option<Vec<u32>>,
    tree: Taxonomy,
    settings: Settings,
    batch: usize,
    /// Estimated numbers of samples by given and true class, where the run has beliefs about its labels.
    believed: Option<Vec<f64>>,
    run: View,
    clean: Option<View>,
}

/// The tree that the features of the classes suggest.
fn grow(classes: &[String], scan: &Scan, given: &[u32]) -> Result<Taxonomy> {
    let labels: Vec<usize> = given.iter().map(|&label| label as usize).collect();
    let means = class_means(classes, &scan.features, scan.dim, &labels)
        .context("no class tree can be learnt from these features; give one with --tree")?;
    Ok(Taxonomy::learnt(classes, &means, &LearntSettings::default())?)
}

fn seen(classifier: &Classifier) -> negscale_similarity::drift::Classifier<'_> {
    negscale_similarity::drift::Classifier { weights: &classifier.weight, rectifies: classifier.rectifies }
}

fn measure(matter: &Matter) -> Result<Analysis> {
    let Matter { tree, settings, given, .. } = matter;
    let labels = Labels::new(given, matter.truth.as_deref(), tree, settings.thresholds()?)?;
    let units = Units::new(&matter.run.scan.features, matter.run.scan.dim)?;
    let clean_units = match &matter.clean {
        Some(clean) => {
            Some(Units::new(&clean.scan.features, clean.scan.dim).context("features of the clean run")?)
        }
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
            drift: match &view.classifier {
                Some(classifier) => drift(units, &view.scan.logits, seen(classifier), &labels)?,
                None => None,
            },
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
                    let terms =
                        BoundInputs { classifier: seen(classifier), tree, settings, batch: matter.batch };
                    let run = NetworkOutput { units: &units, logits: ours };
                    bound(run, NetworkOutput { units: clean_units, logits: theirs }, &labels, &terms)?
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
        label_noise: LabelNoise::of(&labels),
        believed_noise: match &matter.believed {
            Some(counts) => Some(LabelNoise::estimated(counts, tree, settings.thresholds()?)?),
            None => None,
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
pub fn save_features(path: &Path, scan: &Scan) -> Result<()> {
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
    let written = negscale_atomic_file::write_atomic(path, |file| {
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        scan.features.iter().try_for_each(|x| file.write_all(&x.to_le_bytes()))
    });
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}
