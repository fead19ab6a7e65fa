//! Forms that the paper does not print: literal formulas in f64, and central differences.
#![allow(clippy::unwrap_used)]

mod oracle;

use negscale::{
    BatchLabels, ClassAnchor, Confidence, DeltaFeatures, LocalDivisor, LocalShape, NegScale, PairSource,
    Settings, Similarity, Taxonomy, Workspace,
};
use oracle::{Batch, differences, same_direction};

fn tree() -> Taxonomy {
    Taxonomy::builtin("cifar10").unwrap()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A batch in which related pairs come above their cap.
fn batch(seed: u64) -> Batch {
    let mut batch = Batch::random(26, 6, 10, seed);
    batch.features.iter_mut().for_each(|f| *f += 0.4);
    batch
}

/// delta of a related pair by its definition: for each class the ceil(tau n)-th smallest cosine, then the largest sum over unrelated
/// pairs of classes in both orders.
fn delta(x: &[Vec<f64>], labels: &[usize], s: &Settings, (i, j): (usize, usize)) -> f64 {
    let tree = tree();
    let of_class = |sample: usize, class: usize| {
        let others = (0..x.len()).filter(|&p| labels[p] == class && (s.self_anchor || p != sample));
        let mut cosines: Vec<f64> = others.map(|p| inner(&x[sample], &x[p])).collect();
        cosines.sort_by(f64::total_cmp);
        let place = (s.delta_quantile * cosines.len() as f64).ceil() as usize;
        place.checked_sub(1).map(|place| cosines[place])
    };
    let mut largest = f64::NEG_INFINITY;
    for a in 0..10 {
        for b in (0..10).filter(|&b| tree.distance(a, b) > s.eta_max) {
            if let (Some(p), Some(q)) = (of_class(i, a), of_class(j, b)) {
                largest = largest.max(p + q);
            }
        }
    }
    largest / 2.0
}

/// Local term and DCSA, literally, as means; delta from other features if given, and constant if given.
fn literal(
    batch: &Batch,
    s: &Settings,
    confidence: &[f64],
    frozen: Option<&Batch>,
    fixed: Option<&[f64]>,
) -> (f64, Vec<f64>) {
    let (x, seen) = (batch.unit(), frozen.unwrap_or(batch).unit());
    let tree_pairs = s.clone().with_pairs(PairSource::Tree);
    let pairs = oracle::tree_pairs(&batch.labels, &tree(), &tree_pairs);
    let half = s.similarity == Similarity::Half;
    let similarity = |g: f64| if half { (1.0 + g) / 2.0 } else { g };
    let plugin = NegScale::new(&tree(), s.clone()).unwrap();
    let unrelated = plugin.pairs(&batch.given().with_clean(confidence)).unwrap().unrelated;
    let p = unrelated.len() as f64;
    let mut local = 0.0;
    for &(i, j) in &unrelated {
        let g = similarity(inner(&x[i], &x[j]));
        let u = match s.local_shape {
            LocalShape::OneSided => (g - similarity(-1.0 / 9.0)).max(0.0),
            _ => g,
        };
        local += (1.0 - confidence[i]) * (1.0 - confidence[j]) * u * u;
    }
    local /= if s.local_divisor == LocalDivisor::Entries { p * p } else { p };
    let (mut dcsa, mut deltas) = (0.0, Vec::new());
    for (n, &(i, j)) in pairs.related.iter().enumerate() {
        deltas.push(fixed.map_or_else(|| delta(&seen, &batch.labels, s, (i, j)), |fixed| fixed[n]));
        // similarity of delta: both of its cosines are turned into similarities
        let gap = similarity(inner(&x[i], &x[j])) - (1.0 - similarity(deltas[n]));
        dcsa += gap.max(0.0).powi(2) / pairs.related.len() as f64;
    }
    (s.lambda * s.local * local + s.mu * dcsa, deltas)
}

#[test]
fn readings_and_forms_of_both_terms_equal_the_literal_formulas_and_their_differences() {
    let base = Settings::default().with_lambda(0.7).with_mu(1.3).with_global(0.0);
    let cases = [
        ("half", base.clone().with_similarity(Similarity::Half)),
        ("one-sided", base.clone().with_local_shape(LocalShape::OneSided)),
        (
            "one-sided, half",
            base.clone().with_local_shape(LocalShape::OneSided).with_similarity(Similarity::Half),
        ),
        ("entries", base.clone().with_local_divisor(LocalDivisor::Entries)),
        ("clean", base.clone().with_confidence(Confidence::Clean)),
        ("median", base.clone().with_delta_quantile(0.5)),
        ("quantile, no self", base.clone().with_delta_quantile(0.8).with_self_anchor(false)),
        ("quantile through delta", base.clone().with_delta_quantile(0.5).with_delta_gradient(true)),
        ("half through delta", base.clone().with_similarity(Similarity::Half).with_delta_gradient(true)),
        ("epoch", base.clone().with_delta_features(DeltaFeatures::Epoch)),
        ("random SNOP", base.clone().with_pairs(PairSource::Random)),
    ];
    for (what, s) in cases {
        for seed in 1..4 {
            let batch = batch(seed);
            let clean: Vec<f64> = batch.confidence.iter().map(|c| 1.0 - c * c).collect();
            let counted = if s.confidence == Confidence::Clean { &clean } else { &batch.confidence };
            let earlier = Batch { features: Batch::random(26, 6, 10, seed + 50).features, ..batch.clone() };
            let frozen = (s.delta_features == DeltaFeatures::Epoch).then_some(&earlier);
            let given = batch.given().with_clean(&clean).with_frozen(&earlier.features);
            let plugin = NegScale::new(&tree(), s.clone()).unwrap();
            let mut workspace = Workspace::new();
            let found = plugin.loss_and_gradient(&batch.features, 6, &given, &mut workspace).unwrap();
            let (value, deltas) = literal(&batch, &s, counted, frozen, None);
            assert!(
                value > 0.0 && (found.value - value).abs() < 1e-10,
                "{what}: {} for {value}",
                found.value
            );
            let fixed = (!s.delta_gradient).then_some(&deltas[..]);
            let numeric = differences(&batch.features, |features| {
                let moved = Batch { features: features.to_vec(), ..batch.clone() };
                literal(&moved, &s, counted, frozen, fixed).0
            });
            same_direction(found.gradient, &numeric, what);
        }
    }
}

#[test]
fn the_quantile_1_is_the_maximum_to_the_bit() {
    let (batch, plugin) =
        (batch(9), |tau| NegScale::new(&tree(), Settings::default().with_delta_quantile(tau)).unwrap());
    let value = |tau| {
        plugin(tau)
            .loss_and_gradient(&batch.features, 6, &batch.given(), &mut Workspace::new())
            .unwrap()
            .value
    };
    // Few samples of a class: the last place is the same for a share just below 1.
    assert_eq!(value(1.0), value(0.999));
    assert_ne!(value(1.0), value(0.3));
}

#[test]
fn ff_transposed_over_p_has_the_gradient_of_the_mean() {
    // |FF^T / P - I|^2 = |FF^T|^2 / P^2 - 2 + d and (|FF^T|^2 - P) / P^2 differ by a constant: trace of FF^T is P.
    let batch = batch(4);
    let s = Settings::default().with_dcsa(false).with_local(0.0);
    let plugin = NegScale::new(&tree(), s).unwrap();
    let p = plugin.pairs(&batch.given()).unwrap().unrelated.len() as f64;
    let reading = |features: &[f64]| {
        let x = Batch { features: features.to_vec(), ..batch.clone() }.unit();
        let mut s = [[0.0; 6]; 6];
        for (i, j) in plugin.pairs(&batch.given()).unwrap().unrelated {
            let v: Vec<f64> = x[i].iter().zip(&x[j]).map(|(a, b)| a - b).collect();
            let square = inner(&v, &v);
            (0..6).for_each(|r| (0..6).for_each(|c| s[r][c] += v[r] * v[c] / square));
        }
        (0..36).map(|at| (s[at / 6][at % 6] / p - (at / 6 == at % 6) as u8 as f64).powi(2)).sum::<f64>()
    };
    let mut workspace = Workspace::new();
    let found = plugin.loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace).unwrap();
    same_direction(found.gradient, &differences(&batch.features, reading), "FF^T / P");
}

/// The anchor's loss by its definition, after the batch has moved the means.
fn anchored(start: &Batch, batch: &Batch, clean: &[f64], momentum: f64) -> f64 {
    let mean_of = |from: &Batch, weights: &[f64], class: usize| {
        let rows =
            || from.features.chunks(6).zip(&from.labels).zip(weights).filter(|((_, l), _)| **l == class);
        let total: f64 = rows().map(|(_, w)| w).sum();
        (total > 0.0).then(|| {
            (0..6).map(|k| rows().map(|((f, _), w)| w * f[k]).sum::<f64>() / total).collect::<Vec<_>>()
        })
    };
    let ones = vec![1.0; start.labels.len()];
    let before: Vec<Option<Vec<f64>>> = (0..10).map(|c| mean_of(start, &ones, c)).collect();
    let after = before.iter().enumerate().map(|(c, old)| {
        let old = old.as_ref()?;
        let Some(new) = mean_of(batch, clean, c) else { return Some(old.clone()) };
        Some(old.iter().zip(&new).map(|(old, new)| momentum * old + (1.0 - momentum) * new).collect())
    });
    let after: Vec<Option<Vec<f64>>> = after.collect();
    let cosines = |means: &[Option<Vec<f64>>]| {
        let known: Vec<&Vec<f64>> = means.iter().flatten().collect();
        let centre: Vec<f64> =
            (0..6).map(|k| known.iter().map(|m| m[k]).sum::<f64>() / known.len() as f64).collect();
        let unit = |m: &Vec<f64>| {
            let z: Vec<f64> = m.iter().zip(&centre).map(|(m, c)| m - c).collect();
            let length = inner(&z, &z).sqrt();
            z.iter().map(|z| z / length).collect::<Vec<f64>>()
        };
        let pair = |a: usize, b: usize| Some(inner(&unit(means[a].as_ref()?), &unit(means[b].as_ref()?)));
        (0..100).map(|at| pair(at / 10, at % 10)).collect::<Vec<Option<f64>>>()
    };
    let (old, new) = (cosines(&before), cosines(&after));
    let unrelated = (0..100).filter(|at| at / 10 < at % 10 && tree().distance(at / 10, at % 10) > 5);
    let squares: Vec<f64> = unrelated.filter_map(|at| Some((new[at]? - old[at]?).powi(2))).collect();
    squares.iter().sum::<f64>() / squares.len() as f64
}

#[test]
fn the_anchor_equals_its_definition_and_central_differences_and_remembers() {
    for (seed, missing) in [(1, None), (2, Some(3)), (3, Some(9))] {
        let mut start = Batch::random(60, 6, 10, seed + 20);
        if let Some(missing) = missing {
            start.labels.iter_mut().filter(|l| **l == missing).for_each(|l| *l = 0);
        }
        let batch = batch(seed);
        let s =
            Settings::default().with_snop(false).with_dcsa(false).with_anchor(2.5).with_anchor_momentum(0.6);
        let plugin = NegScale::new(&tree(), s).unwrap();
        let clean: Vec<f64> = batch.confidence.iter().map(|c| c * c).collect();
        let mut workspace = Workspace::new();
        let anchor = ClassAnchor::remember(&start.features, 6, &start.labels, None, 10).unwrap();
        workspace.memory_mut().anchor = Some(anchor.clone());
        let given = batch.given().with_clean(&clean);
        let found = plugin.loss_and_gradient(&batch.features, 6, &given, &mut workspace).unwrap();
        let value = anchored(&start, &batch, &clean, 0.6);
        assert!((found.terms.anchor - value).abs() < 1e-12 && value > 0.0, "{} {value}", found.terms.anchor);
        assert!((found.value - 2.5 * value).abs() < 1e-12);
        let numeric = differences(&batch.features, |features| {
            2.5 * anchored(&start, &Batch { features: features.to_vec(), ..batch.clone() }, &clean, 0.6)
        });
        same_direction(found.gradient, &numeric, "anchor");
        let after = workspace.memory().anchor.as_ref().unwrap();
        assert_eq!(after.remembered(), anchor.remembered());
        assert_ne!(after.cosines(), anchor.cosines());
    }
}

#[test]
fn an_anchor_of_another_dimension_is_refused_and_one_that_is_not_there_adds_nothing() {
    let (batch, s) = (batch(1), Settings::default().with_anchor(1.0));
    let plugin = NegScale::new(&tree(), s.clone()).unwrap();
    let mut workspace = Workspace::new();
    let without = NegScale::new(&tree(), s.with_anchor(0.0)).unwrap();
    let value = |plugin: &NegScale, workspace: &mut Workspace<f64>| {
        plugin.loss_and_gradient(&batch.features, 6, &batch.given(), workspace).map(|found| found.value)
    };
    assert_eq!(value(&plugin, &mut workspace), value(&without, &mut Workspace::new()));
    workspace.memory_mut().anchor = Some(ClassAnchor::remember(&[1.0; 6], 3, &[0, 1], None, 10).unwrap());
    let problem = value(&plugin, &mut workspace).unwrap_err().to_string();
    assert!(problem.contains("dimension"), "{problem}");
}

#[test]
fn exclusion_equals_its_definition_and_central_differences() {
    let labels: Vec<usize> = (0..14).map(|i| i * 3 % 10).collect();
    let logits: Vec<f64> = (0..140).map(|i| ((i * 37 % 101) as f64 - 50.0) / 15.0).collect();
    let confidence = vec![0.5; 14];
    let given = BatchLabels::new(&labels, &confidence);
    let plugin = NegScale::new(&tree(), Settings::default().with_exclusion(1.7)).unwrap();
    for scale in [0.0, 1.0] {
        let errors: Vec<f64> = (0..14).map(|i| scale * i as f64 / 26.0).collect();
        let value = |logits: &[f64]| {
            let of_row = |((z, &y), &error): ((&[f64], &usize), &f64)| {
                let all: f64 = z.iter().map(|z| z.exp()).sum();
                let unrelated = (0..10).filter(|&c| tree().distance(y, c) > 5);
                let share = 1.0 - unrelated.map(|c| z[c].exp() / all).sum::<f64>();
                -((1.0 - error) * share + error * (1.0 - share)).ln()
            };
            1.7 * logits.chunks(10).zip(&labels).zip(&errors).map(of_row).sum::<f64>() / 14.0
        };
        let (found, gradient) = plugin.exclusion(&logits, &given, &errors).unwrap();
        assert!((found - value(&logits)).abs() < 1e-12);
        same_direction(&gradient, &differences(&logits, value), "exclusion");
    }
    assert!(plugin.exclusion(&logits, &given, &[0.6; 14]).unwrap_err().to_string().contains("0.6"));
    // Certain of an unrelated class, far beyond what exp can hold: finite, and pushed away from it.
    let far: Vec<f64> = (0..140).map(|i| if i % 10 == 0 { 2000.0 } else { 0.0 }).collect();
    let (value, gradient) = plugin.exclusion(&far, &given, &[0.0; 14]).unwrap();
    assert!(value.is_finite() && gradient.iter().all(|g| g.is_finite()) && gradient[10] > 0.0);
}

#[test]
fn a_balance_scales_value_and_gradient_to_a_share_of_the_hosts() {
    let (batch, base) = (batch(2), Settings::default().with_lambda(3.0));
    let plain = NegScale::new(&tree(), base.clone()).unwrap();
    let balanced = NegScale::new(&tree(), base.with_balance(0.25)).unwrap();
    let mut workspace = Workspace::new();
    let first = balanced.loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace).unwrap();
    assert!(first.value == 0.0 && first.gradient.iter().all(|g| *g == 0.0), "the host has not been heard");
    workspace.memory_mut().balance.hear(8.0);
    let found = balanced.loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace).unwrap();
    let length = inner(found.gradient, found.gradient).sqrt();
    assert!((length - 2.0).abs() < 1e-12, "{length}");
    let mut other = Workspace::new();
    let unscaled = plain.loss_and_gradient(&batch.features, 6, &batch.given(), &mut other).unwrap();
    assert!((found.value - found.terms.scale * unscaled.value).abs() < 1e-12 * found.value);
}

#[test]
fn what_a_setting_needs_and_the_batch_lacks_is_named() {
    let batch = batch(1);
    let cases = [
        (Settings::default().with_confidence(Confidence::Clean), "with_clean"),
        (Settings::default().with_delta_features(DeltaFeatures::Epoch), "with_frozen"),
    ];
    for (s, by) in cases {
        let plugin = NegScale::new(&tree(), s).unwrap();
        let problem =
            plugin.loss_and_gradient(&batch.features, 6, &batch.given(), &mut Workspace::new()).unwrap_err();
        assert!(problem.to_string().contains(by), "{problem}");
    }
    let gram = vec![0.0; 26 * 26];
    for s in [Settings::default().with_anchor(1.0), Settings::default().with_balance(0.1)] {
        let plugin = NegScale::new(&tree(), s).unwrap();
        let problem = plugin
            .loss_and_gradient_from_cosines(&gram, 6, &batch.given(), &mut Workspace::new())
            .unwrap_err();
        assert!(problem.to_string().contains("loss_and_gradient"), "{problem}");
    }
}

#[test]
fn the_memory_survives_saving() {
    let (batch, s) = (batch(3), Settings::default().with_anchor(1.0).with_balance(0.3));
    let plugin = NegScale::new(&tree(), s).unwrap();
    let mut workspace = Workspace::new();
    let anchor = ClassAnchor::remember(&batch.features, 6, &batch.labels, None, 10).unwrap();
    workspace.memory_mut().anchor = Some(anchor);
    workspace.memory_mut().balance.hear(1.5);
    plugin.loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace).unwrap();
    let text = serde_json::to_string(workspace.memory()).unwrap();
    let mut back = Workspace::new();
    *back.memory_mut() = serde_json::from_str(&text).unwrap();
    let next = |w: &mut Workspace<f64>| {
        plugin.loss_and_gradient(&batch.features, 6, &batch.given(), w).unwrap().gradient.to_vec()
    };
    assert_eq!(next(&mut workspace), next(&mut back));
}
