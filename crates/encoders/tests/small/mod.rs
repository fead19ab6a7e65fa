//! A small BERT with random weights as a folder, and what it computes in plain f64 loops.
// Not every test needs all of it.
#![allow(dead_code)]

use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use std::path::Path;

pub const WIDTH: usize = 16;
pub const HEADS: usize = 2;
pub const LAYERS: usize = 2;
pub const WIDE: usize = 40;
pub const POSITIONS: usize = 24;
pub const EPSILON: f64 = 1e-12;
/// The words that the tokeniser knows.
pub const WORDS: [&str; 12] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "!", "red", "blue", "##ish", "broke", "works"];

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Numbers between -1 and 1 that look random.
fn random(seed: &mut u64) -> f32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

pub fn tensors() -> Tensors {
    let mut seed = 7;
    let mut all = Tensors::new();
    let mut add = |name: String, shape: &[usize], scale: f32, centre: f32| {
        let numbers = (0..shape.iter().product()).map(|_| centre + scale * random(&mut seed)).collect();
        all.insert(name, (shape.to_vec(), numbers));
    };
    let embeddings = [("word", WORDS.len()), ("position", POSITIONS), ("token_type", 2)];
    for (name, count) in embeddings {
        add(format!("embeddings.{name}_embeddings.weight"), &[count, WIDTH], 1.0, 0.0);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..LAYERS {
        let maps = [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ];
        for (name, outputs, inputs) in maps {
            add(format!("encoder.layer.{layer}.{name}.weight"), &[outputs, inputs], 0.5, 0.0);
            add(format!("encoder.layer.{layer}.{name}.bias"), &[outputs], 0.5, 0.0);
        }
        norms.extend(
            ["attention.output", "output"].map(|name| format!("encoder.layer.{layer}.{name}.LayerNorm")),
        );
    }
    for name in norms {
        add(format!("{name}.weight"), &[WIDTH], 0.3, 1.0);
        add(format!("{name}.bias"), &[WIDTH], 0.3, 0.0);
    }
    all
}

pub fn write_tensors(folder: &Path, tensors: &Tensors) {
    let bytes: BTreeMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(name, (_, x))| (name, x.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views = tensors
        .iter()
        .map(|(name, (shape, _))| (name, TensorView::new(Dtype::F32, shape.clone(), &bytes[name]).unwrap()));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
}

pub fn config() -> serde_json::Value {
    serde_json::json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "intermediate_size": WIDE, "max_position_embeddings": POSITIONS, "vocab_size": WORDS.len(), "type_vocab_size": 2, "layer_norm_eps": EPSILON,
    })
}

pub fn tokenizer() -> serde_json::Value {
    let special = |id: usize| serde_json::json!({"id": id, "content": WORDS[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    let vocabulary: serde_json::Map<_, _> =
        WORDS.iter().enumerate().map(|(id, &word)| (word.into(), id.into())).collect();
    let piece = |id: usize| serde_json::json!({"SpecialToken": {"id": WORDS[id], "type_id": 0}});
    let named = |id: usize| serde_json::json!({"id": WORDS[id], "ids": [id], "tokens": [WORDS[id]]});
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [special(0), special(2), special(3)],
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [piece(2), {"Sequence": {"id": "A", "type_id": 0}}, piece(3)], "pair": [],
            "special_tokens": {"[CLS]": named(2), "[SEP]": named(3)},
        },
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// All of it in a folder.
pub fn write(folder: &Path) {
    write_tensors(folder, &tensors());
    std::fs::write(folder.join("config.json"), config().to_string()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), tokenizer().to_string()).unwrap();
}

/// The row of a text with these ids, as it is written in the paper.
pub fn oracle(tensors: &Tensors, ids: &[usize], first_only: bool) -> Vec<f64> {
    let get = |name: &str| -> Vec<f64> { tensors[name].1.iter().map(|&x| x.into()).collect() };
    let row = |name: &str, at: usize| get(name)[at * WIDTH..(at + 1) * WIDTH].to_vec();
    let affine = |x: &[f64], name: &str| -> Vec<f64> {
        let (weight, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        bias.iter()
            .zip(weight.chunks(x.len()))
            .map(|(b, w)| b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
            .collect()
    };
    let norm = |x: Vec<f64>, name: &str| -> Vec<f64> {
        let mean = x.iter().sum::<f64>() / WIDTH as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / WIDTH as f64;
        let (weight, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        (0..WIDTH).map(|i| (x[i] - mean) / (variance + EPSILON).sqrt() * weight[i] + bias[i]).collect()
    };
    let add = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let mut x: Vec<Vec<f64>> = ids
        .iter()
        .enumerate()
        .map(|(at, &id)| {
            let types = row("embeddings.token_type_embeddings.weight", 0);
            let place = add(&row("embeddings.position_embeddings.weight", at), &types);
            norm(add(&row("embeddings.word_embeddings.weight", id), &place), "embeddings.LayerNorm")
        })
        .collect();
    for layer in 0..LAYERS {
        let named = |name: &str| format!("encoder.layer.{layer}.{name}");
        let [q, k, v] = ["query", "key", "value"].map(|map| {
            x.iter().map(|x| affine(x, &named(&format!("attention.self.{map}")))).collect::<Vec<_>>()
        });
        let size = WIDTH / HEADS;
        x = (0..x.len())
            .map(|i| {
                let mut attended = Vec::new();
                for head in 0..HEADS {
                    let part = head * size..(head + 1) * size;
                    let score = |j: usize| {
                        q[i][part.clone()].iter().zip(&k[j][part.clone()]).map(|(q, k)| q * k).sum::<f64>()
                    };
                    let powers: Vec<f64> =
                        (0..x.len()).map(|j| (score(j) / (size as f64).sqrt()).exp()).collect();
                    let total: f64 = powers.iter().sum();
                    attended.extend(
                        part.map(|d| powers.iter().zip(&v).map(|(p, v)| p / total * v[d]).sum::<f64>()),
                    );
                }
                let y = norm(
                    add(&x[i], &affine(&attended, &named("attention.output.dense"))),
                    &named("attention.output.LayerNorm"),
                );
                let wide: Vec<f64> =
                    affine(&y, &named("intermediate.dense")).into_iter().map(|x| x * normal(x)).collect();
                norm(add(&y, &affine(&wide, &named("output.dense"))), &named("output.LayerNorm"))
            })
            .collect();
    }
    if first_only {
        x.truncate(1);
    }
    let sum = x.iter().fold(vec![0.0; WIDTH], |sum, x| add(&sum, x));
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.iter().map(|x| x / length).collect()
}

/// The distribution function of the normal distribution, by its series.
fn normal(x: f64) -> f64 {
    if x.abs() > 7.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= x * x / (2 * n + 1) as f64;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}
