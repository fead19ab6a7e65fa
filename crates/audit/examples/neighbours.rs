//! How long a search for neighbours takes, and how many of the true ones lists find (docs/decisions/014-neighbours.md).
//!
//! `cargo run --release -p negscale-audit --example neighbours -- 50000 128 100 exact` takes rows, numbers per row, clusters, and `exact`, `lists`
//! or `both`.

use negscale_audit::crossfit::Rows;
use negscale_audit::neighbours::{
    CopySettings, NeighbourSettings, Neighbours, OutlierSettings, copies, nearest, outliers,
};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [count, dim, clusters, how] = words.as_slice() else {
        return Err("give rows, numbers per row, clusters, and exact, lists or both".into());
    };
    let (count, dim, clusters): (usize, usize, usize) = (count.parse()?, dim.parse()?, clusters.parse()?);
    let values = clustered(count, dim, clusters.max(1));
    let rows = Rows::new(&values, dim)?;
    let run = |name: &str, exact_up_to: usize| -> Result<Neighbours, Box<dyn Error>> {
        let began = Instant::now();
        let near = nearest(&rows, &NeighbourSettings { exact_up_to, ..Default::default() })?;
        println!("{name}: {:.2} s, recall on a sample {:.3}", began.elapsed().as_secs_f64(), near.recall());
        Ok(near)
    };
    let exact = if how != "lists" { Some(run("exact", usize::MAX)?) } else { None };
    let lists = if how != "exact" { Some(run("lists", 0)?) } else { None };
    if let (Some(exact), Some(lists)) = (&exact, &lists) {
        let same =
            |row: usize| exact.indices(row).iter().filter(|other| lists.indices(row).contains(other)).count();
        let found: usize = (0..count).map(same).sum();
        println!("recall on all rows {:.4}", found as f64 / (count * exact.width()) as f64);
    }
    if let Some(near) = exact.or(lists) {
        let began = Instant::now();
        let copies = copies(&rows, &near, &CopySettings::default())?;
        println!(
            "{} sets of copies within {:.2e}: {:.2} s",
            copies.sets().len(),
            copies.radius(),
            began.elapsed().as_secs_f64()
        );
        let began = Instant::now();
        let outliers = outliers(&near, &OutlierSettings::default())?;
        println!(
            "{} outliers above {:.3}: {:.2} s",
            outliers.flagged().len(),
            outliers.bar(),
            began.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Gaussian clusters of deviation 1 about centres of deviation 2 (SplitMix64 and sums of twelve).
fn clustered(count: usize, dim: usize, clusters: usize) -> Vec<f32> {
    let unit = |number: u64| {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    };
    let normal = |at: u64| (0..12).map(|part| unit(at * 12 + part)).sum::<f32>() - 6.0;
    let centres: Vec<f32> = (0..clusters * dim).map(|at| 2.0 * normal(at as u64)).collect();
    let value = |at: usize| centres[at / dim % clusters * dim + at % dim] + normal((1 << 40) + at as u64);
    (0..count * dim).map(value).collect()
}
