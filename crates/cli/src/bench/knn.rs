//! `negscale bench knn`: time of a k-nearest-neighbour vote on every sample.

use anyhow::{Result, bail};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::kit::knn::{Voters, vote};
use negscale_methods::kit::rows::normalise;
use std::time::Instant;

/// Time of a k-nearest-neighbour vote: cosines of all queries with all samples, the nearest samples, their labels.
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
    /// Number of neighbours K.
    #[arg(long, default_value_t = 200)]
    k: usize,
    /// Number of classes.
    #[arg(long, default_value_t = 10)]
    classes: usize,
    /// Query only this many samples, the first ones.
    #[arg(long)]
    queries: Option<usize>,
    /// Number of runs.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Print a JSON object: samples, dim, k, queries, seconds, gflops, threads.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { samples, dim, k, classes, queries, runs, json } = arguments;
    if [samples, dim, k, classes, runs].contains(&0) {
        bail!("samples, dim, k, classes and runs must be at least 1");
    }
    let queries: Vec<usize> = (0..queries.unwrap_or(samples).min(samples)).collect();
    let (z, labels) = clusters(samples, dim, classes)?;
    let voters = Voters { labels: &labels, classes };
    let mut seconds = f64::INFINITY;
    for _ in 0..runs {
        let begin = Instant::now();
        std::hint::black_box(vote(&z, dim, voters, &queries, k)?);
        seconds = seconds.min(begin.elapsed().as_secs_f64());
    }
    let gflops = 2.0 * queries.len() as f64 * samples as f64 * dim as f64 / seconds / 1e9;
    let (queries, threads) = (queries.len(), rayon::current_num_threads());
    if json {
        let line = serde_json::json!({
            "samples": samples, "dim": dim, "k": k, "queries": queries, "seconds": seconds, "gflops": gflops,
            "threads": threads,
        });
        say!("{line}");
    } else {
        say!(
            "{seconds:>10.2} s for {queries} queries among {samples} x {dim}, K {k}: {gflops:.0} GFlop/s, {threads} threads"
        );
    }
    Ok(())
}

/// Normalised rows around one centre per class, the classes in turn, and their labels.
pub(super) fn clusters(samples: usize, dim: usize, classes: usize) -> Result<(Vec<f32>, Vec<u32>)> {
    let rows = |first: usize, count: usize| {
        let row = move |at| {
            let mut draw = Draw::new(1, Purpose::Order, 0, (first + at) as u64);
            (0..dim).map(move |_| draw.within(-0.5, 0.5) as f32)
        };
        (0..count).flat_map(row).collect::<Vec<f32>>()
    };
    let (centres, mut features) = (rows(0, classes), rows(classes, samples));
    for (at, row) in features.chunks_exact_mut(dim).enumerate() {
        let centre = &centres[at % classes * dim..][..dim];
        row.iter_mut().zip(centre).for_each(|(x, c)| *x += c);
    }
    Ok((normalise(&features, dim)?, (0..samples).map(|at| (at % classes) as u32).collect()))
}
