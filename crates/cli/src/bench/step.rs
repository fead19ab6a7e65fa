//! `negscale bench step`: time and memory of a training step and of a forward pass.

use crate::program::{Program, program};
use anyhow::{Context, Result, bail};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use clap::ValueEnum;
use negscale_nets::optim::{Optimiser, Sgd};
use negscale_nets::{Input, NetSpec, Network, Pass, Precision, Samples, precision_name};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time and memory of a training step and of a forward pass.
///
/// A training step is forward, cross-entropy, backward and SGD with momentum and weight decay; a forward pass is in evaluation
/// mode. Prints the median over the steps, after three uncounted ones, and the peak resident memory of the
/// process; each case runs in its own process. `benches/torch/step.py` does the same work with PyTorch and compares.
#[derive(clap::Args)]
pub struct Arguments {
    /// Network [default: all networks of the benchmark in their usual cases].
    #[arg(long)]
    net: Option<String>,
    /// Batch size [default: the network's usual ones].
    #[arg(long)]
    batch: Option<usize>,
    /// What to measure [default: both].
    #[arg(long)]
    mode: Option<Mode>,
    /// How products are taken: f32, bf16, or auto (bf16 where this CPU is fast at it).
    #[arg(long, default_value = "auto")]
    precision: String,
    /// Length of the vectors that mlp takes.
    #[arg(long, default_value_t = 512)]
    dim: usize,
    /// Least number of counted steps; a measurement takes at least two seconds.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// Print one JSON object per line: net, batch, mode, precision, ms, mib, steps, cpu, threads.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    /// Forward, loss, backward, update.
    Train,
    /// Forward only.
    Forward,
}

impl Mode {
    fn name(self) -> &'static str {
        if self == Mode::Train { "train" } else { "forward" }
    }
}

/// What is measured.
struct Case<'a> {
    net: &'a str,
    batch: usize,
    mode: Mode,
    precision: Precision,
    dim: usize,
    steps: usize,
}

const CLASSES: usize = 10;
/// Steps that are not counted: threads start and memory is fetched.
const WARM: usize = 3;
/// A measurement takes at least this long: ten steps of a few milliseconds say little.
const AT_LEAST: Duration = Duration::from_secs(2);
/// The usual cases, as in `benches/torch/step.py`.
const CASES: [(&str, usize); 5] = [
    ("resnet-20", 128),
    ("preact-resnet-18", 64),
    ("preact-resnet-18", 448),
    ("mlp", 512),
    ("cnn-small", 128),
];

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { net, batch, mode, precision, dim, steps, json } = arguments;
    let precision = super::read_precision(&precision)?;
    if steps == 0 || dim == 0 || batch == Some(0) {
        bail!("--steps, --dim and --batch must be at least 1");
    }
    if let (Some(net), Some(batch), Some(mode)) = (&net, batch, mode) {
        // Inside the pool, as a trainer works: then a parallel step wakes the other threads only.
        let line = rayon::scope(|_| measure(&Case { net, batch, mode, precision, dim, steps }))?;
        if json {
            say!("{line}");
            return Ok(());
        }
        return show(&line, true);
    }
    let mut cases: Vec<(&str, usize)> =
        CASES.into_iter().filter(|(name, _)| net.as_deref().is_none_or(|net| net == *name)).collect();
    if let Some(batch) = batch {
        cases.iter_mut().for_each(|case| case.1 = batch);
        cases.dedup();
    }
    if let (Some(net), true) = (&net, cases.is_empty()) {
        cases.push((net, batch.unwrap_or(128)));
    }
    let modes = mode.map_or(vec![Mode::Train, Mode::Forward], |mode| vec![mode]);
    let cases = cases.iter().flat_map(|case| modes.iter().map(move |mode| (case.0, case.1, *mode)));
    for (index, (net, batch, mode)) in cases.enumerate() {
        let line = measure_apart(&Case { net, batch, mode, precision, dim, steps })?;
        if json {
            say!("{line}");
        } else {
            show(&line, index == 0)?;
        }
    }
    Ok(())
}

fn show(line: &serde_json::Value, with_head: bool) -> Result<()> {
    if with_head {
        let (precision, steps) = (&line["precision"], &line["steps"]);
        say!("{} threads, {}, {precision}, medians of {steps} steps or more", line["threads"], line["cpu"]);
        say!("{:<22} {:>6} {:>8} {:>10} {:>10}", "net", "batch", "mode", "ms", "peak MiB");
    }
    let text = |key: &str| line[key].as_str().with_context(|| format!("the result has no `{key}`"));
    let mib = line["mib"].as_f64().map_or("-".into(), |mib| format!("{mib:.0}"));
    let ms = line["ms"].as_f64().context("the result has no `ms`")?;
    say!("{:<22} {:>6} {:>8} {ms:>10.2} {mib:>10}", text("net")?, line["batch"], text("mode")?);
    Ok(())
}

/// A case in a process of its own, whose peak of memory is then the case's.
fn measure_apart(case: &Case) -> Result<serde_json::Value> {
    let Case { net, batch, mode, precision, dim, steps } = *case;
    let Program { path, words } = program()?;
    let mut command = Command::new(path);
    command.args(words).args(["bench", "step", "--json", "--net", net, "--mode", mode.name()]);
    command.args(["--precision", precision_name(precision), "--dim", &dim.to_string()]);
    command.args(["--batch", &batch.to_string(), "--steps", &steps.to_string()]);
    let done = command.stderr(Stdio::inherit()).output().context("cannot start a process for the case")?;
    if !done.status.success() {
        bail!("{net}, batch {batch}, {}: the process of this case failed; see above", mode.name());
    }
    serde_json::from_slice(&done.stdout).context("the process of a case did not print its result")
}

fn measure(case: &Case) -> Result<serde_json::Value> {
    let Case { net, batch, mode, precision, dim, steps } = *case;
    let input = match net {
        "mlp" | "mlp-bottleneck" => Input::Features(dim),
        "cnn-small" => Input::Image { channels: 1, height: 28, width: 28 },
        _ => Input::Image { channels: 3, height: 32, width: 32 },
    };
    let device = if mode == Mode::Train { Device::flex().autodiff() } else { Device::flex() };
    let network = Network::build(&NetSpec::new(net, input, CLASSES), &device)?;
    let mut network = network.with_precision(precision);
    let samples = make_samples(input, batch, &device);
    let labels: Vec<i64> = (0..batch).map(|row| (row * 7 % CLASSES) as i64).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [batch, 1]), &device);
    let mut optimiser =
        Optimiser::new(Sgd { lr: 0.01, momentum: 0.9, weight_decay: 5e-4, ..Sgd::default() })?;
    let mut times = Vec::with_capacity(steps);
    let started = Instant::now();
    for step in 0.. {
        if step >= WARM + steps && started.elapsed() >= AT_LEAST {
            break;
        }
        let begin = Instant::now();
        if mode == Mode::Train {
            let logits = network.forward(samples.clone(), &Pass::train(0, step as u64))?.logits;
            let loss = -log_softmax(logits, 1).gather(1, labels.clone()).mean();
            let mut gradients = loss.backward();
            network = optimiser.step(network, &mut gradients);
        } else {
            drop(network.forward(samples.clone(), &Pass::evaluate())?);
        }
        if step >= WARM {
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    let ms = if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
    let mib = peak_mib();
    if mib.is_none() {
        eprintln!("note: no peak memory: it is read from /proc/self/status, which this system does not have");
    }
    Ok(serde_json::json!({
        "net": net, "batch": batch, "mode": mode.name(), "precision": precision_name(precision), "ms": ms, "mib": mib, "steps": times.len(),
        "cpu": negscale_cpu::name(), "threads": rayon::current_num_threads(),
    }))
}

/// Samples with values around zero, the same for every run.
fn make_samples(input: Input, batch: usize, device: &Device) -> Samples {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 22) as f32 - 2.0
    };
    let mut values = |count: usize| (0..count).map(|_| draw()).collect::<Vec<f32>>();
    match input {
        Input::Image { channels, height, width } => {
            // Channels last, as the loader gives them to a trainer.
            let shape = [batch, height, width, channels];
            Samples::Images(Tensor::from_data(TensorData::new(values(shape.iter().product()), shape), device))
        }
        Input::Features(size) => {
            Tensor::<2>::from_data(TensorData::new(values(batch * size), [batch, size]), device).into()
        }
    }
}

/// Peak resident memory of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}
