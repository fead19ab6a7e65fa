//! Reports on small data sets whose every fact is known.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_data::inspect::{Group, Options, Range, Report, ShapeCount, Shared, inspect, shared};
use negscale_data::{Dataset, Error, FeatureStore, Image, ImageStore, Items, Result, Shape};
use std::borrow::Cow;
use std::sync::Arc;

/// Pictures in memory; none where one cannot be decoded.
struct Pictures(Vec<(Option<Shape>, Vec<u8>)>);

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        let (shape, _) = &self.0[index];
        let shape = shape.ok_or_else(|| Error::format(format!("{index}.png"), None, "truncated"))?;
        Ok(Image { shape, pixels: vec![0; shape.len()] })
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.0[index].1))
    }
    fn origin(&self, index: usize) -> Option<String> {
        Some(format!("folder/{index}.png"))
    }
}

/// Rows in memory; an empty one cannot be read.
struct Vectors(usize, Vec<Vec<f32>>);

impl FeatureStore for Vectors {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn dim(&self) -> usize {
        self.0
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        if self.1[index].is_empty() {
            return Err(Error::format("rows.npy", format!("row {index}"), "cut off"));
        }
        out.copy_from_slice(&self.1[index]);
        Ok(())
    }
}

fn classes(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const GREY: Option<Shape> = Some(Shape { width: 4, height: 3, channels: 1 });
const COLOUR: Option<Shape> = Some(Shape { width: 2, height: 2, channels: 3 });

fn pictures() -> Dataset {
    let items = [(GREY, 1), (GREY, 2), (COLOUR, 1), (None, 3), (GREY, 2), (GREY, 1), (None, 4)];
    let store = Pictures(items.iter().map(|&(shape, byte)| (shape, vec![byte; 5])).collect());
    let given = vec![0, 1, 2, 0, 1, 0, 0];
    Dataset::new("seven", classes(&["cat", "dog", "fox", "owl"]), Items::Images(Arc::new(store)), given, None)
        .unwrap()
}

fn features(dim: usize, rows: Vec<Vec<f32>>) -> Dataset {
    let given = vec![0; rows.len()];
    Dataset::new("rows", classes(&["one"]), Items::Features(Arc::new(Vectors(dim, rows))), given, None)
        .unwrap()
}

fn look(dataset: &Dataset) -> Report {
    inspect(dataset, &Options::default())
}

#[test]
fn shapes_are_counted_with_the_most_frequent_first() {
    let images = look(&pictures()).images.unwrap();
    let [grey, colour] = [GREY.unwrap(), COLOUR.unwrap()];
    let count = |shape: Shape, count| ShapeCount {
        width: shape.width,
        height: shape.height,
        channels: shape.channels,
        count,
    };
    assert_eq!(images.shapes, [count(grey, 4), count(colour, 1)]);
    assert_eq!((images.readable, images.kinds), (5, 2));
}

#[test]
fn unreadable_pictures_are_findings_with_place_and_reason() {
    let unreadable = look(&pictures()).unreadable;
    assert_eq!(unreadable.count, 2);
    assert_eq!(unreadable.first.iter().map(|failure| failure.index).collect::<Vec<_>>(), [3, 6]);
    assert_eq!(unreadable.first[0].origin.as_deref(), Some("folder/3.png"));
    assert!(unreadable.first[1].reason.contains("truncated"));
}

#[test]
fn equal_bytes_are_duplicates_and_those_with_differing_labels_come_first() {
    let duplicates = look(&pictures()).duplicates.unwrap();
    assert_eq!((duplicates.groups, duplicates.items, duplicates.contradicting), (2, 5, 1));
    let expected = [
        Group { size: 3, indices: vec![0, 2, 5], labels: vec![0, 2, 0], contradicting: true },
        Group { size: 2, indices: vec![1, 4], labels: vec![1, 1], contradicting: false },
    ];
    assert_eq!(duplicates.first, expected);
}

#[test]
fn all_findings_are_counted_and_only_as_many_told_as_asked_for() {
    let report = inspect(&pictures(), &Options { examples: 1, items: true });
    assert_eq!((report.unreadable.count, report.unreadable.first.len()), (2, 1));
    let duplicates = report.duplicates.unwrap();
    assert_eq!((duplicates.groups, duplicates.first.len()), (2, 1));
    assert_eq!((duplicates.first[0].size, duplicates.first[0].indices.len()), (3, 1));
    let report = inspect(&pictures(), &Options { examples: 1, items: false });
    assert!(report.images.is_none() && report.duplicates.is_none() && report.labels.classes.len() == 4);
}

#[test]
fn classes_are_counted_and_unused_ones_named() {
    let report = look(&pictures());
    assert_eq!(report.labels.classes.iter().map(|class| class.given).collect::<Vec<_>>(), [4, 2, 1, 0]);
    assert_eq!((report.labels.lowest, report.labels.highest), (Some(0), Some(2)));
    assert_eq!(report.labels.unused, [3]);
    let text = report.to_string();
    assert!(text.contains("1 class without items: owl"), "{text}");
    assert!(text.contains(&"#".repeat(30)), "{text}");
}

#[test]
fn noise_is_counted_by_true_and_given_label() {
    let clean = features(1, (0..6).map(|i| vec![i as f32]).collect());
    let store = clean.items().clone();
    let truth = Some(vec![0, 0, 0, 0, 1, 1]);
    let noisy =
        Dataset::new("noisy", classes(&["a", "b", "c"]), store, vec![0, 1, 1, 2, 1, 0], truth).unwrap();
    let report = look(&noisy);
    let noise = report.noise.as_ref().unwrap();
    assert_eq!(noise.counts, Some(vec![vec![1, 2, 1], vec![1, 1, 0], vec![0, 0, 0]]));
    assert_eq!((noise.wrong, noise.rate), (4, 4.0 / 6.0));
    assert_eq!(noise.rates, [Some(0.75), Some(0.5), None]);
    let first = noise.confusions[0];
    assert_eq!((first.truth, first.given, first.count), (0, 1, 2));
    assert_eq!(report.labels.classes[0].truth, Some(4));
    let text = report.to_string();
    assert!(text.contains("66.67 %") && text.contains("a -> b"), "{text}");
}

#[test]
fn columns_are_summed_up_over_finite_rows_and_others_told() {
    let rows = vec![
        vec![1.0, 7.0],
        vec![f32::NAN, 7.0],
        vec![3.0, 7.0],
        vec![f32::INFINITY, 7.0],
        vec![],
        vec![5.0, 7.0],
        vec![1.0, 7.0],
    ];
    let report = look(&features(2, rows));
    let features = report.features.as_ref().unwrap();
    assert_eq!((features.finite, features.nan, features.infinite), (4, 1, 1));
    assert_eq!(features.not_finite, [1, 3]);
    assert_eq!((features.constant, &features.constant_first[..]), (1, &[1][..]));
    assert_eq!(features.values, Some(Range { low: 1.0, high: 7.0 }));
    assert_eq!(features.means, Some(Range { low: 2.5, high: 7.0 }));
    let deviations = features.deviations.unwrap();
    // (1.5^2 + 0.5^2 + 2.5^2 + 1.5^2)/4
    assert!((deviations.high - 2.75f64.sqrt()).abs() < 1e-12 && deviations.low == 0.0);
    assert_eq!((report.unreadable.count, report.unreadable.first[0].index), (1, 4));
    assert_eq!(report.duplicates.unwrap().first[0].indices, [0, 6]);
}

#[test]
fn many_blocks_give_the_moments_of_the_whole_whatever_the_number_of_threads() {
    let rows: Vec<Vec<f32>> = (0..5000u32)
        .map(|i| (0..3).map(|j| 1000.0 + ((i * 7919 + j * 104_729) % 1009) as f32).collect())
        .collect();
    let dataset = features(3, rows.clone());
    let with = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| look(&dataset))
    };
    let report = with(1);
    assert_eq!(report, with(3));
    let mean = |j: usize| rows.iter().map(|row| f64::from(row[j])).sum::<f64>() / 5000.0;
    let deviation = |j: usize| {
        (rows.iter().map(|row| (f64::from(row[j]) - mean(j)).powi(2)).sum::<f64>() / 5000.0).sqrt()
    };
    let features = report.features.unwrap();
    let close = |range: Range, of: &dyn Fn(usize) -> f64| {
        let all = [of(0), of(1), of(2)];
        let (low, high) =
            (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(f64::MIN, f64::max));
        assert!((range.low - low).abs() < 1e-8 && (range.high - high).abs() < 1e-8, "{range:?} {all:?}");
    };
    close(features.means.unwrap(), &mean);
    close(features.deviations.unwrap(), &deviation);
}

#[test]
fn items_that_are_in_both_parts_are_found_with_those_of_other_labels_first() {
    let part = |rows: &[f32], given: Vec<u32>| {
        let rows = rows.iter().map(|&x| if x.is_nan() { vec![] } else { vec![x, 0.5] }).collect();
        Dataset::new("d", classes(&["a", "b"]), Items::Features(Arc::new(Vectors(2, rows))), given, None)
            .unwrap()
    };
    let train = part(&[1.0, 2.0, 3.0, 1.0, f32::NAN], vec![0, 1, 0, 0, 1]);
    let test = part(&[9.0, 1.0, 2.0, f32::NAN], vec![0, 0, 0, 1]);
    assert_eq!(shared(&train, &test, 5), Shared { items: 2, contradicting: 1, first: vec![(1, 2), (0, 1)] });
    assert_eq!(shared(&train, &test, 1).first, [(1, 2)]);
    assert_eq!(shared(&pictures(), &pictures(), 0).items, pictures().len());
    assert_eq!(shared(&train, &part(&[4.0], vec![1]), 5), Shared::default());
}

#[test]
fn a_data_set_without_items_has_a_report() {
    let none = Dataset::new("none", vec![], Items::Images(Arc::new(Pictures(vec![]))), vec![], Some(vec![]))
        .unwrap();
    let report = look(&none);
    assert_eq!((report.items, report.labels.lowest), (0, None));
    assert!(report.to_string().contains("none: 0 items, 0 classes"));
    assert!(look(&features(4, vec![])).features.unwrap().means.is_none());
}

#[test]
fn names_of_others_cannot_steer_the_terminal_and_long_ones_are_cut() {
    let long = "x".repeat(500);
    let items = Items::Images(Arc::new(Pictures(vec![(GREY, vec![1])])));
    let names = classes(&["\u{1b}[31mred\nnext", &long]);
    let text = look(&Dataset::new("n\u{7}", names, items, vec![0], None).unwrap()).to_string();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() < 120), "{text}");
}

#[test]
fn lines_of_the_class_table_are_aligned() {
    let report = look(&pictures());
    let text = report.to_string();
    let ends: Vec<usize> =
        text.lines().filter(|line| line.contains(" %")).map(|line| line.find(" %").unwrap()).collect();
    assert!(ends.len() == 4 && ends.iter().all(|end| *end == ends[0]), "{text}");
}

#[test]
fn a_report_serialises_with_its_numbers() {
    let json = serde_json::to_value(look(&pictures())).unwrap();
    assert_eq!(json["items"], 7);
    assert_eq!(json["labels"]["classes"][0]["given"], 4);
    assert_eq!(json["duplicates"]["contradicting"], 1);
    assert_eq!(json["unreadable"]["first"][0]["index"], 3);
    assert!(json["noise"].is_null());
}
