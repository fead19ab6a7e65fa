//! Models fitted to a sample of the rows.

use super::source::{Source, fingerprint, inputs, unless_stopped};
use super::{MODEL, Remembered, SHARDS, Step, Tell};
use crate::error::bail;
use crate::folder::{hardware, keep_apart, open_own, version, write};
use crate::{Result, Stop};
use negscale_audit::Ranking;
use negscale_audit::crossfit::{
    AboutModel, AuditModel, CrossFitSettings, FrozenAudit, Rows, SampleEstimate, cross_fit_in,
};
use negscale_audit::shards::{RowSource, Sample, SampleSettings};
use negscale_data::own::OwnOptions;
use negscale_data::stream::RowStream;
use std::path::Path;
use std::time::Instant;

/// Rows of a sample, unless more are asked for.
const MOST_ROWS: u64 = 200_000;
/// Fewer rows cannot be judged.
const LEAST_ROWS: u64 = 30;
/// Rows of a rare class that should be in the sample.
const OF_CLASS: u64 = 100;
/// Rows of the sample that are read at once.
const AT_ONCE: usize = 1 << 15;

/// How models are fitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FitOptions {
    /// Bytes of memory that the whole audit may take; half of them are for the sample.
    pub memory: Option<u64>,
    /// Rows of the sample; by default as many as fit, at most 200,000.
    pub sample: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether an audit of other rows or settings in the folder is replaced.
    pub fresh: bool,
}

/// What a fit leaves.
#[derive(Debug)]
pub struct Fitted {
    /// The models.
    pub model: AuditModel,
    /// Whether they had been fitted before.
    pub is_kept: bool,
    /// The rows, opened.
    pub stream: RowStream,
}

/// Bytes of memory for each row of the sample: its numbers as read, scaled and in work; what is predicted of it, several times.
fn row_bytes(dim: usize, classes: usize) -> u64 {
    (12 * dim + 48 * classes.min(negscale_audit::KEPT_CLASSES) + 100) as u64
}

/// Rows wanted in the sample.
fn wanted(stream: &RowStream, options: &FitOptions) -> Result<u64> {
    let classes = stream.classes().len();
    let fitting = options.memory.map_or(u64::MAX, |memory| memory / 2 / row_bytes(stream.dim(), classes));
    let rows = options.sample.unwrap_or(MOST_ROWS.min(fitting)).min(stream.rows());
    if rows < LEAST_ROWS.min(stream.rows()) || fitting < 2 * classes as u64 {
        bail!(
            "{rows} rows are too small a sample for {classes} classes: give more memory (--memory) or a larger sample (--sample)"
        );
    }
    if stream.rows() < LEAST_ROWS {
        bail!("{} rows are too few to judge: at least {LEAST_ROWS} are needed", stream.rows());
    }
    if options.sample.is_some() && rows > fitting {
        bail!(
            "a sample of {rows} rows takes more than half of the memory: at most {fitting} fit; give more (--memory)"
        );
    }
    Ok(rows)
}

/// Fits models to a sample of the rows, and writes them into a folder, unless the same were fitted there before.
///
/// # Errors
/// If rows cannot be read or judged, the folder holds scores of other models, or `stop` was asked.
pub fn fit(
    data: &Path,
    own: &OwnOptions,
    options: &FitOptions,
    out: &Path,
    tell: Tell,
    stop: &Stop,
) -> Result<Fitted> {
    let begun = Instant::now();
    keep_apart(out, &inputs(data, own))?;
    let stream = RowStream::open(data, own)?;
    let remembered = Remembered {
        data: data.to_owned(),
        options: own.clone(),
        name: stream.name().to_owned(),
        is_looked_at: stream.id(0).is_some() || stream.truth().is_some() || stream.sources().is_some(),
        fingerprint: fingerprint(&stream)?,
        rows: stream.rows(),
        sample: wanted(&stream, options)?,
        seed: options.seed,
    };
    let folder = open_own(out)?;
    folder.claim([MODEL, "fit.json"])?;
    let path = out.join(MODEL);
    if let Some(model) = kept(&path, &remembered).filter(|_| !options.fresh) {
        return Ok(Fitted { model, is_kept: true, stream });
    }
    let is_shard = |name: &str| name.starts_with(SHARDS);
    if !options.fresh && folder.names().iter().any(|name| is_shard(name) && out.join(name).exists()) {
        bail!(
            "{} holds scores of an audit of other rows or settings, or by another version of the program: choose another --out, or start \
             over there with --fresh",
            out.display()
        );
    }
    // What was made of older models would be of no use any more.
    folder.remove(|name| name != MODEL)?;
    let model = fitted(&stream, remembered, tell, stop)?;
    model.save(&path)?;
    let about = model.about();
    let text = serde_json::to_string_pretty(&serde_json::json!({
        "data": about.settings,
        "classes": about.classes.len(),
        "numbers_per_row": model.dim(),
        "sample": about.estimate,
        "flagged_from": about.cut_off,
        "seconds": begun.elapsed().as_secs_f64(),
        "version": about.version,
        "hardware": hardware(),
    }))?;
    write(&folder.file("fit.json")?, format!("{text}\n").as_bytes())?;
    Ok(Fitted { model, is_kept: false, stream })
}

/// Models that are there already and were made of the same.
fn kept(path: &Path, ours: &Remembered) -> Option<AuditModel> {
    let model = AuditModel::load(path).ok()?;
    let theirs = Remembered::of(&model).ok()?;
    let is_same = model.about().version == version() && theirs == *ours;
    is_same.then_some(model)
}

fn fitted(stream: &RowStream, remembered: Remembered, tell: Tell, stop: &Stop) -> Result<AuditModel> {
    let (classes, dim, wanted) = (stream.classes().len(), stream.dim(), remembered.sample);
    let settings = CrossFitSettings::new(wanted as usize, classes, remembered.seed);
    let sample = Sample::new(
        stream.given(),
        classes,
        SampleSettings {
            rows: wanted,
            at_least: OF_CLASS.min(wanted / 2 / classes.max(1) as u64),
            folds: settings.folds as u32,
            seed: remembered.seed,
        },
    )?;
    let source = Source { stream, stop, tell: None };
    let selected = sample.select(&source);
    let mut values = Vec::with_capacity(selected.len() * dim);
    let mut some = Vec::new();
    for (at, rows) in selected.chunks(AT_ONCE).enumerate() {
        stop.check()?;
        tell(Step::Read, (at * AT_ONCE) as f64 / selected.len() as f64);
        stream.read_some(rows, &mut some)?;
        values.extend_from_slice(&some);
    }
    drop(some);
    let given: Vec<u32> = selected.iter().map(|&row| stream.given()[row as usize]).collect();
    let folds: Vec<usize> = selected.iter().map(|&row| sample.fold(source.id(row)) as usize).collect();
    let settings = CrossFitSettings {
        folds: settings.folds,
        neighbours: 0,
        ..CrossFitSettings::new(selected.len(), classes, remembered.seed)
    };
    let watch = |share: f64| {
        tell(Step::Fit, share);
        !stop.is_asked()
    };
    let fit = cross_fit_in(&Rows::new(&values, dim)?, &given, classes, &folds, &settings, &watch);
    let fit = unless_stopped(fit, stop)?;
    drop(values);
    let ranking = Ranking::by(&fit.model, stream.classes())?;
    let about = AboutModel {
        classes: stream.classes().to_vec(),
        sample,
        cut_off: ranking.audit.cut_off(),
        estimate: SampleEstimate::new(&ranking.estimate, ranking.audit.flagged()),
        settings: serde_json::to_value(remembered)?,
        version: version(),
    };
    Ok(AuditModel::new(FrozenAudit::new(fit)?, about)?)
}
