//! The first-order drift against what a small step really does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use negscale_similarity::drift::Classifier;
use negscale_similarity::{Labels, Units, drift};

const CLASSES: usize = 10;
const DIM: usize = 7;
const SAMPLES: usize = 40;

/// Numbers that look random, in (-1, 1).
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let one = |at: u64| {
        let mut z = (seed << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0) as f32
    };
    (1..=count as u64).map(one).collect()
}

struct Case {
    features: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    given: Vec<u32>,
    truth: Vec<u32>,
    rectifies: bool,
}

impl Case {
    fn new(rectifies: bool) -> Self {
        let truth: Vec<u32> = (0..SAMPLES as u32).map(|i| i % 10).collect();
        Self {
            features: numbers(SAMPLES * DIM, 1),
            weights: numbers(CLASSES * DIM, 2),
            bias: numbers(CLASSES, 3),
            given: truth
                .iter()
                .enumerate()
                .map(|(i, &t)| if i % 3 == 0 { (t + 4) % 10 } else { t })
                .collect(),
            truth,
            rectifies,
        }
    }

    fn row(&self, i: usize) -> Vec<f64> {
        self.features[i * DIM..][..DIM].iter().map(|&x| x.into()).collect()
    }

    fn logits(&self, f: &[f64]) -> Vec<f64> {
        let seen = |x: f64| if self.rectifies { x.max(0.0) } else { x };
        let logit = |k: usize| {
            let terms = f.iter().zip(&self.weights[k * DIM..]).map(|(&x, &w)| seen(x) * f64::from(w));
            terms.sum::<f64>() + f64::from(self.bias[k])
        };
        (0..CLASSES).map(logit).collect()
    }

    fn loss(&self, f: &[f64], label: u32) -> f64 {
        let logits = self.logits(f);
        logits.iter().map(|z| z.exp()).sum::<f64>().ln() - logits[label as usize]
    }

    /// The gradient of the loss by central differences: nothing is taken from the formula.
    fn gradient(&self, i: usize, label: u32) -> Vec<f64> {
        let f = self.row(i);
        let slope = |at: usize| {
            let moved = |by: f64| {
                let mut f = f.clone();
                f[at] += by;
                self.loss(&f, label)
            };
            (moved(1e-5) - moved(-1e-5)) / 2e-5
        };
        (0..DIM).map(slope).collect()
    }

    /// Change of the cosine of two samples per size of a step, by central differences.
    fn change(&self, i: usize, j: usize, labels: &[u32]) -> f64 {
        let step = |size: f64| {
            let moved = |i: usize| {
                let g = self.gradient(i, labels[i]);
                self.row(i).iter().zip(g).map(|(f, g)| f - size * g).collect::<Vec<f64>>()
            };
            cosine(&moved(i), &moved(j))
        };
        (step(1e-4) - step(-1e-4)) / 2e-4
    }

    fn overlap(&self, i: usize, j: usize) -> f64 {
        let p = |i: usize| {
            let logits = self.logits(&self.row(i));
            let sum: f64 = logits.iter().map(|z| z.exp()).sum();
            logits.into_iter().map(move |z| z.exp() / sum)
        };
        2.0 * p(i).zip(p(j)).map(|(a, b)| a * b).sum::<f64>()
    }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-5 * (1.0 + wanted.abs()), "{found}, not {wanted}");
}

#[test]
fn the_drift_is_what_a_small_step_does_to_every_pair() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    for rectifies in [false, true] {
        let case = Case::new(rectifies);
        let logits: Vec<f32> =
            (0..SAMPLES).flat_map(|i| case.logits(&case.row(i))).map(|z| z as f32).collect();
        let units = Units::new(&case.features, DIM).unwrap();
        let labels = Labels::new(&case.given, Some(&case.truth), &tree, Thresholds::default()).unwrap();
        let classifier = Classifier { weights: &case.weights, rectifies };
        let found = drift(&units, &logits, classifier, &labels).unwrap().unwrap();
        assert_eq!(found.samples, SAMPLES);
        let (mut sums, mut counts) = ([[0.0; 4]; 8], [0u64; 8]);
        let (mut exact, mut kept) = (Vec::new(), Vec::new());
        for i in 0..SAMPLES {
            for j in 0..i {
                let (by_given, by_truth) = (case.change(i, j, &case.given), case.change(i, j, &case.truth));
                let overlap = case.overlap(i, j);
                for (which, of) in [&case.given, &case.truth].into_iter().enumerate() {
                    let relation = tree.relation(of[i] as usize, of[j] as usize, Thresholds::default());
                    let at = 4 * which + relation as usize;
                    counts[at] += 1;
                    let values = [by_given, by_given.abs(), by_truth, overlap];
                    sums[at].iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
                }
                if case.given[i] != case.given[j] {
                    exact.push(by_given.abs());
                    kept.push(overlap);
                }
            }
        }
        let both = [found.given, found.truth.unwrap()];
        for (at, step) in both.iter().flat_map(|of| of.list()).enumerate() {
            let step = step.unwrap();
            assert_eq!(step.pairs, counts[at]);
            let n = counts[at] as f64;
            let values = [step.mean, step.absolute, step.clean.unwrap(), step.paper];
            values.iter().zip(sums[at]).for_each(|(value, sum)| near(*value, sum / n));
        }
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let (a, b) = (mean(&exact), mean(&kept));
        let spread = |x: &[f64], m: f64| x.iter().map(|x| (x - m).powi(2)).sum::<f64>().sqrt();
        let joint: f64 = exact.iter().zip(&kept).map(|(x, y)| (x - a) * (y - b)).sum();
        near(found.correlation.unwrap(), joint / (spread(&exact, a) * spread(&kept, b)));
    }
}

#[test]
fn without_a_relu_logits_and_lengths_say_it_all() {
    let case = Case::new(false);
    let (i, j) = (3, 8);
    let length = |i: usize| case.row(i).iter().map(|x| x * x).sum::<f64>().sqrt();
    let z = |i: usize| -> Vec<f64> {
        case.logits(&case.row(i)).iter().zip(&case.bias).map(|(z, &b)| z - f64::from(b)).collect()
    };
    let q = |i: usize| -> Vec<f64> {
        let logits = case.logits(&case.row(i));
        let sum: f64 = logits.iter().map(|z| z.exp()).sum();
        let p = logits.iter().map(|z| z.exp() / sum).enumerate();
        p.map(|(k, p)| p - f64::from(u8::from(k as u32 == case.given[i]))).collect()
    };
    let dot = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>();
    let s = cosine(&case.row(i), &case.row(j));
    let between = (dot(q(i), z(j)) + dot(q(j), z(i))) / (length(i) * length(j));
    let own = dot(q(i), z(i)) / length(i).powi(2) + dot(q(j), z(j)) / length(j).powi(2);
    near(case.change(i, j, &case.given), s * own - between);
}

#[test]
fn samples_without_direction_and_misfits_are_refused_or_left_out() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let labels = Labels::new(&[0, 1, 2], None, &tree, Thresholds::default()).unwrap();
    let features = [1.0, 0.0, 0.0, 0.0, 0.5, 0.5];
    let units = Units::new(&features, 2).unwrap();
    let (logits, weights) = (numbers(30, 5), numbers(20, 6));
    let classifier = Classifier { weights: &weights, rectifies: false };
    let found = drift(&units, &logits, classifier, &labels).unwrap().unwrap();
    assert_eq!((found.samples, found.truth), (2, None));
    assert_eq!(found.given.list().iter().flatten().map(|step| step.pairs).sum::<u64>(), 1);
    assert_eq!(found.correlation, None, "one pair does not vary");
    assert!(drift(&units, &logits[1..], classifier, &labels).is_err());
    let short = Classifier { weights: &weights[1..], ..classifier };
    assert!(drift(&units, &logits, short, &labels).unwrap_err().to_string().contains("classifier"));
    let one = Labels::new(&[0], None, &tree, Thresholds::default()).unwrap();
    assert_eq!(
        drift(&Units::new(&features[..2], 2).unwrap(), &logits[..10], classifier, &one).unwrap(),
        None
    );
}
