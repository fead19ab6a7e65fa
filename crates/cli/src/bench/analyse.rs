//! `negscale bench analyse`: how long the similarity of all pairs of samples takes.

use super::knn::clusters;
use anyhow::{Result, bail};
use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use negscale_similarity::perturbation::perturbation;
use negscale_similarity::{Labels, Units, change, similarity};
use std::time::Instant;

/// Time of the exact statistics over all pairs of samples, with known truth and one label in five wrong.
///
/// Samples are drawn around one centre per class, the same on every run. Prints the shortest time over the runs.
#[derive(clap::Args)]
pub struct Arguments {
    /// Number of samples N.
    #[arg(long, default_value_t = 50_000)]
    samples: usize,
    /// Features per sample.
    #[arg(long, default_value_t = 512)]
    dim: usize,
    /// Number of classes.
    #[arg(long, default_value_t = 10)]
    classes: usize,
    /// Number of runs.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Also compare with a second run, pair by pair, and rotate one onto the other.
    #[arg(long)]
    change: bool,
    /// Print a JSON object: samples, dim, classes, similarity, change, perturbation (seconds), threads.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { samples, dim, classes, runs, json, .. } = arguments;
    if [samples, dim, classes, runs].contains(&0) {
        bail!("samples, dim, classes and runs must be at least 1");
    }
    let (features, truth) = clusters(samples, dim, classes)?;
    let wrong = |(i, &t): (usize, &u32)| if i % 5 == 0 { (t + 1 + i as u32 % 7) % classes as u32 } else { t };
    let given: Vec<u32> = truth.iter().enumerate().map(wrong).collect();
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let tree = match classes {
        10 => Taxonomy::builtin("cifar10")?,
        100 => Taxonomy::builtin("cifar100")?,
        _ => Taxonomy::flat(&names)?,
    };
    let labels = Labels::new(&given, Some(&truth), &tree, Thresholds::default())?;
    let other: Vec<f32> = features.iter().enumerate().map(|(i, x)| x + (i % 13) as f32 * 1e-3).collect();
    let mut seconds = [f64::INFINITY; 3];
    let mut time = |at: usize, work: &dyn Fn() -> Result<()>| -> Result<()> {
        for _ in 0..runs {
            let begin = Instant::now();
            work()?;
            seconds[at] = seconds[at].min(begin.elapsed().as_secs_f64());
        }
        Ok(())
    };
    time(0, &|| {
        std::hint::black_box(similarity(&Units::new(&features, dim)?, &labels)?);
        Ok(())
    })?;
    if arguments.change {
        let (a, b) = (Units::new(&features, dim)?, Units::new(&other, dim)?);
        time(1, &|| {
            std::hint::black_box(change(&a, &b, &labels)?);
            Ok(())
        })?;
        time(2, &|| {
            std::hint::black_box(perturbation(&a, &b, &labels)?);
            Ok(())
        })?;
    }
    let threads = rayon::current_num_threads();
    let measured = seconds.map(|seconds| seconds.is_finite().then_some(seconds));
    if json {
        let line = serde_json::json!({
            "samples": samples, "dim": dim, "classes": classes, "similarity": measured[0], "change": measured[1],
            "perturbation": measured[2], "threads": threads,
        });
        say!("{line}");
        return Ok(());
    }
    let pairs = samples as u64 * (samples as u64 - 1) / 2;
    for (name, seconds) in ["similarity", "change", "perturbation"].iter().zip(measured) {
        if let Some(seconds) = seconds {
            say!(
                "{seconds:>10.2} s {name:<12} {samples} x {dim}, {classes} classes ({pairs} pairs), {threads} threads"
            );
        }
    }
    Ok(())
}
