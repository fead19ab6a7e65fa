//! Every operation against Pillow's own results, byte by byte. `tests/golden/views.py` wrote them and says how to write more;
//! NEGSCALE_GOLDEN_VIEWS names a folder with others than the stored ones.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot go on has failed

use negscale_data::views::{Cutout, Edge, Fit, Operation, Picture, Scratch, convert, fit};
use negscale_data::{Image, Shape};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

fn shape(value: &Value) -> Shape {
    let side = |at: usize| value[at].as_u64().unwrap() as usize;
    Shape { width: side(0), height: side(1), channels: side(2) }
}

fn operation(name: &str, values: &[f64]) -> Operation {
    match name {
        "identity" => Operation::Identity,
        "autocontrast" => Operation::Autocontrast,
        "equalize" => Operation::Equalize,
        "invert" => Operation::Invert,
        "brightness" => Operation::Brightness(values[0]),
        "colour" => Operation::Colour(values[0]),
        "contrast" => Operation::Contrast(values[0]),
        "sharpness" => Operation::Sharpness(values[0]),
        "posterize" => Operation::Posterize(values[0] as u8),
        "solarize" => Operation::Solarize(values[0]),
        "rotate" => Operation::Rotate(values[0]),
        "shear-x" => Operation::ShearX(values[0]),
        "shear-y" => Operation::ShearY(values[0]),
        "translate-x" => Operation::TranslateX(values[0]),
        "translate-y" => Operation::TranslateY(values[0]),
        other => panic!("no operation {other}"),
    }
}

/// What we make of a picture.
fn ours(image: &Image, name: &str, values: &[f64], edge: &str, scratch: &mut Scratch) -> Vec<u8> {
    match name {
        "cover" | "stretch" => {
            let how = if name == "cover" { Fit::Cover } else { Fit::Stretch };
            let (width, height) = (values[0] as usize, values[1] as usize);
            fit(image.clone(), Shape { width, height, ..image.shape }, how).unwrap().pixels
        }
        "to-grey" => convert(image.clone(), 1).unwrap().pixels,
        _ => {
            scratch.load(Picture::try_from(image).unwrap());
            if name == "cutout" {
                Cutout { side: values[0], x: values[1], y: values[2] }.apply(scratch);
            } else {
                let edge = if edge == "strong" { Edge::STRONG } else { Edge::AUTOAUGMENT };
                operation(name, values).apply(scratch, edge);
            }
            scratch.picture().pixels().to_vec()
        }
    }
}

#[test]
fn every_operation_equals_pillow_byte_for_byte() {
    let folder = std::env::var_os("NEGSCALE_GOLDEN_VIEWS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    // A map in the file's order is not to be had, but offsets follow from the order of the text.
    let text = std::fs::read_to_string(folder.join("views.json")).unwrap();
    let head: Value = serde_json::from_str(&text).unwrap();
    let bytes = std::fs::read(folder.join("views.bin")).unwrap();
    let mut rest = &bytes[..];
    let mut take = |length: usize| {
        let (taken, after) = rest.split_at(length);
        rest = after;
        taken
    };
    let mut names: Vec<&String> = head["pictures"].as_object().unwrap().keys().collect();
    names.sort_by_key(|name| text.find(&format!("\"{name}\"")));
    let images: HashMap<&str, Image> = names
        .into_iter()
        .map(|name| {
            let shape = shape(&head["pictures"][name]);
            (name.as_str(), Image { shape, pixels: take(shape.len()).to_vec() })
        })
        .collect();

    let mut scratch = Scratch::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in head["cases"].as_array().unwrap() {
        let [picture, name, edge] = [0, 1, 3].map(|at| case[at].as_str().unwrap());
        let values: Vec<f64> =
            case[2].as_array().unwrap().iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect();
        let made = ours(&images[picture], name, &values, edge, &mut scratch);
        let differing = made.iter().zip(take(made.len())).filter(|(a, b)| a != b).count();
        if differing > 0 {
            wrong.push(format!("{picture} {name} {values:?} {edge}: {differing} of {} values", made.len()));
        }
        *seen.entry(name).or_default() += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} cases differ, among them {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
    assert!(rest.is_empty(), "{} bytes are left over", rest.len());
    if std::env::var_os("NEGSCALE_GOLDEN_VIEWS").is_none() {
        assert_eq!(
            seen.len(),
            18,
            "14 operations and invert, less identity; Cutout, cover, stretch, grey: {seen:?}"
        );
    }
}
