//! Writes folders of made-up runs and pages that compare them, to see every plot:
//! `cargo run --release -p negscale-report --example several -- FOLDER`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use negscale_report::{Comparison, EpochRecord};

const EPOCHS: u64 = 30;
const HOSTILE: &str = "<script>alert(1)</script>";

/// A number in -1..1 that depends on its argument only.
fn chance(at: u64) -> f64 {
    let mut mixed = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
    }
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// What is made up of a run.
struct Made<'a> {
    host: &'a str,
    plugin: &'a str,
    noise: &'a str,
    weights: Option<(f64, f64)>,
    seed: u64,
    /// Test accuracy it ends at, and the share of wrong labels it learns by heart.
    ends: (f64, f64),
}

fn record(made: &Made, epoch: u64, luck: u64) -> EpochRecord {
    let time = epoch as f64 / EPOCHS as f64;
    let learnt = 1.0 - (-6.0 * time).exp();
    let jitter = |stream: u64| 0.006 * chance(luck * 1000 + stream * 100 + epoch);
    let mut record = EpochRecord::new(epoch, 4.0, 0.02);
    record.losses.insert("total".into(), 2.0 - learnt);
    let peak = made.ends.0 + made.ends.1 * 0.25;
    record.test_accuracy = Some((0.1 + (peak - 0.1) * learnt - made.ends.1 * 0.25 * time * time) + jitter(1));
    record.validation_accuracy = record.test_accuracy.map(|test| test * 0.6);
    record.fit_wrong_given = Some(0.05 + made.ends.1 * time * time + jitter(2).abs());
    record.fit_wrong_true = Some(0.1 + (0.85 - made.ends.1) * learnt + jitter(3));
    record.separation_auc = Some(0.5 + 0.45 * learnt - 0.2 * made.ends.1 * time + jitter(4));
    record.selection_precision = Some(0.6 + 0.35 * learnt - 0.2 * made.ends.1 * time + jitter(5));
    record.selection_recall = Some(0.9 + 0.08 * learnt + jitter(6));
    record
}

fn write_run(folder: &Path, made: &Made) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let weights = made
        .weights
        .map_or(String::new(), |(lambda, mu)| format!("[negscale]\nlambda = {lambda:?}\nmu = {mu:?}\n\n"));
    let Made { host, plugin, noise, seed, .. } = made;
    let settings = format!(
        "data = \"cifar10-embeddings\"\nnoise = \"{noise}\"\nnoise_seed = {seed}\nhost = \"{host}\"\nplugin = \"{plugin}\"\n\
         net = \"mlp\"\nepochs = {EPOCHS}\nseed = {seed}\n\n{weights}[provenance]\nrun = \"made up\"\nversion = \"0.1.0\"\n\
         hardware = \"2 cores\"\nnoise_achieved = 0.45\n"
    );
    fs::write(folder.join("settings.toml"), settings)?;
    let luck = seed + host.len() as u64 * 31 + plugin.len() as u64 * 7 + noise.len() as u64;
    let records: Vec<EpochRecord> = (0..EPOCHS).map(|epoch| record(made, epoch, luck)).collect();
    let mut lines = String::new();
    for record in &records {
        lines.push_str(&serde_json::to_string(record)?);
        lines.push('\n');
    }
    fs::write(folder.join("metrics.jsonl"), lines)?;
    let tests: Vec<f64> = records.iter().filter_map(|record| record.test_accuracy).collect();
    let last_10 = tests.iter().rev().take(10).sum::<f64>() / 10.0;
    let results = serde_json::json!({
        "test_last": tests.last(),
        "test_last10": last_10,
        "test_best_by_validation": tests.iter().copied().fold(0.0, f64::max) - 0.004,
        "test_best": tests.iter().copied().fold(0.0, f64::max),
        "audit_average_precision": 0.95 - 0.3 * made.ends.1 + 0.01 * chance(luck + 5),
        "noise_achieved": 0.45,
        "noise_estimated": 0.45 + 0.02 * chance(luck + 6),
        "seconds": 120.0 + 10.0 * chance(luck + 7),
        "baseline": null,
    });
    fs::write(folder.join("results.json"), results.to_string())?;
    let kind = |shift: f64| {
        let one = |mean: f64| serde_json::json!({ "normalised": mean + 0.004 * chance(luck + 8) });
        serde_json::json!({ "related": one(0.62 + shift), "unrelated": one(0.47 + shift / 6.0) })
    };
    let classes = ["aeroplane", "bird", "cat", "dog", "frog", "lorry"];
    let mean = |a: usize, b: usize, shift: f64| match a.abs_diff(b) {
        0 => 0.8 - shift,
        1 => 0.3 + shift,
        far => 0.02 * far as f64 + shift / 8.0,
    };
    let class_means = |shift: f64| -> Vec<Vec<f64>> {
        (0..classes.len()).map(|a| (0..classes.len()).map(|b| mean(a, b, shift)).collect()).collect()
    };
    let similarity = |shift: f64| {
        serde_json::json!({ "class_means": class_means(shift), "similarity": { "known": {
            "truth": kind(shift),
            "by_truth": { "clean_clean": kind(shift / 2.0), "clean_noisy": kind(shift * 1.3) },
            "cross_noise": kind(shift * 2.0),
        } } })
    };
    let analysis = serde_json::json!({
        "target": { "classes": classes },
        "run": similarity(made.ends.1 * 0.3),
        "clean": similarity(0.0),
    });
    fs::write(folder.join("analysis.json"), analysis.to_string())?;
    Ok(())
}

/// Two hosts with and without the plug-in, three kinds of noise, five seeds, and a run that never finished.
fn methods(place: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let runs = place.join("runs");
    for (host, accuracy, memory) in [("cross-entropy", 0.70, 0.55), ("rolr", 0.86, 0.15)] {
        for (plugin, gain) in [("none", 0.0), ("negscale", 0.012)] {
            for (noise, harm) in [("sym:0.5", 0.0), ("cifarn:worse", 0.03), ("sym:0.8", 0.25)] {
                for seed in 1..=5 {
                    let luck = 0.008 * chance(seed + host.len() as u64 * 50 + plugin.len() as u64);
                    let end = accuracy - harm + gain * (1.0 - 8.0 * harm) + luck;
                    let weights = (plugin != "none").then_some((1.0, 1.0));
                    let made =
                        Made { host, plugin, noise, weights, seed, ends: (end, memory + harm - gain * 3.0) };
                    let folder = runs.join(format!("{host}-{plugin}-{}-{seed}", noise.replace(':', "-")));
                    write_run(&folder, &made)?;
                }
            }
        }
    }
    let unfinished = runs.join("rolr-unfinished");
    write_run(
        &unfinished,
        &Made { host: "rolr", plugin: "none", noise: "sym:0.5", weights: None, seed: 9, ends: (0.5, 0.1) },
    )?;
    fs::remove_file(unfinished.join("results.json"))?;
    Ok(runs)
}

/// Variants of the plug-in, and a grid of its weights.
fn settings(place: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let runs = place.join("settings-runs");
    let mut all =
        vec![("none", None, 0.0), ("no-snop", Some((1.0, 1.0)), 0.004), ("no-dcsa", Some((1.0, 1.0)), 0.009)];
    all.push(("random-pairs", Some((1.0, 1.0)), -0.006));
    for lambda in [0.1f64, 0.5, 1.0, 2.0, 5.0, 10.0] {
        for mu in [0.1f64, 1.0, 5.0, 10.0] {
            let gain = 0.015 - 0.004 * lambda.ln().abs() - 0.002 * mu.ln().abs();
            all.push(("negscale", Some((lambda, mu)), gain));
        }
    }
    for (number, (plugin, weights, gain)) in all.into_iter().enumerate() {
        for seed in 1..=3 {
            let ends = (0.86 + gain + 0.002 * chance(seed + 100 * number as u64), 0.15);
            let made = Made { host: "rolr", plugin, noise: "sym:0.5", weights, seed, ends };
            write_run(&runs.join(format!("{number:02}-{seed}")), &made)?;
        }
    }
    Ok(runs)
}

/// Names that look like markup or never end, a single seed.
fn odd(place: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let runs = place.join("odd-runs");
    let long = "Donaudampfschifffahrtsgesellschaft".repeat(3);
    for (number, (host, noise)) in
        [(HOSTILE, "none"), (long.as_str(), HOSTILE), ("鳥の名前", "sym:0.5")].into_iter().enumerate()
    {
        let made = Made {
            host,
            plugin: "none",
            noise,
            weights: None,
            seed: 1,
            ends: (0.5, if number == 0 { f64::NAN } else { 0.1 }),
        };
        write_run(&runs.join(number.to_string()), &made)?;
    }
    Ok(runs)
}

fn main() -> Result<(), Box<dyn Error>> {
    let place = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "several".to_owned()));
    for (name, runs) in
        [("several", methods(&place)?), ("settings", settings(&place)?), ("odd-several", odd(&place)?)]
    {
        let comparison = Comparison::read(&[runs])?;
        let page = place.join(format!("{name}.html"));
        comparison.write(&page)?;
        comparison.write_plots(&page)?;
        println!("{}", page.display());
    }
    Ok(())
}
