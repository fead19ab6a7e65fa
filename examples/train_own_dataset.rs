//! Training with a host method and the plug-in on a dataset of your own: `cargo run --release --example train_own_dataset`.

use negscale_data::{Dataset, Splits};
use negscale_run::recipe::Layers;
use negscale_run::{RunOptions, Stop, train};

/// Trains RoLR with NegScale on a made-up set with wrong labels, and says how good the model is.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Yours: implement `FeatureStore` or `ImageStore` for data that does not fit into memory.
    let classes = ["rose", "tulip", "lorry", "bus"].map(str::to_owned).to_vec();
    let data = |count: u32, wrong: u32| {
        let labels = (0..count).map(|i| if i % wrong == 0 { (i + 1) % 4 } else { i % 4 }).collect();
        Dataset::from_features("flowers and vehicles", classes.clone(), made_up(count), 8, labels)
    };
    let splits = Splits::new(data(800, 5)?, Some(data(200, u32::MAX)?));

    // Any setting of `negscale config explain`.
    let settings = ["host=rolr", "plugin=negscale", "epochs=6", "baseline=cross-entropy"].map(str::to_owned);
    let recipe = Layers::in_memory()?.with_sets(settings)?.resolve_for(&splits.train)?;

    // The folder holds model, wrong labels, report and checkpoints: call again to resume.
    let folder = tempfile::tempdir()?;
    let out = Some(folder.path().join("run"));
    let done = train(recipe, splits, out, RunOptions::default(), &mut (), &Stop::default())?;

    println!("{}", done.words);
    assert!(done.results["test_last"].as_f64().is_some_and(|accuracy| accuracy > 0.9));
    assert!(done.place.join("model.safetensors").exists() && done.place.join("audit.csv").exists());
    Ok(())
}

/// Four clouds.
fn made_up(count: u32) -> Vec<f32> {
    let noise = |i: u32| (f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) - 0.5) as f32;
    let row = |i: u32| {
        let centre = [[2.0, 1.0], [2.0, -1.0], [-2.0, 1.0], [-2.0, -1.0]][(i % 4) as usize];
        (0..8).map(move |j: u32| centre.get(j as usize).copied().unwrap_or(0.0) + noise(i * 131 + j * 977))
    };
    (0..count).flat_map(row).collect()
}
