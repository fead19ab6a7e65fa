//! What is refused, what is left out, and what must not matter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale::taxonomy::Thresholds;
use negscale::{Settings, Taxonomy};
use negscale_similarity::drift::Classifier;
use negscale_similarity::perturbation::{BoundInputs, NetworkOutput, bound, perturbation};
use negscale_similarity::similarity::class_means;
use negscale_similarity::{Error, Labels, Pairs, Spread, Units, change, kendall, similarity};

fn tree() -> Taxonomy {
    Taxonomy::builtin("cifar10").unwrap()
}

fn labels<'a>(given: &'a [u32], truth: Option<&'a [u32]>) -> Labels<'a> {
    Labels::new(given, truth, &tree(), Thresholds::default()).unwrap()
}

/// Numbers without a pattern that matters.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.4
    };
    (0..count).map(|_| next()).collect()
}

fn linear(weights: &[f32]) -> Classifier<'_> {
    Classifier { weights, rectifies: false }
}

#[test]
fn classes_with_no_or_one_member_have_no_pairs() {
    let features = [1.0, 0.0, 0.0, 2.0, 1.0, 1.0];
    let units = Units::new(&features, 2).unwrap();
    let found = similarity(&units, &labels(&[3, 5, 1], None)).unwrap();
    assert!(found.given.same.is_none() && found.known.is_none());
    let pairs = found.given.list().iter().flatten().map(|spread| spread.pairs).sum::<u64>();
    assert_eq!(pairs, 3);
    let means = class_means(&units, &[3, 5, 1], 10).unwrap();
    assert!(means[3][3].is_none() && means[0][3].is_none());
    assert!(means[3][5].unwrap().abs() < 1e-15 && (means[3][1].unwrap() - 0.5f64.sqrt()).abs() < 1e-15);
    let none = similarity(&Units::new(&[], 4).unwrap(), &labels(&[], Some(&[]))).unwrap();
    assert!(none.given.list().iter().all(Option::is_none));
}

#[test]
fn identical_features_have_similarity_one_and_no_spread() {
    let features = [0.3, -0.4, 1.2].repeat(50);
    let given: Vec<u32> = (0..50).map(|i| i % 10).collect();
    let found = similarity(&Units::new(&features, 3).unwrap(), &labels(&given, Some(&given))).unwrap();
    for spread in found.given.list().into_iter().flatten() {
        assert!((spread.mean - 1.0).abs() < 1e-12 && spread.std < 1e-6, "{spread:?}");
        assert!((spread.normalised - 1.0).abs() < 1e-12);
    }
    let known = found.known.unwrap();
    assert!(known.cross_noise.list().iter().all(Option::is_none));
    assert!(known.by_truth.clean_noisy.list().iter().all(Option::is_none));
    assert_eq!(known.by_truth.clean_clean, known.truth);
}

#[test]
fn samples_without_features_are_left_out_and_counted() {
    let features = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    let units = Units::new(&features, 2).unwrap();
    assert_eq!(units.zeros(), 1);
    let found = similarity(&units, &labels(&[0, 0, 0, 0], None)).unwrap();
    assert_eq!(found.given.same.unwrap().pairs, 3);
}

#[test]
fn what_cannot_be_judged_is_refused_by_name() {
    let mut features = vec![1.0f32; 12];
    features[7] = f32::NAN;
    let error = Units::new(&features, 4).unwrap_err();
    assert!(matches!(error, Error::NotFinite { sample: 1, place: 3, .. }), "{error}");
    assert!(error.to_string().contains("sample 1"), "{error}");
    assert!(Units::new(&features, 5).is_err() && Units::new(&features, 0).is_err());
    let refuse = |given: &[u32], truth| {
        Labels::new(given, truth, &tree(), Thresholds::default()).unwrap_err().to_string()
    };
    assert!(refuse(&[0, 10], None).contains("label 10 of sample 1"));
    assert!(refuse(&[0, 1], Some(&[0, 77])).contains("true label 77 of sample 1"));
    assert!(refuse(&[0, 1], Some(&[0])).contains("true labels: there are 1"));
    let units = Units::new(&features[..4], 2).unwrap();
    let error = similarity(&units, &labels(&[0, 1, 2], None)).unwrap_err().to_string();
    assert!(error.contains("there are 2") && error.contains("3 labels"), "{error}");
    let error = kendall::orders(&[0.0; 9], &labels(&[0], None)).unwrap_err().to_string();
    assert!(error.contains("logits"), "{error}");
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (n, dim) = (700, 70);
    let (run, clean) = (numbers(n * dim, 1), numbers(n * dim, 2));
    let logits = numbers(n * 10, 3);
    let truth: Vec<u32> = (0..n as u32).map(|i| i * 7 % 10).collect();
    let given: Vec<u32> =
        truth.iter().enumerate().map(|(i, &t)| if i % 3 == 0 { (t + i as u32) % 10 } else { t }).collect();
    let measure = |threads: usize| {
        let pool = rayon_pool(threads);
        pool.install(|| {
            let labels = labels(&given, Some(&truth));
            let (run, clean) = (Units::new(&run, dim).unwrap(), Units::new(&clean, dim).unwrap());
            let classifier = numbers(10 * dim, 4);
            let (tree, settings) = (tree(), Settings::default());
            let terms =
                BoundInputs { classifier: linear(&classifier), tree: &tree, settings: &settings, batch: 64 };
            let seen = |units| NetworkOutput { units, logits: &logits };
            let bounds = bound(seen(&run), seen(&clean), &labels, &terms).unwrap();
            format!("{:?}{:?}{bounds:?}", change(&run, &clean, &labels), kendall::orders(&logits, &labels))
        })
    };
    assert_eq!(measure(1), measure(3));
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Rotates rows of three numbers about two axes.
fn turned(rows: &[f32]) -> Vec<f32> {
    let (c, s) = (0.6, 0.8);
    let turn = |row: &[f32]| {
        let (x, y, z) = (c * row[0] - s * row[1], s * row[0] + c * row[1], row[2]);
        [x, c * y - s * z, s * y + c * z]
    };
    rows.chunks(3).flat_map(turn).collect()
}

#[test]
fn a_rotation_of_all_features_is_no_change() {
    let clean = numbers(300, 5);
    let run = turned(&clean);
    let truth: Vec<u32> = (0..100).map(|i| i % 10).collect();
    let given: Vec<u32> = (0..100).map(|i| if i % 4 == 0 { (i + 3) % 10 } else { i % 10 }).collect();
    let labels = labels(&given, Some(&truth));
    let (run, clean) = (Units::new(&run, 3).unwrap(), Units::new(&clean, 3).unwrap());
    let moved = perturbation(&run, &clean, &labels).unwrap().unwrap();
    assert!(moved.largest < 1e-5 && moved.samples == 100, "{moved:?}");
    let (_, _, changes) = change(&run, &clean, &labels).unwrap();
    let related = changes.given.related.unwrap();
    assert!(related.rms < 1e-5 && related.correlation.unwrap() > 0.999_999, "{related:?}");
}

#[test]
fn the_bounds_are_made_of_what_is_reported() {
    let (n, dim) = (400, 6);
    let (run, clean) = (numbers(n * dim, 8), numbers(n * dim, 9));
    let truth: Vec<u32> = (0..n as u32).map(|i| i % 10).collect();
    let given: Vec<u32> = (0..n as u32).map(|i| if i % 5 == 0 { (i + 1) % 10 } else { i % 10 }).collect();
    let labels = labels(&given, Some(&truth));
    let logits: Vec<f32> =
        truth.iter().flat_map(|&t| (0..10).map(move |k| if k == t { 2.0 } else { 0.0 })).collect();
    let classifier = numbers(10 * dim, 10);
    let (tree, settings) = (tree(), Settings::default().with_lambda(0.5));
    let terms = BoundInputs { classifier: linear(&classifier), tree: &tree, settings: &settings, batch: 100 };
    let (run, clean) = (Units::new(&run, dim).unwrap(), Units::new(&clean, dim).unwrap());
    let seen = |units| NetworkOutput { units, logits: &logits };
    let (moved, found) = bound(seen(&run), seen(&clean), &labels, &terms).unwrap();
    let (moved, found) = (moved.unwrap(), found.unwrap());
    assert!((found.tau - 0.2).abs() < 1e-12 && found.margin_positive == 1.0 && found.error_run == 0.0);
    let epsilon = found.gradient_largest * found.tau / (0.5 * found.snop + found.dcsa);
    assert!((found.epsilon.unwrap() - epsilon).abs() < 1e-12);
    assert!((found.error_bound.unwrap() - 2.0 * epsilon / found.margin_smallest).abs() < 1e-9);
    assert!(moved.mean > 0.1 && moved.largest <= 2.0 && (0.0..=1.0).contains(&found.within.unwrap()));
    // The gradient of one sample, by hand.
    let e = 2f64.exp();
    let p = |k: u32, t: u32| if k == t { e / (e + 9.0) } else { 1.0 / (e + 9.0) };
    let norm = |i: usize| {
        let component = |c: usize| {
            let q = |k: u32| p(k, truth[i]) - f64::from(u8::from(k == given[i]));
            (0..10).map(|k| q(k) * f64::from(classifier[k as usize * dim + c])).sum::<f64>()
        };
        (0..dim).map(|c| component(c).powi(2)).sum::<f64>().sqrt()
    };
    let largest = (0..n).map(norm).fold(0.0, f64::max);
    assert!((found.gradient_largest - largest).abs() < 1e-9, "{} {largest}", found.gradient_largest);
    let unknown = Labels::new(&given, None, &tree, Thresholds::default()).unwrap();
    assert!(
        bound(seen(&run), seen(&clean), &unknown, &terms).unwrap().1.is_none(),
        "no noise rate without the truth"
    );
}

#[test]
fn a_record_of_similarities_survives_json() {
    let features = numbers(60, 11);
    let given: Vec<u32> = (0..20).map(|i| i % 10).collect();
    let found = similarity(&Units::new(&features, 3).unwrap(), &labels(&given, Some(&given))).unwrap();
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Pairs<Spread>>(&text).unwrap(), found);
}
