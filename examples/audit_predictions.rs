//! Which labels are wrong, from predictions that you have already: `cargo run --release --example audit_predictions`.
//!
//! Needs `negscale-audit` alone, which has no tensors in it.

use negscale_audit::{Cells, rank};

/// Finds the wrong labels of a made-up set of 300 samples.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Yours: a row of class probabilities for each sample, best by cross-validation, and the labels as given.
    let (pred_probs, labels) = made_up();

    let found = rank(&pred_probs, &labels)?;

    let estimate = &found.estimate;
    let [low, high] = estimate.interval;
    println!(
        "{:.1} % of the labels are wrong ({:.1} to {:.1})",
        100.0 * estimate.rate,
        100.0 * low,
        100.0 * high
    );
    let names = ["cat", "dog", "horse"].map(str::to_owned);
    let audit = found.audit.with_class_names(&names)?;
    for finding in audit.findings().iter().take(5) {
        let (given, suggested) = (finding.verdict.given as usize, finding.verdict.suggested as usize);
        println!("sample {:>3}: {} should be {}", finding.index, names[given], names[suggested]);
    }
    // All of them as a table.
    let mut table = Vec::new();
    audit.write_csv(&mut table, |_| None, Cells::Guarded)?;
    assert_eq!(table.iter().filter(|&&byte| byte == b'\n').count(), 301);
    Ok(())
}

/// Every twentieth label is wrong; predictions are right, and more or less sure.
fn made_up() -> (Vec<f32>, Vec<u32>) {
    let truth = |i: u32| i % 3;
    let labels = (0..300).map(|i| if i % 20 == 7 { (truth(i) + 1) % 3 } else { truth(i) }).collect();
    let row = |i: u32| {
        let sure = 0.7 + (i % 30) as f32 / 100.0;
        (0..3).map(move |class| if class == truth(i) { sure } else { (1.0 - sure) / 2.0 })
    };
    ((0..300).flat_map(row).collect(), labels)
}
