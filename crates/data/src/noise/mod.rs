//! Label noise: named, exact, reproducible.
//!
//! [`apply`] takes true labels and a [`NoiseSpec`] and returns [`Noise`]: labels, the rate asked for and the rate achieved (the
//! same name means different rates in different papers), the transition matrix, the convention in words, and a hash. Noise is
//! drawn once, [saved](Noise::save), and shared by all methods. Every draw is a function of (seed, sample) or (seed, class), so
//! threads and order change nothing. The noise seed is not the training seed.

mod asymmetric;
mod choice;
pub mod cifar;
mod file;
mod input;
mod instance;
pub mod label_list;
mod spec;
mod symmetric;
mod transition;

pub use crate::known::HumanLabels;
pub use instance::flip_probabilities;
pub use spec::{NoiseInput, NoiseMatrices, NoiseSpec, Rate};
pub use transition::Transition;

use crate::folders::{Folders, VARIABLE};
use crate::{Dataset, Error, Result};
use asymmetric::Targets;
use std::fmt;
use std::path::PathBuf;

/// What some kinds of noise need besides the dataset.
#[derive(Debug, Clone, Default)]
pub struct NoiseContext {
    /// Superclass of every class, for `asym-super`; built in for CIFAR-100.
    pub superclasses: Option<Vec<u32>>,
    /// Where to look for the tables of human labels, for `cifarn`.
    pub folders: Vec<PathBuf>,
}

impl NoiseContext {
    /// Looks in the folders that the variable `NEGSCALE_DATA` lists.
    pub fn from_environment() -> Self {
        let folders = Folders::arrange(None, std::env::var_os(VARIABLE).as_deref(), None);
        Self { folders: folders.looked_in().to_vec(), ..Self::default() }
    }
}

/// Labels, and how they came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// The given label of every item.
    pub labels: Vec<u32>,
    /// Rate asked for; as published for human labels; none for a list that says nothing of it.
    pub nominal: Option<f64>,
    /// Share of labels that are not the true ones.
    pub achieved: f64,
    /// What became of the true labels.
    pub transition: Transition,
    /// The law in a sentence.
    pub convention: String,
    /// What it was drawn with; 0 where nothing is drawn.
    pub seed: u64,
    /// The noise model, with defaults filled in.
    pub spec: NoiseSpec,
    /// For every true class, the share of its wrong labels that the most frequent one has (0 if none is wrong): near 1,
    /// noise depends on the class only.
    pub dominant: Vec<f64>,
    /// sha256 over spec, seed, convention, class names, true labels and labels.
    pub hash: String,
}

impl Noise {
    fn assemble(spec: NoiseSpec, seed: u64, labels: Vec<u32>, convention: String, dataset: &Dataset) -> Self {
        let transition = Transition::new(dataset.classes().len(), clean_labels(dataset), &labels);
        let nominal = match &spec {
            NoiseSpec::None => Some(0.0),
            NoiseSpec::CifarN(which) => Some(which.published_rate()),
            other => other.rate().map(Rate::get),
        };
        Self {
            nominal,
            achieved: transition.wrong(),
            dominant: transition.dominant(),
            hash: file::hash(&spec, seed, &convention, &labels, dataset),
            transition,
            labels,
            convention,
            seed,
            spec,
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let achieved = 100.0 * self.achieved;
        write!(
            f,
            "{} (seed {}): {achieved:.2} % of {} labels wrong",
            self.spec,
            self.seed,
            self.labels.len()
        )?;
        if let Some(nominal) = self.nominal {
            write!(f, ", nominal {:.2} %", 100.0 * nominal)?;
        }
        write!(f, "; {}", self.convention)
    }
}

/// Noise over a dataset's true labels (over its given labels where no truth is known).
pub fn apply(spec: &NoiseSpec, dataset: &Dataset, seed: u64, context: &NoiseContext) -> Result<Noise> {
    let clean = clean_labels(dataset);
    let classes = dataset.classes().len();
    let spec = resolve(spec, dataset)?;
    let inclusive = matches!(spec, NoiseSpec::SymIncl(_));
    let rate = spec.rate().map_or(0.0, Rate::get);
    if classes < 2 && rate > 0.0 && !clean.is_empty() && !inclusive {
        return Err(no_fit(dataset, format!("`{spec}` needs a second class for labels to change to")));
    }
    let each = "each sample changes with probability r";
    let (labels, convention) = match &spec {
        NoiseSpec::File(path) => return file::open(path, dataset),
        NoiseSpec::None => (clean.to_vec(), "no noise added".into()),
        NoiseSpec::SymIncl(rate) => (
            symmetric::inclusive(clean, classes, *rate, seed),
            "symmetric, a share r of all samples, new label uniform over all classes, true class included"
                .into(),
        ),
        NoiseSpec::SymExcl(rate) if classes > 1 => (
            symmetric::binomial(clean, classes, *rate, seed),
            format!("symmetric, {each}, new label uniform over the other classes"),
        ),
        NoiseSpec::SymExact(rate) if classes > 1 => (
            symmetric::exact(clean, classes, *rate, seed),
            "symmetric, a share r of every class, new label uniform over the other classes".into(),
        ),
        NoiseSpec::AsymMap { rate, map } => {
            let targets = Targets::by_map(dataset, map.as_deref())?;
            let pairs = targets.describe(dataset);
            let convention =
                format!("asymmetric by a class map applied to a share r of all samples: {pairs}");
            (targets.on_chosen(clean, *rate, seed), convention)
        }
        NoiseSpec::AsymBlock(rate) => (
            Targets::by_block(dataset)?.on_each(clean, *rate, seed),
            format!("asymmetric, {each}, to the next of five consecutive classes, the last to the first"),
        ),
        NoiseSpec::AsymSuper(rate) => {
            let targets = Targets::by_superclass(dataset, context)?;
            let pairs = targets.describe(dataset);
            let law = "to the next class of its superclass, the last to the first";
            (targets.on_each(clean, *rate, seed), format!("asymmetric, {each}, {law}: {pairs}"))
        }
        NoiseSpec::PairFlip(rate) => (
            Targets::by_pair(dataset).on_each(clean, *rate, seed),
            format!("pair flip, {each}, to the next class, the last to the first"),
        ),
        NoiseSpec::Ins { rate, input, matrices } if classes > 1 => (
            instance::draw_labels(dataset, clean, *rate, *input, *matrices, seed)?,
            describe_instance(*input, *matrices),
        ),
        NoiseSpec::CifarN(which) => {
            let table = which.find(&context.folders)?;
            (which.labels_of(dataset, &table)?, which.convention().into())
        }
        // What is left: a law that needs two classes, with nothing to change.
        _ => (clean.to_vec(), "nothing to change".into()),
    };
    let seed = if spec.is_drawn() { seed } else { 0 };
    let noise = Noise::assemble(spec, seed, labels, convention, dataset);
    // Tables of human labels come from outside.
    dataset.with_noise(noise.labels.clone()).map(|_| noise)
}

/// Fills in what `asym` leaves to the classes.
fn resolve(spec: &NoiseSpec, dataset: &Dataset) -> Result<NoiseSpec> {
    let NoiseSpec::Asym(rate) = *spec else { return Ok(spec.clone()) };
    if cifar::map_of(dataset.classes()).is_some() {
        return Ok(NoiseSpec::AsymMap { rate, map: None });
    }
    if dataset.classes().len() == 100 {
        return Ok(NoiseSpec::AsymBlock(rate));
    }
    let problem = "`asym` has a usual meaning only for CIFAR-10's class names and for 100 classes: choose one, \
                   asym-map:RATE:map=9to1+2to0 (class numbers), asym-block, asym-super or pairflip";
    Err(no_fit(dataset, problem))
}

fn describe_instance(input: NoiseInput, matrices: NoiseMatrices) -> String {
    let input = match input {
        NoiseInput::Raw => "raw",
        NoiseInput::Unit => "scaled to [0, 1]",
        NoiseInput::Normalised => "normalised by mean and standard deviation",
    };
    let matrices = match matrices {
        NoiseMatrices::PerClass => "one matrix per true class",
        NoiseMatrices::Shared => "one matrix for all classes",
    };
    format!(
        "instance-dependent, a label changes with probability q ~ Normal(r, 0.1^2) truncated to [0, 1], to a class drawn \
         by softmax of a random linear map of the item ({input}), {matrices}"
    )
}

/// The labels that noise starts from.
fn clean_labels(dataset: &Dataset) -> &[u32] {
    dataset.truth().unwrap_or(dataset.given())
}

/// Noise that does not fit the dataset.
fn no_fit(dataset: &Dataset, problem: impl Into<String>) -> Error {
    Error::Labels { dataset: dataset.name().into(), problem: problem.into() }
}
