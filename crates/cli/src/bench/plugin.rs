//! `negscale bench plugin`: forward and gradient of the plug-in: closed forms on slices, the same through the burn adapter, and
//! the formulas as printed.

use crate::meter::peak_bytes;
use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use clap::ValueEnum;
use negscale::burn::Adapter;
use negscale::{BatchLabels, NegScale, Settings, Taxonomy, Workspace, reference};
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
    #[arg(long, value_delimiter = ',', default_values_t = [Form::Closed, Form::Reference])]
    forms: Vec<Form>,
    /// Seconds to spend on each case after its first call.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Leave out cases of the printed formulas that need more memory than this.
    #[arg(long, default_value_t = 4.0)]
    max_gib: f64,
    /// Leave out cases of the printed formulas expected to take longer than this many seconds a call.
    #[arg(long, default_value_t = 30.0)]
    max_seconds: f64,
    /// Print one JSON object per line: form, batch, dim, classes, ms, extra_bytes.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// The closed forms of the library, slices in and out.
    Closed,
    /// The same through the adapter for burn: a tensor in, backward pass included. In turns with `closed` if both are asked for.
    Adapter,
    /// The paper's formulas as printed.
    #[value(alias = "literal")]
    Reference,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Form::Closed => "closed",
            Form::Adapter => "adapter",
            Form::Reference => "reference",
        })
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

    fn labelled(&self) -> BatchLabels<'_, f32> {
        BatchLabels::new(&self.labels, &self.confidence)
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
        say!("{:>9} {:>6} {:>5} {:>8} {:>12} {:>12}", "form", "batch", "dim", "classes", "ms", "extra MiB");
    }
    for (&classes, plugin) in arguments.classes.iter().zip(&plugins) {
        for &batch in &arguments.batch {
            for &dim in &arguments.dim {
                let case = Case::new(batch, dim, classes);
                let fast: Vec<Form> = [Form::Closed, Form::Adapter]
                    .into_iter()
                    .filter(|form| arguments.forms.contains(form))
                    .collect();
                // In the thread pool, where training calls it too.
                let costs = rayon::scope(|_| in_turns(plugin, &case, &fast, arguments.seconds))?;
                for (form, cost) in fast.into_iter().zip(costs) {
                    show(form, &case, Ok(cost), arguments.json)?;
                }
                if arguments.forms.contains(&Form::Reference) {
                    let cost = match too_much(plugin, &case, &arguments)? {
                        None => Ok(printed(plugin, &case, arguments.seconds)?),
                        Some(reason) => Err(reason),
                    };
                    show(Form::Reference, &case, cost, arguments.json)?;
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

/// A way to the loss and the gradient of a case.
type Call<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// The closed forms by several ways, called in turns so that whatever else the machine does meets all of them.
fn in_turns(plugin: &NegScale, case: &Case, forms: &[Form], seconds: f64) -> Result<Vec<Cost>> {
    let calls = |case| {
        forms.iter().map(
            move |form| if *form == Form::Adapter { adapter(plugin, case) } else { closed(plugin, case) },
        )
    };
    // A tiny batch first: start-up of threads and of the matrix product is not the case's cost. On every thread: each has buffers of its own.
    let tiny = Case::new(64, 64, case.classes);
    rayon::broadcast(|_| closed(plugin, &tiny)()).into_iter().collect::<Result<Vec<f64>>>()?;
    for mut call in calls(&tiny) {
        call()?;
    }
    let mut calls: Vec<Call> = calls(case).collect();
    let mut peaks = Vec::new();
    for call in &mut calls {
        let (first, extra_bytes) = peak_bytes(call);
        first?;
        peaks.push(extra_bytes);
    }
    let times = median_milliseconds(seconds, &mut calls)?;
    Ok(times
        .into_iter()
        .zip(peaks)
        .map(|(milliseconds, extra_bytes)| Cost { milliseconds, extra_bytes })
        .collect())
}

fn closed<'a>(plugin: &'a NegScale, case: &'a Case) -> Call<'a> {
    let mut workspace = Workspace::new();
    Box::new(move || {
        let features = black_box(&case.features);
        Ok(plugin.loss_and_gradient(features, case.dim, &case.labelled(), &mut workspace)?.value)
    })
}

fn adapter<'a>(plugin: &NegScale, case: &'a Case) -> Call<'a> {
    let mut adapter = Adapter::new(plugin.clone());
    let data = TensorData::new(case.features.clone(), [case.labels.len(), case.dim]);
    let features = Tensor::<2>::from_data(data, &Device::flex().autodiff()).require_grad();
    Box::new(move || {
        let loss = adapter.loss(features.clone(), &case.labelled())?;
        let gradient = features.grad(&loss.loss.backward()).context("the features have no gradient")?;
        black_box(gradient);
        Ok(loss.value)
    })
}

fn printed(plugin: &NegScale, case: &Case, seconds: f64) -> Result<Cost> {
    let mut call: Call = Box::new(|| {
        let features = black_box(&case.features);
        Ok(reference::loss_and_gradient(plugin, features, case.dim, &case.labelled())?.value)
    });
    let (first, extra_bytes) = peak_bytes(&mut call);
    first?;
    let times = median_milliseconds(seconds, std::slice::from_mut(&mut call))?;
    Ok(Cost { milliseconds: times[0], extra_bytes })
}

/// Why a case of the printed formulas is left out, if it is.
fn too_much(plugin: &NegScale, case: &Case, arguments: &Arguments) -> Result<Option<String>> {
    let pairs = plugin.pairs(&case.labelled())?;
    let (p, q) = (pairs.unrelated.len(), pairs.related.len());
    let gib = reference::bytes_needed::<f32>(p, case.dim) as f64 / (1u64 << 30) as f64;
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

/// Median time of each call, taken in turns as often as fits, three times at least.
fn median_milliseconds(seconds: f64, calls: &mut [Call]) -> Result<Vec<f64>> {
    let start = Instant::now();
    let mut times = vec![Vec::new(); calls.len()];
    for round in 0..10_000 {
        if round >= 3 && start.elapsed().as_secs_f64() >= seconds * calls.len() as f64 {
            break;
        }
        for (call, times) in calls.iter_mut().zip(&mut times) {
            let before = Instant::now();
            black_box(call()?);
            times.push(before.elapsed().as_secs_f64() * 1e3);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(times.into_iter().map(median).collect())
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
            say!("{form:>9} {batch:>6} {dim:>5} {classes:>8} {milliseconds:>12.3} {mib:>12.2}");
        }
        (Err(reason), false) => say!("{form:>9} {batch:>6} {dim:>5} {classes:>8}   left out: {reason}"),
    }
    Ok(())
}
