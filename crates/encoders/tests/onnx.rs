//! Networks in ONNX files: small ones against PyTorch, and what cannot be used.
#![cfg(feature = "onnx")]
#![allow(clippy::unwrap_used)]

mod small;

use negscale_encoders::{Encoder, OnnxPictures, OnnxSettings, OnnxTexts, Picture};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// What PyTorch says.
fn wanted(output: &str) -> Vec<f64> {
    let all: serde_json::Value = serde_json::from_str(include_str!("golden/onnx.json")).unwrap();
    all[output].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn assert_near(found: &[f32], wanted: &[f64]) {
    let length = wanted.iter().map(|x| x * x).sum::<f64>().sqrt();
    let error = found.iter().zip(wanted).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum::<f64>().sqrt();
    assert!(found.len() == wanted.len() && error < 1e-5 * length, "{found:?} {wanted:?}");
}

fn pixels(seed: usize, count: usize) -> Vec<u8> {
    (0..count).map(|n| ((n + seed) * 7 % 256) as u8).collect()
}

fn encode<Item>(encoder: &impl Encoder<Item>, items: &[Item]) -> Vec<f32> {
    let mut rows = vec![f32::NAN; items.len() * encoder.width()];
    encoder.encode(items, &mut rows).unwrap();
    rows
}

/// `tokens.onnx` with a tokeniser beside it.
fn folder_of_texts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(golden("tokens.onnx"), folder.path().join("tokens.onnx")).unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), small::tokenizer().to_string()).unwrap();
    folder
}

#[test]
fn a_picture_has_the_row_that_pytorch_gives_it() {
    let pixels = pixels(0, 8 * 10 * 3);
    let picture = Picture { pixels: &pixels, width: 10, height: 8 };
    // The last output that is a row by itself, and a mean over pixels where it is asked for.
    for (output, row) in [(None, "features"), (Some("features"), "features"), (Some("map"), "map")] {
        let settings = OnnxSettings { output: output.map(str::to_owned), ..OnnxSettings::default() };
        let encoder = OnnxPictures::open(&golden("pictures.onnx"), &settings).unwrap();
        assert_eq!(encoder.name(), "pictures");
        assert_near(&encode(&encoder, &[picture]), &wanted(row));
    }
}

#[test]
fn a_text_has_the_mean_of_the_rows_that_pytorch_gives_its_tokens() {
    let folder = folder_of_texts();
    let settings = OnnxSettings { most_tokens: 6, ..OnnxSettings::default() };
    let encoder = OnnxTexts::open(&folder.path().join("tokens.onnx"), &settings).unwrap();
    assert_near(&encode(&encoder, &["red ab!"]), &wanted("states"));
    assert_near(&encode(&encoder, &["red ab! broke"]), &wanted("states"));
    assert_eq!(encoder.truncated(), 1);
    assert_eq!(encode(&encoder, &["", "\u{0}", "é"]).len(), 12);
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_with_any_number_of_threads() {
    let all: Vec<Vec<u8>> = (0..20).map(|n| pixels(n, (n + 1) * 12 * 3)).collect();
    let items: Vec<Picture> =
        all.iter().enumerate().map(|(n, pixels)| Picture { pixels, width: 12, height: n + 1 }).collect();
    let mut found = Vec::new();
    for (threads, company) in [(1, 1), (1, 20), (3, 7), (4, 20)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let rows: Vec<f32> = pool.install(|| {
            let encoder = OnnxPictures::open(&golden("pictures.onnx"), &OnnxSettings::default()).unwrap();
            items.chunks(company).flat_map(|some| encode(&encoder, some)).collect()
        });
        found.push(rows);
    }
    assert!(found.iter().all(|rows| *rows == found[0]));
}

#[test]
fn an_item_that_is_no_picture_is_named() {
    let encoder = OnnxPictures::open(&golden("pictures.onnx"), &OnnxSettings::default()).unwrap();
    let good = Picture { pixels: &[1; 12], width: 2, height: 2 };
    for (width, height) in [(2, 3), (0, 0), (usize::MAX, 2)] {
        let bad = Picture { pixels: &good.pixels[..if width == 0 { 0 } else { 12 }], width, height };
        let error = encoder.encode(&[good, bad], &mut [0.0; 10]).unwrap_err().to_string();
        assert!(error.starts_with("item 1 cannot be encoded: ") && error.contains("no picture"), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_told_why() {
    let texts = folder_of_texts();
    let (picture_file, text_file) = (golden("pictures.onnx"), texts.path().join("tokens.onnx"));
    let pictures =
        |path: &Path, settings: OnnxSettings| OnnxPictures::open(path, &settings).err().unwrap().to_string();
    let of_texts =
        |path: &Path, settings: OnnxSettings| OnnxTexts::open(path, &settings).err().unwrap().to_string();
    let settings = OnnxSettings::default;
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(texts.path().join(name), bytes).unwrap();
        texts.path().join(name)
    };
    for (found, wanted) in [
        (
            pictures(&golden("absent.onnx"), settings()),
            "it should be an .onnx file as torch.onnx.export writes it",
        ),
        (pictures(&write("picture.png", b"\x89PNG"), settings()), "it should be an .onnx file"),
        (pictures(&write("odd.onnx", b"no network"), settings()), "it should be an .onnx file"),
        (pictures(&write("empty.onnx", b""), settings()), "cannot be used as an encoder"),
        (
            pictures(&text_file, settings()),
            "it takes input_ids, attention_mask, but a network for pictures takes one input",
        ),
        (
            of_texts(&picture_file, settings()),
            "it takes an input pixels, but only input_ids, attention_mask, token_type_ids are known",
        ),
        (
            pictures(&picture_file, OnnxSettings { size: Some([9, 9]), ..settings() }),
            "it takes pictures of 8 x 10 pixels and no others",
        ),
        (
            pictures(&picture_file, OnnxSettings { deviation: [1.0, 0.0, 1.0], ..settings() }),
            "deviations larger than 0",
        ),
        (
            pictures(&picture_file, OnnxSettings { output: Some("logits".into()), ..settings() }),
            "it has no output logits; it has features, map",
        ),
        (of_texts(&text_file, OnnxSettings { most_tokens: 2, ..settings() }), "an empty text has 2 tokens"),
        (of_texts(&golden("tokens.onnx"), settings()), "tokenizer.json cannot be used as an encoder"),
    ] {
        assert!(found.contains(wanted), "{found:?} should say {wanted:?}");
    }
}

#[test]
fn a_file_cut_anywhere_or_with_a_bit_changed_is_an_error_or_an_encoder_but_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.onnx");
    let whole = std::fs::read(golden("pictures.onnx")).unwrap();
    let pixels = pixels(0, 8 * 10 * 3);
    for n in 0..400 {
        let at = n * whole.len() / 400;
        let mut changed = whole.clone();
        changed[at] ^= 1 << (n % 8);
        for bytes in [&whole[..at], &changed] {
            std::fs::write(&path, bytes).unwrap();
            if let Ok(encoder) = OnnxPictures::open(&path, &OnnxSettings::default()) {
                let mut row = vec![0.0; encoder.width()];
                // A changed number is another network, or one that gives no number.
                let _ = encoder.encode(&[Picture { pixels: &pixels, width: 10, height: 8 }], &mut row);
            }
        }
    }
}
