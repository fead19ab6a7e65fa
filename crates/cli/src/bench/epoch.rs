//! `negscale bench host --epochs`: whole epochs of a method, beside the time that their passes alone take.
//!
//! With $t$ the time of an epoch, $f$ that of a forward pass for one sample and $n$ the forward passes of the epoch (one sample, one network;
//! a pass of training counts as three, because the way back costs about twice the way there; heads count by their multiply-adds), the ratio is $t / (n f)$: 1 if an
//! epoch is its passes and nothing else. Forward passes are timed before and after every epoch, so that a machine whose
//! speed wanders does so for both.

use super::host::{Case, Stopwatch};
use anyhow::Result;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use negscale_methods::trainer::Trainer;
use negscale_nets::{Input, Pass, Samples, precision_name};
use std::time::Instant;

/// A measurement of forward passes takes at least this many seconds.
const AT_LEAST: f64 = 0.3;

/// The head of the table.
pub fn say_head() -> Result<()> {
    say!(
        "{:<16} {:>6} {:>10} {:>14} {:>12} {:>7} {:>10}",
        "method",
        "batch",
        "epoch, ms",
        "passes/sample",
        "forward, us",
        "ratio",
        "CPU ratio"
    );
    Ok(())
}

/// A line of the table.
pub fn say(line: &serde_json::Value) -> Result<()> {
    let number =
        |key: &str, digits: usize| line[key].as_f64().map_or("-".into(), |v| format!("{v:.digits$}"));
    say!(
        "{:<16} {:>6} {:>10} {:>14} {:>12} {:>7} {:>10}",
        line["host"].as_str().unwrap_or_default(),
        line["batch"].to_string(),
        number("epoch_ms", 1),
        number("passes", 1),
        number("forward_us", 1),
        number("ratio", 2),
        number("cpu_ratio", 2)
    );
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

/// Seconds of a forward pass for one sample, by both clocks.
fn forward(trainer: &Trainer, batch: usize) -> Result<[Option<f64>; 2]> {
    let net = trainer.networks().net(0).valid();
    let values = |count: usize| (0..count).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
    let device = Device::flex();
    let samples: Samples = match net.spec().input {
        Input::Image { channels, height, width } => {
            let shape = [batch, height, width, channels];
            Samples::Images(Tensor::from_data(
                TensorData::new(values(shape.iter().product()), shape),
                &device,
            ))
        }
        Input::Features(size) => {
            Samples::Rows(Tensor::from_data(TensorData::new(values(batch * size), [batch, size]), &device))
        }
    };
    drop(net.forward(samples.clone(), &Pass::evaluate())?);
    let (begun, mut passes) = (Clocks::now(), 0);
    while begun.wall.elapsed().as_secs_f64() < AT_LEAST || passes < 3 {
        drop(net.forward(samples.clone(), &Pass::evaluate())?);
        passes += 1;
    }
    Ok(begun.since().map(|seconds| seconds.map(|seconds| seconds / (passes * batch) as f64)))
}

fn passes(trainer: &Trainer) -> f64 {
    (0..trainer.networks().len()).map(|net| trainer.networks().net(net).passes()).sum()
}

/// Epochs of a method after its first, all together: a single one may be shorter than the system's clock can tell.
pub fn measure(case: &Case, epochs: usize) -> Result<serde_json::Value> {
    let mut trainer = Stopwatch::new(case, "none")?.trainer;
    trainer.stop_flag().store(false, std::sync::atomic::Ordering::Relaxed);
    // The rest of the first epoch: methods divide samples from the second on.
    trainer.epoch(|_| {})?;
    let samples = trainer.ledger()?.len() as f64;
    let (mut taken, mut alone, mut made) = ([Some(0.0); 2], [Some(0.0); 2], 0.0);
    for _ in 0..epochs {
        let before = forward(&trainer, case.batch)?;
        let (begun, done) = (Clocks::now(), passes(&trainer));
        trainer.epoch(|_| {})?;
        let (now, count) = (begun.since(), passes(&trainer) - done);
        let after = forward(&trainer, case.batch)?;
        made += count;
        for clock in 0..2 {
            let add = |sum: Option<f64>, more: Option<f64>| Some(sum? + more?);
            taken[clock] = add(taken[clock], now[clock]);
            let mean = before[clock].zip(after[clock]).map(|(before, after)| count * (before + after) / 2.0);
            alone[clock] = add(alone[clock], mean);
        }
    }
    let ratio = |clock: usize| Some(taken[clock]? / alone[clock]?).filter(|ratio| ratio.is_finite());
    let each = |sum: Option<f64>, of: f64| sum.map(|sum| sum / of);
    Ok(serde_json::json!({
        "host": case.host, "net": case.net, "batch": case.batch, "precision": precision_name(case.precision),
        "samples": samples, "epochs": epochs, "epoch_ms": each(taken[0], epochs as f64 / 1e3),
        "passes": made / samples / epochs as f64, "forward_us": each(alone[0], made / 1e6),
        "ratio": ratio(0), "cpu_ratio": ratio(1),
        "cpu": negscale_cpu::name(), "threads": rayon::current_num_threads(),
    }))
}
