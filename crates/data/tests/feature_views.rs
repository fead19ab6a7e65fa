//! Views of feature vectors, through the loader.

#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

use negscale_data::loader::{Loader, LoaderSettings, Order};
use negscale_data::views::{FeatureSettings, Moments};
use negscale_data::{Dataset, FeatureStore, Items, Result};
use std::sync::Arc;

/// Features whose means and deviations are known: item i has feature j = j + (j + 1) (+1 or -1).
struct Vectors(usize);

impl FeatureStore for Vectors {
    fn len(&self) -> usize {
        self.0
    }
    fn dim(&self) -> usize {
        5
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let sign = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
        out.iter_mut().enumerate().for_each(|(j, x)| *x = j as f32 + sign * (j + 1) as f32);
        Ok(())
    }
}

#[test]
fn feature_views_have_the_jitter_and_the_dropout_asked_for() {
    let n = 20_000;
    let store = Arc::new(Vectors(n));
    let moments = Moments::measure(&*store).unwrap();
    let close = |a: &[f32], b: [f32; 5]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(
        close(&moments.mean, [0.0, 1.0, 2.0, 3.0, 4.0]) && close(&moments.std, [1.0, 2.0, 3.0, 4.0, 5.0])
    );
    let dataset =
        Dataset::new("vectors", vec!["a".into()], Items::Features(store), vec![0; n], None).unwrap();
    let views = ["plain", "jitter:0.2", "dropout:0.3", "jitter:0.2+dropout:0.3", "identity"];
    let settings = |views: &[&str]| LoaderSettings {
        views: views.iter().map(|view| view.parse().unwrap()).collect(),
        batch: 1000,
        threads: 2,
        ..Default::default()
    };
    for standardise in [false, true] {
        let features = FeatureSettings { standardise, ..FeatureSettings::new(moments.clone()) };
        let loader = Loader::of_features(&dataset, features, settings(&views)).unwrap();
        let batches: Vec<_> =
            loader.epoch(0, &Order::Sequential).unwrap().map(|batch| batch.unwrap().views.clone()).collect();
        for j in 0..5 {
            let column = |view: usize| batches.iter().flat_map(move |b| b[view].iter().skip(j).step_by(5));
            let (mean, std) =
                if standardise { (0.0, 1.0) } else { (moments.mean[j] as f64, moments.std[j] as f64) };
            assert!(column(0).eq(column(4)), "plain and identity are the same");
            let n = n as f64;
            let (mut sum, mut square) = (0.0, 0.0);
            for (plain, shown) in column(0).zip(column(1)) {
                let noise = (*shown as f64 - *plain as f64) / (0.2 * std);
                (sum, square) = (sum + noise, square + noise * noise);
            }
            assert!((sum / n).abs() < 4.0 / n.sqrt(), "feature {j}: jitter has mean {}", sum / n);
            assert!((square / n - 1.0).abs() < 4.0 * (2.0 / n).sqrt(), "feature {j}: {}", square / n);
            for view in [2, 3] {
                let dropped = column(view).filter(|&&x| (x as f64 - mean).abs() < 1e-6).count() as f64;
                let rate = dropped / n;
                assert!((rate - 0.3).abs() < 4.0 * (0.21 / n).sqrt(), "feature {j}, view {view}: {rate}");
            }
            assert!(column(0).zip(column(2)).all(|(p, x)| p == x || (*x as f64 - mean).abs() < 1e-6));
        }
    }
    // Weak and strong are the settings' own; pictures' views are refused.
    let of = |views: &[&str]| {
        Loader::of_features(&dataset, FeatureSettings::new(moments.clone()), settings(views))
    };
    assert!(of(&["weak", "strong"]).is_ok());
    assert!(of(&["autoaugment"]).err().unwrap().to_string().contains("for pictures"));
}

/// One vector with a number that is none.
struct Broken;

impl FeatureStore for Broken {
    fn len(&self) -> usize {
        3
    }
    fn dim(&self) -> usize {
        2
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        out.copy_from_slice(&[7.0, if index == 2 { f32::NAN } else { 1.0 }]);
        Ok(())
    }
}

#[test]
fn a_feature_that_is_no_number_is_named_and_moments_must_fit_the_data() {
    let message = Moments::measure(&Broken).unwrap_err().to_string();
    assert!(message.contains("feature 1 of item 2"), "{message}");
    let dataset =
        Dataset::new("two", vec!["a".into()], Items::Features(Arc::new(Broken)), vec![0; 3], None).unwrap();
    for (mean, std) in [(vec![0.0; 3], vec![1.0; 3]), (vec![0.0; 2], vec![0.0; 2]), (vec![0.0; 2], vec![1.0])]
    {
        let features = FeatureSettings::new(Moments { mean, std });
        assert!(Loader::of_features(&dataset, features, LoaderSettings::default()).is_err());
    }
}
