//! `negscale bench host --epochs`: whole epochs of a method, beside the time that their passes alone take.
//!
//! With $t$ the time of an epoch, $f$ that of a forward pass for one sample, $e$ the passes of the epoch in evaluation and $n$ those in training (one
//! sample, one network; heads count by their multiply-adds), the ratio is $t / ((e + 3 n) f)$: the way back is taken to cost twice the way
//! there. With $s$ the time of a pass of training for one sample, loss and way back included, as measured, the share of the method itself
//! is seen in $t / (e f + n s)$: 1 if an epoch is its passes and nothing else. Passes are timed before and after every
//! epoch, so that a machine whose speed wanders does so for both.

use super::host::{Case, Stopwatch};
use anyhow::Result;
use burn::module::Module;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};
use negscale_methods::trainer::Trainer;
use negscale_nets::{Input, Pass, Samples, precision_name};
use std::time::Instant;

/// A measurement of forward passes takes at least this many seconds.
const AT_LEAST: f64 = 0.3;

/// The head of the table. A pass of training is given in forward passes; *beside* is the time beside what passes take as measured.
pub fn say_head() -> Result<()> {
    let words = [
        "batch",
        "epoch, ms",
        "passes",
        "forward, us",
        "training",
        "ratio",
        "CPU ratio",
        "beside",
        "CPU beside",
    ];
    let words: String = words.iter().map(|word| format!(" {word:>11}")).collect();
    say!("{:<16}{words}", "method");
    Ok(())
}

/// A line of the table.
pub fn say(line: &serde_json::Value) -> Result<()> {
    let keys = ["epoch_ms", "passes", "forward_us", "training", "ratio", "cpu_ratio", "beside", "cpu_beside"];
    let number = |key: &&str| line[*key].as_f64().map_or("-".into(), |value| format!("{value:.2}"));
    let cells: String = keys.iter().map(|key| format!(" {:>11}", number(key))).collect();
    say!("{:<16} {:>11}{cells}", line["host"].as_str().unwrap_or_default(), line["batch"].to_string());
    Ok(())
}

/// What the clock and the CPU say.
#[derive(Clone, Copy)]
struct Clocks {
    wall: Instant,
    /// Seconds that all threads together have computed, where the system tells.
    cpu: Option<f64>,
}

impl Clocks {
    fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }

    /// Seconds since then, by both.
    fn since(self) -> [Option<f64>; 2] {
        let cpu = self.cpu.and_then(|before| Some(cpu_seconds()? - before));
        [Some(self.wall.elapsed().as_secs_f64()), cpu]
    }
}

fn cpu_seconds() -> Option<f64> {
    // Times are in hundredths of a second on Linux; the name in brackets may hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}

/// Seconds for one sample, by both clocks: of a forward pass, and of a pass of training with its loss and way back.
fn passes_alone(trainer: &Trainer, batch: usize) -> Result<[[Option<f64>; 2]; 2]> {
    let net = trainer.networks().net(0);
    let plain = Device::flex();
    let samples = make_samples(net.spec().input, batch, &plain);
    let still = net.valid();
    let forward = repeat(batch, || {
        drop(still.forward(samples.clone(), &Pass::evaluate())?);
        Ok(())
    })?;
    let samples = make_samples(net.spec().input, batch, &plain.autodiff());
    let training = repeat(batch, || {
        // The running statistics stay as they are.
        let logits = net.forward(samples.clone(), &Pass::rehearse(0, 0))?.logits;
        drop((-log_softmax(logits, 1).slice([0..batch, 0..1])).mean().backward());
        Ok(())
    })?;
    Ok([forward, training])
}

fn make_samples(input: Input, batch: usize, device: &Device) -> Samples {
    let values = |count: usize| (0..count).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
    match input {
        Input::Image { channels, height, width } => {
            let shape = [batch, height, width, channels];
            Samples::Images(Tensor::from_data(TensorData::new(values(shape.iter().product()), shape), device))
        }
        Input::Features(size) => {
            Samples::Rows(Tensor::from_data(TensorData::new(values(batch * size), [batch, size]), device))
        }
    }
}

/// Seconds of a pass for one of its samples, by both clocks.
fn repeat(batch: usize, mut pass: impl FnMut() -> Result<()>) -> Result<[Option<f64>; 2]> {
    pass()?;
    let (begun, mut passes) = (Clocks::now(), 0);
    while begun.wall.elapsed().as_secs_f64() < AT_LEAST || passes < 3 {
        pass()?;
        passes += 1;
    }
    Ok(begun.since().map(|seconds| seconds.map(|seconds| seconds / (passes * batch) as f64)))
}

fn passes(trainer: &Trainer) -> [f64; 2] {
    let nets = (0..trainer.networks().len()).map(|net| trainer.networks().net(net).passes());
    nets.fold([0.0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]])
}

/// Sums over epochs, by one clock.
#[derive(Clone, Copy)]
struct Sums {
    taken: f64,
    /// Forward passes, three for one of training.
    forwards: f64,
    /// Passes as measured.
    measured: f64,
    /// Training passes alone, as measured and as forward passes.
    training: [f64; 2],
}

/// Epochs of a method after its first, all together: a single one may be shorter than the system's clock can tell.
pub fn measure(case: &Case, epochs: usize) -> Result<serde_json::Value> {
    let mut trainer = Stopwatch::new(case, "none")?.trainer;
    trainer.stop_flag().store(false, std::sync::atomic::Ordering::Relaxed);
    // The rest of the first epoch: methods divide samples from the second on.
    trainer.epoch(|_| {})?;
    let samples = trainer.ledger()?.len() as f64;
    let mut sums = [Some(Sums { taken: 0.0, forwards: 0.0, measured: 0.0, training: [0.0; 2] }); 2];
    let mut made = 0.0;
    for _ in 0..epochs {
        let before = passes_alone(&trainer, case.batch)?;
        let (begun, done) = (Clocks::now(), passes(&trainer));
        trainer.epoch(|_| {})?;
        let (taken, now) = (begun.since(), passes(&trainer));
        let after = passes_alone(&trainer, case.batch)?;
        let [evaluated, trained] = [now[0] - done[0], now[1] - done[1]];
        made += evaluated + 3.0 * trained;
        for (clock, sum) in sums.iter_mut().enumerate() {
            let mean = |kind: usize| Some((before[kind][clock]? + after[kind][clock]?) / 2.0);
            *sum = sum.zip(taken[clock]).zip(mean(0).zip(mean(1))).map(|((sum, taken), (f, s))| Sums {
                taken: sum.taken + taken,
                forwards: sum.forwards + (evaluated + 3.0 * trained) * f,
                measured: sum.measured + evaluated * f + trained * s,
                training: [sum.training[0] + trained * s, sum.training[1] + trained * f],
            });
        }
    }
    let [wall, cpu] = sums;
    let of = |sum: Option<Sums>, value: fn(Sums) -> f64| sum.map(value).filter(|value| value.is_finite());
    Ok(serde_json::json!({
        "host": case.host, "net": case.net, "batch": case.batch, "precision": precision_name(case.precision),
        "samples": samples, "epochs": epochs, "passes": made / samples / epochs as f64,
        "epoch_ms": wall.map(|sum| 1e3 * sum.taken / epochs as f64),
        "forward_us": wall.map(|sum| 1e6 * sum.forwards / made),
        "training": of(cpu.or(wall), |sum| sum.training[0] / sum.training[1]),
        "ratio": of(wall, |sum| sum.taken / sum.forwards), "cpu_ratio": of(cpu, |sum| sum.taken / sum.forwards),
        "beside": of(wall, |sum| sum.taken / sum.measured), "cpu_beside": of(cpu, |sum| sum.taken / sum.measured),
        "cpu": negscale_cpu::name(), "threads": rayon::current_num_threads(),
    }))
}
