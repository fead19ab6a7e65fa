//! Sentence embeddings: a small network against plain f64 loops, MiniLM against Python, and what must not matter.
#![allow(clippy::unwrap_used)]

mod small;

use negscale_data::real_data::real;
use negscale_encoders::{Encoder, Precision, TextEncoder};
use proptest::prelude::*;
use std::path::Path;

fn encode(encoder: &TextEncoder, texts: &[&str]) -> Vec<f32> {
    let mut rows = vec![f32::NAN; texts.len() * Encoder::<&str>::width(encoder)];
    encoder.encode(texts, &mut rows).unwrap();
    rows
}

/// The length of the difference; rows have length 1.
fn distance(found: &[f32], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum::<f64>().sqrt()
}

/// Texts and their ids, by hand.
const TEXTS: [(&str, &[usize]); 6] = [
    ("", &[2, 3]),
    ("Red ab!", &[2, 7, 4, 5, 6, 3]),
    ("bluish works", &[2, 1, 11, 3]),
    ("BLUEISH\u{0} broke, zebra", &[2, 8, 9, 10, 1, 1, 3]),
    ("  \n\t", &[2, 3]),
    (
        "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        &[2, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 3],
    ),
];

#[test]
fn a_small_network_computes_what_the_paper_says() {
    let folder = tempfile::tempdir().unwrap();
    small::write(folder.path());
    let tensors = small::tensors();
    for (pooling, first_only) in [("mean_tokens", false), ("cls_token", true)] {
        std::fs::create_dir_all(folder.path().join("1_Pooling")).unwrap();
        let modes = format!("{{\"pooling_mode_{pooling}\": true}}");
        std::fs::write(folder.path().join("1_Pooling/config.json"), modes).unwrap();
        for (precision, bound) in [(Precision::F32, 2e-6), (Precision::Bf16, 2e-2)] {
            let encoder = TextEncoder::open(folder.path(), precision).unwrap();
            let rows = encode(&encoder, &TEXTS.map(|(text, _)| text));
            for ((text, ids), row) in TEXTS.iter().zip(rows.chunks(small::WIDTH)) {
                let error = distance(row, &small::oracle(&tensors, ids, first_only));
                assert!(error < bound, "{text:?}, {pooling}, {precision:?}: {error}");
            }
            assert_eq!(encoder.truncated(), 1, "only the last text is longer than the network takes");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_with_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    small::write(folder.path());
    let texts: Vec<String> =
        (0..300).map(|n| format!("{} ab{}", "red blue ".repeat(n % 7), "!".repeat(n % 5))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for precision in [Precision::F32, Precision::Bf16] {
        let encoder = TextEncoder::open(folder.path(), precision).unwrap();
        let all = encode(&encoder, &texts);
        for (threads, company) in [(1, 300), (1, 1), (2, 3), (3, 128), (4, 299)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found: Vec<f32> =
                pool.install(|| texts.chunks(company).flat_map(|some| encode(&encoder, some)).collect());
            assert!(found == all, "{threads} threads, {company} at a time, {precision:?}");
        }
    }
}

#[derive(serde::Deserialize)]
struct Golden {
    text: String,
    tokens: usize,
    sums: Vec<f64>,
}

#[test]
fn minilm_agrees_with_python() {
    let Some(folder) = real("minilm") else { return };
    let golden: Vec<Golden> = serde_json::from_str(include_str!("golden/minilm.json")).unwrap();
    let texts: Vec<&str> = golden.iter().map(|one| one.text.as_str()).collect();
    for (precision, bound) in [(Precision::F32, 1e-5), (Precision::Bf16, 2e-2)] {
        let encoder = TextEncoder::open(&folder, precision).unwrap();
        let rows = encode(&encoder, &texts);
        for (golden, row) in golden.iter().zip(rows.chunks(384)) {
            let sum = |k: u64| -> f64 {
                let sign = |i: u64| 1.0 - 2.0 * ((((k + 1) * (i + 1) * 2_654_435_761) >> 31) & 1) as f64;
                row.iter().zip(0..).map(|(&x, i)| f64::from(x) * sign(i)).sum()
            };
            // A sum of all numbers with random signs is as far off as the whole row, on average.
            let error: f64 = golden.sums.iter().zip(0..).map(|(wanted, k)| (sum(k) - wanted).powi(2)).sum();
            let error = (error / golden.sums.len() as f64).sqrt();
            assert!(error < bound, "{:?} ({} tokens), {precision:?}: {error}", golden.text, golden.tokens);
        }
        assert_eq!(
            encoder.truncated(),
            golden.iter().filter(|one| one.text.starts_with("label noise")).count()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_text_has_a_row(texts in prop::collection::vec("(?s).{0,40}|[\\x00-\\x20\u{300}-\u{330}\u{4e00}-\u{4e10}a!]{0,3000}", 0..4)) {
        let folder = tempfile::tempdir().unwrap();
        small::write(folder.path());
        let encoder = TextEncoder::open(folder.path(), Precision::F32).unwrap();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for row in encode(&encoder, &texts).chunks(small::WIDTH) {
            let length: f32 = row.iter().map(|x| x * x).sum();
            prop_assert!((length - 1.0).abs() < 1e-4, "{length}");
        }
    }
}

/// What is said of a folder in which something was changed.
fn complaint(change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    small::write(folder.path());
    change(folder.path());
    let error = TextEncoder::open(folder.path(), Precision::F32).err().unwrap().to_string();
    error.replace(&folder.path().display().to_string(), "FOLDER")
}

/// The same, where a tensor was changed.
fn tensor_complaint(change: impl FnOnce(&mut small::Tensors)) -> String {
    complaint(|folder| {
        let mut tensors = small::tensors();
        change(&mut tensors);
        small::write_tensors(folder, &tensors);
    })
}

/// The same, where a value of a file was changed.
fn value_complaint(file: &str, mut value: serde_json::Value, place: &str, new: serde_json::Value) -> String {
    *value.pointer_mut(place).unwrap() = new;
    complaint(|folder| std::fs::write(folder.join(file), value.to_string()).unwrap())
}

#[test]
fn a_folder_that_cannot_be_used_is_told_why() {
    let config = |name: &str, new: serde_json::Value| {
        value_complaint("config.json", small::config(), &format!("/{name}"), new)
    };
    let bias = "encoder.layer.1.output.dense.bias";
    for (found, wanted) in [
        (
            complaint(|folder| std::fs::remove_file(folder.join("config.json")).unwrap()),
            "the folder should hold model.safetensors",
        ),
        (
            complaint(|folder| std::fs::write(folder.join("config.json"), "[]").unwrap()),
            "FOLDER/config.json cannot be used as an encoder: ",
        ),
        (
            complaint(|folder| std::fs::remove_file(folder.join("tokenizer.json")).unwrap()),
            "FOLDER/tokenizer.json cannot",
        ),
        (
            complaint(|folder| std::fs::remove_file(folder.join("model.safetensors")).unwrap()),
            "FOLDER/model.safetensors cannot",
        ),
        (
            config("model_type", "roberta".into()),
            "model_type is `roberta`, but only `bert` is computed here; export other networks to ONNX",
        ),
        (config("hidden_act", "relu".into()), "hidden_act is `relu`"),
        (config("hidden_size", 0.into()), "hidden_size is 0, which is no size of a network"),
        (config("hidden_size", u64::MAX.into()), "hidden_size is 18446744073709551615"),
        (
            config("num_attention_heads", 3.into()),
            "hidden_size 16 is not a multiple of num_attention_heads 3",
        ),
        (config("layer_norm_eps", (-1.0).into()), "layer_norm_eps is -1"),
        (
            config("num_hidden_layers", 3.into()),
            "there is no tensor encoder.layer.2.attention.self.query.weight",
        ),
        (config("num_hidden_layers", 1.into()), "it holds encoder.layer.1."),
        (config("vocab_size", 20.into()), "has shape [12, 16], but config.json asks for [20, 16]"),
        (config("max_position_embeddings", 2.into()), "an empty text has 2 tokens"),
        (
            tensor_complaint(|all| drop(all.remove(bias))),
            "there is no tensor encoder.layer.1.output.dense.bias; it holds encoder.",
        ),
        (
            tensor_complaint(|all| drop(all.insert("odd".into(), (vec![1], vec![0.0])))),
            "it holds odd, which a network of this config.json does not have",
        ),
        (
            tensor_complaint(|all| all.get_mut(bias).unwrap().1[3] = f32::NAN),
            "encoder.layer.1.output.dense.bias holds NaN at place 3",
        ),
        (
            value_complaint("tokenizer.json", small::tokenizer(), "/model/vocab/!", 99.into()),
            "has a token 99, but the network knows 12",
        ),
        (
            complaint(|folder| {
                let (file, bytes) = (
                    folder.join("model.safetensors"),
                    std::fs::read(folder.join("model.safetensors")).unwrap(),
                );
                std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
            }),
            "no complete .safetensors file",
        ),
        (
            complaint(|folder| {
                std::fs::create_dir(folder.join("1_Pooling")).unwrap();
                std::fs::write(folder.join("1_Pooling/config.json"), "{\"pooling_mode_max_tokens\": true}")
                    .unwrap();
            }),
            "one of pooling_mode_mean_tokens and pooling_mode_cls_token",
        ),
    ] {
        assert!(found.contains(wanted), "{found:?} should say {wanted:?}");
    }
}

#[test]
fn a_file_cut_anywhere_or_with_a_byte_changed_is_an_error_or_an_encoder_but_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    small::write(folder.path());
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let whole = std::fs::read(folder.path().join(name)).unwrap();
        for n in 0..60 {
            let at = n * whole.len() / 60;
            let mut changed = whole.clone();
            changed[at] ^= 1 << (n % 8);
            for bytes in [&whole[..at], &changed] {
                std::fs::write(folder.path().join(name), bytes).unwrap();
                if let Ok(encoder) = TextEncoder::open(folder.path(), Precision::F32) {
                    encode(&encoder, &["red !", ""]);
                }
            }
        }
        std::fs::write(folder.path().join(name), whole).unwrap();
    }
}
