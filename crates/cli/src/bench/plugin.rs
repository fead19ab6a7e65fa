//! `negscale bench plugin`: forward and gradient of the plug-in; closed forms against the formulas as printed.

use crate::meter::peak_bytes;
use anyhow::{Context, Result};
use clap::ValueEnum;
use negscale::{NegScale, Settings, Tap, Taxonomy, Workspace, literal};
use std::hint::black_box;
use std::time::Instant;

/// Time and memory of the plug-in: one batch of features in, loss and gradient out.
#[derive(clap::Args)]
pub struct Arguments {
    /// Batch sizes.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 128, 448, 1024])]
    batch: Vec<usize>,
    /// Feature dimensions.
    #[arg(long, value_delimiter = ',', default_values_t = [128, 512, 2048])]
    dim: Vec<usize>,
    /// Numbers of classes: 10 and 100 use the trees of CIFAR-10 and CIFAR-100.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100])]
    classes: Vec<usize>,
    /// Which forms to run.
    #[arg(long, value_delimiter = ',', default_values_t = [Form::Closed, Form::Literal])]
    forms: Vec<Form>,
    /// Seconds to spend on each case after its first call.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Leave out literal cases that need more memory than this.
    #[arg(long, default_value_t = 4.0)]
    max_gib: f64,
    /// Leave out literal cases expected to take longer than this many seconds a call.
    #[arg(long, default_value_t = 30.0)]
    max_seconds: f64,
    /// Print one JSON object per line: form, batch, dim, classes, ms, extra_bytes.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// The closed forms of the library.
    Closed,
    /// The paper's formulas as printed.
    Literal,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(if *self == Form::Closed { "closed" } else { "literal" })
    }
}

/// A batch to measure on.
struct Case {
    features: Vec<f32>,
    dim: usize,
    labels: Vec<usize>,
    confidence: Vec<f32>,
    classes: usize,
}

impl Case {
    /// Sign-free features, labels spread over the classes; the same for every run.
    fn new(batch: usize, dim: usize, classes: usize) -> Self {
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        Self {
            labels: (0..batch).map(|_| (uniform() * classes as f32) as usize).collect(),
            confidence: (0..batch).map(|_| uniform()).collect(),
            features: (0..batch * dim).map(|_| uniform() + uniform() + uniform() - 1.5).collect(),
            dim,
            classes,
        }
    }

    fn tap(&self) -> Tap<'_, f32> {
        Tap::new(&self.labels, &self.confidence)
    }
}

/// What one case cost.
struct Cost {
    milliseconds: f64,
    extra_bytes: usize,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let plugins = arguments.classes.iter().map(|&classes| plugin_for(classes)).collect::<Result<Vec<_>>>()?;
    if !arguments.json {
        say!("plug-in, forward + gradient, f32, {} threads", rayon::current_num_threads());
        say!("{:>8} {:>6} {:>5} {:>8} {:>12} {:>12}", "form", "batch", "dim", "classes", "ms", "extra MiB");
    }
    for (&classes, plugin) in arguments.classes.iter().zip(&plugins) {
        for &batch in &arguments.batch {
            for &dim in &arguments.dim {
                let case = Case::new(batch, dim, classes);
                for &form in &arguments.forms {
                    let cost = match form {
                        // In the thread pool, where training calls it too.
                        Form::Closed => Ok(rayon::scope(|_| closed(plugin, &case, arguments.seconds))?),
                        Form::Literal => match too_much(plugin, &case, &arguments)? {
                            None => Ok(printed(plugin, &case, arguments.seconds)?),
                            Some(reason) => Err(reason),
                        },
                    };
                    show(form, &case, cost, arguments.json)?;
                }
            }
        }
    }
    Ok(())
}

fn plugin_for(classes: usize) -> Result<NegScale> {
    let tree = Taxonomy::builtin(&format!("cifar{classes}"))
        .with_context(|| format!("--classes {classes}: use 10 or 100, which have a built-in tree"))?;
    Ok(NegScale::new(&tree, Settings::default())?)
}

fn closed(plugin: &NegScale, case: &Case, seconds: f64) -> Result<Cost> {
    // A tiny batch first: start-up of threads and of the matrix product is not the case's cost.
    let tiny = Case::new(64, 64, case.classes);
    plugin.from_features(&tiny.features, tiny.dim, &tiny.tap(), &mut Workspace::new())?;
    let mut workspace = Workspace::new();
    let (first, extra_bytes) = peak_bytes(|| {
        plugin.from_features(&case.features, case.dim, &case.tap(), &mut workspace).map(|_| ())
    });
    first?;
    let milliseconds = median_milliseconds(seconds, || {
        let result = plugin.from_features(black_box(&case.features), case.dim, &case.tap(), &mut workspace);
        result.map(|r| r.value)
    })?;
    Ok(Cost { milliseconds, extra_bytes })
}

fn printed(plugin: &NegScale, case: &Case, seconds: f64) -> Result<Cost> {
    let run = || literal::evaluate(plugin, black_box(&case.features), case.dim, &case.tap());
    let (first, extra_bytes) = peak_bytes(|| run().map(|_| ()));
    first?;
    Ok(Cost { milliseconds: median_milliseconds(seconds, || run().map(|r| r.value))?, extra_bytes })
}

/// Why a literal case is left out, if it is.
fn too_much(plugin: &NegScale, case: &Case, arguments: &Arguments) -> Result<Option<String>> {
    let pairs = plugin.pairs(&case.tap())?;
    let (p, q) = (pairs.unrelated.len(), pairs.related.len());
    let gib = literal::bytes::<f32>(p, case.dim) as f64 / (1u64 << 30) as f64;
    // Two products of P d^2 and Q P maxima, at rates of an ordinary core.
    let expected = 4.0 * p as f64 * (case.dim * case.dim) as f64 / 5e10 + 2.0 * p as f64 * q as f64 / 5e8;
    Ok(if gib > arguments.max_gib {
        Some(format!("needs {gib:.1} GiB, more than --max-gib {}", arguments.max_gib))
    } else if expected > arguments.max_seconds {
        Some(format!("expected to take {expected:.0} s, more than --max-seconds {}", arguments.max_seconds))
    } else {
        None
    })
}

/// Median time of a call over as many calls as fit, three at least.
fn median_milliseconds(seconds: f64, mut call: impl FnMut() -> negscale::Result<f64>) -> Result<f64> {
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || (start.elapsed().as_secs_f64() < seconds && times.len() < 10_000) {
        let before = Instant::now();
        black_box(call()?);
        times.push(before.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn show(form: Form, case: &Case, cost: Result<Cost, String>, json: bool) -> Result<()> {
    let (batch, dim, classes) = (case.labels.len(), case.dim, case.classes);
    let form = form.to_string();
    match (cost, json) {
        (Ok(Cost { milliseconds: ms, extra_bytes }), true) => say!(
            "{}",
            serde_json::json!({"form": form, "batch": batch, "dim": dim, "classes": classes, "ms": ms, "extra_bytes": extra_bytes})
        ),
        (Err(reason), true) => say!(
            "{}",
            serde_json::json!({"form": form, "batch": batch, "dim": dim, "classes": classes, "ms": null, "extra_bytes": null, "skipped": reason})
        ),
        (Ok(Cost { milliseconds, extra_bytes }), false) => {
            let mib = extra_bytes as f64 / (1u64 << 20) as f64;
            say!("{form:>8} {batch:>6} {dim:>5} {classes:>8} {milliseconds:>12.3} {mib:>12.2}");
        }
        (Err(reason), false) => say!("{form:>8} {batch:>6} {dim:>5} {classes:>8}   left out: {reason}"),
    }
    Ok(())
}
