//! The burn adapter: true value, exact gradient, whatever the route.
#![cfg(feature = "flex")]
#![allow(clippy::unwrap_used)]

mod oracle;

use burn::tensor::{DType, Device, Tensor, TensorData};
use negscale::burn::{Adapter, confidence, labels};
use negscale::{BatchLabels, Centre, NegScale, Settings, Taxonomy, Workspace};
use oracle::Batch;

fn plugin(settings: Settings) -> NegScale {
    NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), settings).unwrap()
}

/// Features of a batch as a leaf that keeps its gradient.
fn leaf(batch: &Batch, dtype: DType) -> Tensor<2> {
    let device = Device::flex().autodiff();
    let shape = [batch.labels.len(), batch.dim];
    Tensor::<2>::from_data(TensorData::new(batch.features.clone(), shape), (&device, dtype)).require_grad()
}

fn numbers(tensor: Tensor<2>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().unwrap()
}

fn narrow(confidence: &[f64]) -> Vec<f32> {
    confidence.iter().map(|&c| c as f32).collect()
}

/// The literal formulas in burn's own differentiable operations, for burn's autodiff to work on.
fn literal_in_burn(
    features: Tensor<2>,
    batch: &Batch,
    pairs: &negscale::PairLists,
    deltas: &[f64],
) -> Tensor<1> {
    let device = features.device();
    let dtype = features.dtype();
    let column = |values: Vec<f64>| {
        let n = values.len();
        Tensor::<2>::from_data(TensorData::new(values, [n, 1]), (&device, dtype))
    };
    let rows = |list: &[(usize, usize)], first: bool| -> Vec<i64> {
        list.iter().map(|&(i, j)| if first { i as i64 } else { j as i64 }).collect()
    };
    let length = features.clone().powf_scalar(2.0).sum_dim(1).sqrt();
    let x = features / length;
    let pick = |list: &[(usize, usize)], first: bool| {
        let at = rows(list, first);
        let n = at.len();
        let index = Tensor::<1, burn::tensor::Int>::from_data(TensorData::new(at, [n]), &device);
        x.clone().select(0, index)
    };
    let p = pairs.unrelated.len() as f64;
    let (i, j) = (pick(&pairs.unrelated, true), pick(&pairs.unrelated, false));
    let difference = i.clone() - j.clone();
    let v = difference.clone() / difference.powf_scalar(2.0).sum_dim(1).sqrt();
    let between = v.clone().matmul(v.transpose());
    let identity = Tensor::<2>::eye(pairs.unrelated.len(), &device).cast(dtype);
    let global = (between - identity).powf_scalar(2.0).sum().div_scalar(p * p);
    let doubt = |n: usize| 1.0 - batch.confidence[n] as f32 as f64;
    let weights = column(pairs.unrelated.iter().map(|&(i, j)| doubt(i) * doubt(j)).collect());
    let local = ((i * j).sum_dim(1).powf_scalar(2.0) * weights).sum().div_scalar(p);
    let (i, j) = (pick(&pairs.related, true), pick(&pairs.related, false));
    let gap = (i * j).sum_dim(1) - (column(deltas.to_vec()).neg().add_scalar(1.0));
    let dcsa = gap.clamp_min(0.0).powf_scalar(2.0).sum().div_scalar(pairs.related.len() as f64);
    global + local + dcsa
}

#[test]
fn burns_own_autodiff_of_the_literal_formulas_gives_our_gradient() {
    let batch = Batch::random(24, 8, 10, 3);
    let negscale = plugin(Settings::default());
    let pairs = negscale.pairs(&batch.given()).unwrap();
    let deltas = oracle::values(&batch, &pairs, negscale.settings(), None).delta;

    let features = leaf(&batch, DType::F64);
    let literal = literal_in_burn(features.clone(), &batch, &pairs, &deltas);
    let value = literal.clone().try_into_vec_as::<f64>().unwrap()[0];
    let by_burn = numbers(features.grad(&literal.backward()).unwrap());

    for from_cosines in [false, true] {
        let mut adapter = Adapter::new(negscale.clone());
        let confidence = narrow(&batch.confidence);
        let features = leaf(&batch, DType::F64);
        let given = BatchLabels::new(&batch.labels, &confidence);
        let ours = if from_cosines {
            adapter.loss_from_cosines(features.clone(), &given)
        } else {
            adapter.loss(features.clone(), &given)
        };
        let ours = ours.unwrap();
        // From cosines the plug-in works in f32; and burn's own derivatives in f64 are good to about 1e-8.
        let (tolerance, slack) = if from_cosines { (1e-5, 1e-4) } else { (1e-10, 1e-7) };
        assert!((ours.value - value).abs() < tolerance, "{} {value}", ours.value);
        let carried = ours.loss.clone().try_into_vec_as::<f64>().unwrap()[0];
        assert!((carried - ours.value).abs() < 1e-12, "the tensor carries {carried}, not {}", ours.value);
        let gradient = numbers(features.grad(&ours.loss.backward()).unwrap());
        let size = by_burn.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        assert!(size > 1e-3);
        for (a, b) in gradient.iter().zip(&by_burn) {
            assert!((a - b).abs() < slack * size, "{a} {b}");
        }
    }
}

#[test]
fn the_gradient_flows_on_into_the_network_and_adds_to_the_hosts() {
    let device = Device::flex().autodiff();
    let batch = Batch::random(20, 6, 10, 4);
    let confidence = narrow(&batch.confidence);
    let input = leaf(&batch, DType::F32).detach().set_require_grad(false);
    let weight = |seed| {
        let values = Batch::random(6, 5, 1, seed).features;
        Tensor::<2>::from_data(TensorData::new(values, [6, 5]), (&device, DType::F32)).require_grad()
    };
    let given = BatchLabels::new(&batch.labels, &confidence);
    let gradient = |host: bool, extra: bool| {
        let w = weight(1);
        let features = input.clone().matmul(w.clone());
        let mut loss = Tensor::<1>::zeros([1], (&device, DType::F32));
        if host {
            loss = loss + features.clone().powf_scalar(2.0).mean();
        }
        if extra {
            loss = loss + Adapter::new(plugin(Settings::default())).loss(features, &given).unwrap().loss;
        }
        numbers(w.grad(&loss.backward()).unwrap())
    };
    let (host, extra, both) = (gradient(true, false), gradient(false, true), gradient(true, true));
    assert!(extra.iter().any(|g| g.abs() > 1e-4));
    for k in 0..host.len() {
        assert!((host[k] + extra[k] - both[k]).abs() < 1e-6);
    }
}

#[test]
fn single_precision_features_give_what_the_slices_give() {
    let batch = Batch::random(32, 16, 10, 5);
    let confidence = narrow(&batch.confidence);
    let given = BatchLabels::new(&batch.labels, &confidence);
    let settings = Settings::default().with_centre(Centre::ClassBalanced);
    let mut adapter = Adapter::new(plugin(settings.clone()));
    let features = leaf(&batch, DType::F32);
    let ours = adapter.loss(features.clone(), &given).unwrap();
    let slices: Vec<f32> = batch.features.iter().map(|&f| f as f32).collect();
    let mut workspace = Workspace::new();
    let plain = plugin(settings);
    let direct = plain.loss_and_gradient(&slices, 16, &given, &mut workspace).unwrap();
    assert_eq!((ours.value, ours.terms), (direct.value, direct.terms));
    let gradient = features.grad(&ours.loss.backward()).unwrap().try_into_vec_as::<f32>().unwrap();
    assert_eq!(gradient, direct.gradient);
    assert_eq!(adapter.memory(), workspace.memory());
    let refused = adapter.loss_from_cosines(leaf(&batch, DType::F32), &given).unwrap_err();
    assert!(refused.to_string().contains("centre"), "{refused}");
}

#[test]
fn class_means_go_on_after_a_checkpoint_in_either_precision() {
    let batches = [1, 2, 3].map(|seed| Batch::random(24, 6, 10, seed));
    let confidence = narrow(&batches[0].confidence);
    let centred = || Adapter::new(plugin(Settings::default().with_centre(Centre::ClassBalanced)));
    for dtypes in [[DType::F32; 3], [DType::F64; 3], [DType::F32, DType::F64, DType::F32]] {
        let values = |stop: usize| -> Vec<f64> {
            let mut adapter = centred();
            let mut step = |at: usize| {
                if at == stop {
                    let saved = serde_json::to_string(adapter.memory()).unwrap();
                    adapter = centred();
                    *adapter.memory_mut() = serde_json::from_str(&saved).unwrap();
                }
                let given = BatchLabels::new(&batches[at].labels, &confidence);
                adapter.loss(leaf(&batches[at], dtypes[at]), &given).unwrap().value
            };
            (0..3).map(&mut step).collect()
        };
        let through = values(3);
        assert_eq!(values(1), through);
        assert_eq!(values(2), through);
        // The means matter: without those of the first batch the second comes out otherwise.
        let given = BatchLabels::new(&batches[1].labels, &confidence);
        assert_ne!(centred().loss(leaf(&batches[1], dtypes[1]), &given).unwrap().value, through[1]);
    }
}

#[test]
fn features_in_half_precision_give_nearly_the_same() {
    let batch = Batch::random(24, 8, 10, 3);
    let confidence = narrow(&batch.confidence);
    let given = BatchLabels::new(&batch.labels, &confidence);
    let [single, half] = [DType::F32, DType::F16].map(|dtype| {
        let features = leaf(&batch, dtype);
        let ours = Adapter::new(plugin(Settings::default())).loss(features.clone(), &given).unwrap();
        (ours.value, numbers(features.grad(&ours.loss.backward()).unwrap()))
    });
    assert!((single.0 - half.0).abs() < 0.01 * single.0, "{} {}", single.0, half.0);
    let largest = single.1.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    assert!(single.1.iter().zip(&half.1).all(|(a, b)| (a - b).abs() < 0.05 * largest));
}

#[test]
fn both_routes_rectify_alike() {
    let batch = Batch::random(24, 8, 10, 3);
    let confidence = narrow(&batch.confidence);
    let given = BatchLabels::new(&batch.labels, &confidence);
    let [direct, from_cosines] = [false, true].map(|from_cosines| {
        let mut adapter = Adapter::new(plugin(Settings::default().with_rectify(true)));
        let features = leaf(&batch, DType::F32);
        let f = features.clone();
        let ours = if from_cosines { adapter.loss_from_cosines(f, &given) } else { adapter.loss(f, &given) }
            .unwrap();
        let gradient = features.grad(&ours.loss.backward()).unwrap();
        (ours.value, gradient.try_into_vec_as::<f32>().unwrap())
    });
    assert!((direct.0 - from_cosines.0).abs() < 1e-5 * direct.0, "{} {}", direct.0, from_cosines.0);
    let largest = direct.1.iter().fold(0f32, |m, g| m.max(g.abs()));
    assert!(direct.1.contains(&0.0) && largest > 0.0);
    assert!(direct.1.iter().zip(&from_cosines.1).all(|(a, b)| (a - b).abs() < 1e-4 * largest));
}

#[test]
fn both_routes_leave_a_zero_feature_without_gradient() {
    let mut batch = Batch::random(12, 4, 10, 6);
    batch.features[8..12].fill(0.0);
    let confidence = narrow(&batch.confidence);
    let given = BatchLabels::new(&batch.labels, &confidence);
    for from_cosines in [false, true] {
        let mut adapter = Adapter::new(plugin(Settings::default()));
        let features = leaf(&batch, DType::F32);
        let f = features.clone();
        let ours = if from_cosines { adapter.loss_from_cosines(f, &given) } else { adapter.loss(f, &given) }
            .unwrap();
        let gradient = numbers(features.grad(&ours.loss.backward()).unwrap());
        assert!(gradient.iter().all(|g| g.is_finite()) && gradient.iter().any(|g| g.abs() > 1e-4));
        assert_eq!(gradient[8..12], [0.0; 4]);
    }
}

#[test]
fn confidence_is_the_probability_of_the_predicted_class() {
    let device = Device::flex();
    let logits = Tensor::<2>::from_data([[0.0f32, 0.0], [3.0, 1.0]], &device);
    let c = confidence(logits).unwrap();
    assert!((c[0] - 0.5).abs() < 1e-6 && (c[1] - 1.0 / (1.0 + (-2.0f32).exp())).abs() < 1e-6);
}

#[test]
fn labels_are_read_from_targets_and_negative_ones_refused() {
    let device = Device::flex();
    let targets = |values: [i64; 3]| Tensor::<1, burn::tensor::Int>::from_data(values, &device);
    assert_eq!(labels(targets([3, 0, 9])).unwrap(), [3, 0, 9]);
    let error = labels(targets([3, 0, -1])).unwrap_err().to_string();
    assert!(error.contains("label -1 of sample 2"), "{error}");
}

#[test]
fn bad_features_are_an_error_not_a_panic() {
    let mut batch = Batch::random(6, 4, 10, 6);
    batch.features[5] = f64::NAN;
    let confidence = narrow(&batch.confidence);
    let mut adapter = Adapter::new(plugin(Settings::default()));
    let error =
        adapter.loss(leaf(&batch, DType::F32), &BatchLabels::new(&batch.labels, &confidence)).unwrap_err();
    assert!(error.to_string().contains("sample 1"), "{error}");
}
