use crate::material::{
    Pictures, Vectors, balanced, cifar10_names, noise, numbered, real_embeddings, scramble,
};
use negscale_data::noise::{Rate, flip_probabilities};
use negscale_data::{Dataset, Items, Shape};
use std::sync::Arc;

const SMALL: Shape = Shape { width: 8, height: 8, channels: 3 };

/// Pictures with a bright common mean and a little of their own, as photographs have.
fn pictures(len: usize, classes: Vec<String>) -> Dataset {
    let value = |i, at| 100 + (scramble(i, at) % 48) as u8 + (at % 29) as u8;
    let items = Items::Images(Arc::new(Pictures { len, shape: |_| SMALL, value }));
    let labels = (0..len).map(|i| (i % classes.len()) as u32).collect();
    Dataset::new("pictures", classes, items, labels, None).unwrap()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn flip_probabilities_are_a_truncated_normal() {
    let n = 200_000;
    for (tau, expected) in [(0.2, 0.2055), (0.4, 0.4000), (0.6, 0.6000), (0.0, 0.0798), (1.0, 0.9202)] {
        let q = flip_probabilities(Rate::new(tau).unwrap(), 3, n);
        assert!(q.iter().all(|q| (0.0..=1.0).contains(q)));
        assert!((mean(&q) - expected).abs() < 4.0 * 0.1 / (n as f64).sqrt() + 5e-5, "{tau}: {}", mean(&q));
    }
}

#[test]
fn the_achieved_rate_is_the_mean_of_q() {
    let data = balanced(numbered(10), 5000);
    for tau in [0.2, 0.4, 0.6] {
        for options in ["", ":matrix=shared", ":input=normalised", ":input=unit"] {
            let noise = noise(&format!("ins:{tau}{options}"), &data, 11);
            let q = mean(&flip_probabilities(Rate::new(tau).unwrap(), 11, data.len()));
            let bound = 4.0 * (tau * (1.0 - tau) / data.len() as f64).sqrt();
            assert!((noise.achieved - q).abs() < bound, "{}: {} for {q}", noise.spec, noise.achieved);
        }
    }
}

#[test]
fn labels_equal_a_literal_computation() {
    use negscale_data::draw::{Draw, Purpose};
    let data = pictures(300, numbered(5));
    let Items::Images(store) = data.items() else { unreachable!() };
    for (shared, text) in [(false, "ins:0.5:input=unit"), (true, "ins:0.5:input=unit:matrix=shared")] {
        let noise = noise(text, &data, 21);
        for i in 0..data.len() {
            let y = data.given()[i] as usize;
            let mut draw = Draw::new(21, Purpose::Noise, 0, i as u64);
            let q = loop {
                let q = 0.5 + 0.1 * draw.normal();
                if (0.0..=1.0).contains(&q) {
                    break q;
                }
            };
            if !draw.chance(q) {
                assert_eq!(noise.labels[i] as usize, y);
                continue;
            }
            let image = store.load(i).unwrap();
            let score = |c: usize| -> f64 {
                let of = if shared { 0 } else { y as u64 };
                let mut column = Draw::new(21, Purpose::NoiseMatrix, of, c as u64);
                // Channel first: all of red, then all of green, then all of blue.
                let planes = (0..3).flat_map(|channel| (0..64).map(move |at| at * 3 + channel));
                planes.map(|at| f64::from(image.pixels[at]) / 255.0 * f64::from(column.normal() as f32)).sum()
            };
            let scores: Vec<f64> =
                (0..5).map(|c| if c == y { f64::NEG_INFINITY } else { score(c) }).collect();
            let most = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let weights: Vec<f64> = scores.iter().map(|a| (a - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let mut left = draw.unit() * sum;
            let picked = (0..5).find(|&c| {
                left -= weights[c];
                left < 0.0
            });
            assert_eq!(Some(noise.labels[i] as usize), picked, "item {i}");
        }
    }
}

#[test]
fn raw_pixels_make_noise_nearly_class_conditional_and_normalised_ones_do_not() {
    let data = pictures(6000, numbered(10));
    let raw = noise("ins:0.4", &data, 2);
    let normalised = noise("ins:0.4:input=normalised", &data, 2);
    let (raw, normalised) = (mean(&raw.dominant), mean(&normalised.dominant));
    assert!(raw > 0.6 && normalised < 0.45 && raw > normalised + 0.25, "{raw} and {normalised}");
}

#[test]
fn a_shared_matrix_sends_all_classes_to_few() {
    let data = pictures(6000, numbered(10));
    let top = |spec: &str| {
        let mut received = [0u64; 10];
        let noise = noise(spec, &data, 4);
        noise.transition.cells().filter(|(a, b, _)| a != b).for_each(|(_, to, n)| received[to as usize] += n);
        received.sort_unstable();
        received[7..].iter().sum::<u64>() as f64 / received.iter().sum::<u64>() as f64
    };
    let (shared, own) = (top("ins:0.4:matrix=shared"), top("ins:0.4"));
    assert!(shared > 0.8 && shared > own, "three classes receive {shared} and {own} of the flips");
}

#[test]
fn threads_change_nothing() {
    let data = pictures(2000, numbered(7));
    let run = |threads, spec| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| noise(spec, &data, 3))
    };
    for spec in ["ins:0.4", "ins:0.4:input=normalised:matrix=shared"] {
        let one = run(1, spec);
        assert_eq!(one, run(2, spec));
        assert_eq!(one, run(5, spec));
    }
}

#[test]
fn items_that_do_not_fit_are_named() {
    let labels = vec![0, 1, 0, 1];
    let shape = |i| Shape { width: 2 + usize::from(i == 2), height: 2, channels: 3 };
    let items = Items::Images(Arc::new(Pictures { len: 4, shape, value: |_, _| 1 }));
    let data = Dataset::new("mixed", numbered(2), items, labels.clone(), None).unwrap();
    let error = crate::material::refused("ins:1", &data);
    assert!(error.contains("item 2 is 3 x 2 with 3 channels, the others 2 x 2"), "{error}");
    let value = |i, at| if (i, at) == (3, 1) { f32::NAN } else { 1.0 };
    let items = Items::Features(Arc::new(Vectors { len: 4, dim: 2, value }));
    let data = Dataset::new("holes", numbered(2), items, labels.clone(), None).unwrap();
    for spec in ["ins:1", "ins:1:input=unit"] {
        let error = crate::material::refused(spec, &data);
        assert!(error.contains("feature 1 of item 3 is NaN"), "{error}");
    }
    let huge = Vectors { len: 4, dim: usize::MAX / 8, value: |_, _| 0.0 };
    let huge = Items::Features(Arc::new(huge));
    let data = Dataset::new("huge", numbered(2), huge, labels.clone(), None).unwrap();
    assert!(crate::material::refused("ins:1", &data).contains("more than 1 GiB"));
    let none = Items::Features(Arc::new(Vectors { len: 4, dim: 0, value: |_, _| 0.0 }));
    let data = Dataset::new("none", numbered(2), none, labels, None).unwrap();
    assert!(crate::material::refused("ins:1", &data).contains("at least one number"));
}

#[test]
fn embeddings_take_instance_dependent_noise() {
    let Some(data) = real_embeddings("cifar10", cifar10_names()) else { return };
    let noise = noise("ins:0.4", &data, 1);
    assert!((noise.achieved - 0.4).abs() < 0.0088 + 0.002, "{}", noise.achieved);
    assert!(noise.dominant.iter().all(|&share| share > 1.0 / 9.0 && share < 1.0), "{:?}", noise.dominant);
}
