//! Views as a whole: what they are made of, how they are drawn, and that nothing breaks them.

#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

use negscale_data::draw::{Draw, Purpose};
use negscale_data::views::{
    Cutout, Edge, ImageSettings, ImageViews, Normalise, Operation, Picture, Scratch, stream,
};
use negscale_data::{Shape, View};
use proptest::prelude::*;
use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

fn noise(shape: Shape) -> Vec<u8> {
    let mut draw = Draw::new(8, Purpose::Noise, 0, 0);
    (0..shape.len()).map(|_| draw.bits() as u8).collect()
}

fn views(shape: Shape) -> ImageViews {
    ImageSettings::new(shape, Normalise::none(shape.channels)).checked().unwrap()
}

const COLOUR: Shape = Shape { width: 32, height: 32, channels: 3 };

#[test]
fn a_strong_view_is_three_operations_a_cutout_and_a_weak_view() {
    let pixels = noise(COLOUR);
    let picture = Picture::new(COLOUR, &pixels).unwrap();
    let views = views(COLOUR);
    let (mut whole, mut step, mut last) = (Scratch::new(), Scratch::new(), Scratch::new());
    for sample in 0..200 {
        let strong = views.apply(View::Strong, picture, &mut stream(1, 2, sample, 0, 0), &mut whole).unwrap();
        let mut draw = stream(1, 2, sample, 0, 0);
        step.load(picture);
        (0..3).for_each(|_| Operation::draw(&mut draw).apply(&mut step, Edge::STRONG));
        Cutout::draw(COLOUR, &mut draw).apply(&mut step);
        let weak = views.apply(View::Weak, step.picture(), &mut draw, &mut last).unwrap();
        assert_eq!(strong.pixels(), weak.pixels(), "sample {sample}");
    }
}

#[test]
fn the_fourteen_operations_come_equally_often_with_values_over_their_whole_ranges() {
    let n = 140_000;
    let mut draw = Draw::new(3, Purpose::View, 0, 0);
    let mut kinds: Vec<(Discriminant<Operation>, u32, f64, f64, f64)> = Vec::new();
    for _ in 0..n {
        let operation = Operation::draw(&mut draw);
        let value = match operation {
            Operation::Brightness(v)
            | Operation::Colour(v)
            | Operation::Contrast(v)
            | Operation::Sharpness(v) => (v - 0.05) / 0.9,
            Operation::Posterize(bits) => (bits - 4) as f64 / 3.0,
            Operation::Solarize(v) => v / 256.0,
            Operation::Rotate(v) => (v + 30.0) / 60.0,
            Operation::ShearX(v)
            | Operation::ShearY(v)
            | Operation::TranslateX(v)
            | Operation::TranslateY(v) => (v + 0.3) / 0.6,
            _ => 0.5,
        };
        let kind = discriminant(&operation);
        match kinds.iter_mut().find(|known| known.0 == kind) {
            Some((_, count, low, high, sum)) => {
                (*count, *low, *high, *sum) = (*count + 1, low.min(value), high.max(value), *sum + value);
            }
            None => kinds.push((kind, 1, value, value, value)),
        }
    }
    assert_eq!(kinds.len(), 14);
    let expected = n as f64 / 14.0;
    for (kind, count, low, high, sum) in kinds {
        let deviation = (expected * (13.0 / 14.0)).sqrt();
        assert!((count as f64 - expected).abs() < 4.0 * deviation, "{kind:?} came {count} times");
        assert!((low, high) == (0.5, 0.5) || (low < 0.01 && high > 0.99), "{kind:?}: {low} to {high}");
        assert!(low >= 0.0 && high <= 1.0 + 1e-12);
        // A uniform number over 4 levels has the larger variance, 5/36; its bound serves for all.
        assert!((sum / count as f64 - 0.5).abs() < 4.0 * (5.0 / 36.0 / count as f64).sqrt(), "{kind:?}");
    }
}

#[test]
fn views_depend_on_each_of_seed_epoch_sample_and_number_and_on_nothing_else() {
    let pixels = noise(COLOUR);
    let picture = Picture::new(COLOUR, &pixels).unwrap();
    let views = views(COLOUR);
    let mut scratch = Scratch::new();
    let mut make = |seed, epoch, sample, which, again| {
        let mut draw = stream(seed, epoch, sample, which, again);
        views.apply(View::Strong, picture, &mut draw, &mut scratch).unwrap().pixels().to_vec()
    };
    let base = make(1, 2, 3, 0, 0);
    let others = [
        make(9, 2, 3, 0, 0),
        make(1, 9, 3, 0, 0),
        make(1, 2, 9, 0, 0),
        make(1, 2, 3, 1, 0),
        make(1, 2, 3, 0, 1),
    ];
    assert!(others.iter().all(|other| *other != base));
    assert_eq!(make(1, 2, 3, 0, 0), base, "whatever was made in between");
}

#[test]
fn a_picture_is_never_mirrored_when_the_setting_says_so() {
    let shape = Shape { width: 8, height: 1, channels: 1 };
    let pixels: Vec<u8> = (1..=8).collect();
    let picture = Picture::new(shape, &pixels).unwrap();
    let settings = ImageSettings::new(shape, Normalise::none(1));
    let mut mirrored = [0, 0];
    for (at, flip) in [true, false].into_iter().enumerate() {
        let views = ImageSettings { flip, ..settings.clone() }.checked().unwrap();
        let mut scratch = Scratch::new();
        for sample in 0..200 {
            let view =
                views.apply(View::Weak, picture, &mut stream(1, 0, sample, 0, 0), &mut scratch).unwrap();
            mirrored[at] += u32::from(view.pixels()[3] > view.pixels()[4]);
        }
    }
    assert!((60..140).contains(&mirrored[0]), "{mirrored:?}");
    assert_eq!(mirrored[1], 0);
}

#[test]
fn no_memory_is_taken_once_the_first_views_are_made() {
    let pixels = noise(COLOUR);
    let picture = Picture::new(COLOUR, &pixels).unwrap();
    let views = views(COLOUR);
    let mut scratch = Scratch::new();
    let mut places = HashSet::new();
    for sample in 0..500 {
        for view in [View::Weak, View::Strong, View::AutoAugment] {
            let shown = views.apply(view, picture, &mut stream(1, 0, sample, 0, 0), &mut scratch).unwrap();
            places.insert(shown.pixels().as_ptr());
        }
    }
    assert_eq!(places.len(), 2, "two pictures' memory, in turns");
}

#[test]
fn pictures_of_another_size_are_refused() {
    let views = views(COLOUR);
    let pixels = noise(COLOUR);
    let mut scratch = Scratch::new();
    let small = Picture::new(Shape { width: 16, ..COLOUR }, &pixels[..COLOUR.len() / 2]).unwrap();
    assert!(views.apply(View::Weak, small, &mut stream(1, 0, 0, 0, 0), &mut scratch).is_err());
    assert!(Picture::new(COLOUR, &pixels[1..]).is_err());
    let border = ImageSettings { border: Some((33, 4)), ..ImageSettings::new(COLOUR, Normalise::none(3)) };
    assert!(border.checked().unwrap_err().to_string().contains("must not exceed"));
}

proptest! {
    #[test]
    fn any_picture_any_view_and_any_value_give_a_picture(
        width in 1usize..40, height in 1usize..40, grey: bool, sample: u64, v in prop::num::f64::ANY, w in prop::num::f64::ANY,
    ) {
        let shape = Shape { width, height, channels: if grey { 1 } else { 3 } };
        let pixels = noise(shape);
        let picture = Picture::new(shape, &pixels).unwrap();
        let mut scratch = Scratch::new();
        for view in [View::Plain, View::Weak, View::Strong, View::AutoAugment] {
            let mut draw = stream(0, 0, sample, 0, 0);
            let shown = views(shape).apply(view, picture, &mut draw, &mut scratch).unwrap();
            prop_assert_eq!(shown.pixels().len(), shape.len());
        }
        for operation in [
            Operation::Brightness(v), Operation::Colour(v), Operation::Contrast(v), Operation::Sharpness(v),
            Operation::Solarize(v), Operation::Rotate(v), Operation::ShearX(v), Operation::ShearY(v),
            Operation::TranslateX(v), Operation::TranslateY(v), Operation::Posterize(v as u8),
        ] {
            for edge in [Edge::STRONG, Edge::AUTOAUGMENT] {
                operation.apply(&mut scratch, edge);
            }
        }
        Cutout { side: v, x: w, y: v }.apply(&mut scratch);
        Cutout { side: w, x: width as f64, y: height as f64 }.apply(&mut scratch);
        prop_assert_eq!(scratch.picture().pixels().len(), shape.len());
    }
}
