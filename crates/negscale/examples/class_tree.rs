//! A class tree learnt from data, for classes of which nobody has drawn one.
//!
//! ```text
//! cargo run --release --example class_tree
//! ```

use negscale::taxonomy::{LearntSettings, Taxonomy, Thresholds, class_means};

const CLASSES: [&str; 8] = ["cat", "dog", "lion", "wolf", "car", "truck", "ferry", "canoe"];
const DIM: usize = 12;

/// Stands for the features of your samples, by any network: the nearer two classes, the more they share.
fn samples() -> (Vec<f32>, Vec<usize>) {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for sample in 0..800 {
        let class = sample % CLASSES.len();
        let mut feature: Vec<f32> = (0..DIM).map(|_| 2.0 * noise()).collect();
        feature[class / 4] += 4.0; // beasts, vehicles
        feature[2 + class / 2] += 2.0; // pets, wild beasts, road, water
        feature[6 + class % 6] += 1.0; // the class itself
        features.extend(feature);
        labels.push(if sample % 5 == 0 { (class + 1 + sample / 8 % 7) % 8 } else { class }); // one in five is wrong
    }
    (features, labels)
}

/// The tree of the classes, from features and labels alone.
pub fn learn() -> negscale::Result<Taxonomy> {
    let (features, labels) = samples();
    let means = class_means(&CLASSES, &features, DIM, &labels)?;
    Taxonomy::learnt(&CLASSES, &means, &LearntSettings::default())
}

fn main() -> negscale::Result<()> {
    let tree = learn()?;
    for (class, name) in tree.class_names().enumerate() {
        println!("{name:<6} in {}", tree.ancestors(class).collect::<Vec<_>>().join(", in "));
    }
    // How many pairs of classes are related, how many unrelated: what the loss works with.
    println!("\n{}", tree.summary(Thresholds::default()));
    Ok(())
}
