//! Which labels are wrong, from embeddings and labels: `cargo run --release --example audit_embeddings`.

use negscale_run::Stop;
use negscale_run::audit::audit_embeddings;

/// Finds the wrong labels of made-up embeddings.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Yours: rows of numbers from any encoder, and the labels as given.
    let (embeddings, dim, labels, truth) = made_up();
    let classes = ["cat", "dog", "horse", "car"].map(str::to_owned);

    let found = audit_embeddings(&embeddings, dim, &labels, &classes, 1, &Stop::default())?;

    println!("{:.1} % of the labels are wrong", 100.0 * found.estimate.rate);
    for finding in found.audit.findings().iter().take(5) {
        let (given, suggested) = (finding.verdict.given as usize, finding.verdict.suggested as usize);
        println!("row {:>3}: {} should be {}", finding.index, classes[given], classes[suggested]);
    }
    let measures = found.audit.measure(&truth)?;
    println!("average precision of the ranking: {:.3}", measures.average_precision.unwrap_or(f64::NAN));
    assert!(measures.average_precision.is_some_and(|precision| precision > 0.9));
    Ok(())
}

/// Four clouds of 150 rows; every tenth label is wrong.
fn made_up() -> (Vec<f32>, usize, Vec<u32>, Vec<u32>) {
    let (dim, count) = (16, 600);
    let truth: Vec<u32> = (0..count).map(|i| i % 4).collect();
    let labels =
        truth.iter().enumerate().map(|(i, &class)| if i % 10 == 0 { (class + 1) % 4 } else { class });
    // Numbers that look random and are the same on every machine.
    let noise = |i: u32| (f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) - 0.5) as f32;
    let row = |i: u32| {
        let centre = move |j: u32| if j % 4 == i % 4 { 1.0 } else { 0.0 };
        (0..dim as u32).map(move |j| centre(j) + 1.5 * noise(i * 31 + j * 977))
    };
    let embeddings = (0..count).flat_map(row).collect();
    (embeddings, dim, labels.collect(), truth)
}
