//! What can be asked of the networks: names, sizes, costs, first weights, files; and what is refused, in which words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use negscale_nets::Error;
use negscale_nets::{
    CARDS, InitScheme, Input, Loading, NetSpec, Network, ParameterKind, Pass, Projection, multiply_adds,
    names,
};

fn image(channels: usize, height: usize, width: usize) -> Input {
    Input::Image { channels, height, width }
}

fn build(spec: &NetSpec) -> Network {
    Network::build(spec, &Device::flex()).unwrap()
}

fn refusal(spec: &NetSpec) -> String {
    Network::build(spec, &Device::flex()).expect_err("must be refused").to_string()
}

/// A small form of every network, at an input it takes.
fn small(name: &str) -> NetSpec {
    let input = match name {
        "mlp" | "mlp-bottleneck" => Input::Features(20),
        "inception-resnet-v2" => image(3, 75, 75),
        "cnn-9" => image(3, 28, 28),
        _ => image(3, 32, 32),
    };
    NetSpec::new(name, input, 4).scaled(0.125)
}

#[test]
fn sizes_and_costs_at_the_usual_input_are_the_documented_ones() {
    let table = [
        ("mlp", Input::Features(512), 10, 267_786, 267_264, 512),
        ("mlp-bottleneck", Input::Features(512), 10, 165_514, 165_120, 128),
        ("cnn-small", image(1, 28, 28), 10, 61_050, 2_509_696, 64),
        ("resnet-20", image(3, 32, 32), 10, 269_722, 40_551_040, 64),
        ("preact-resnet-10", image(3, 32, 32), 10, 4_900_554, 63_362_048, 512),
        ("preact-resnet-18", image(3, 32, 32), 10, 11_171_274, 555_422_720, 512),
        ("resnet-18", image(3, 32, 32), 10, 11_173_962, 555_422_720, 512),
        ("resnet-34", image(3, 32, 32), 10, 21_282_122, 1_159_402_496, 512),
        ("resnet-18-imagenet", image(3, 224, 224), 1000, 11_689_512, 1_814_073_344, 512),
        ("resnet-34-imagenet", image(3, 224, 224), 1000, 21_797_672, 3_663_761_408, 512),
        ("vgg-19-bn", image(3, 224, 224), 1000, 143_678_248, 19_632_062_464, 4096),
        ("inception-resnet-v2", image(3, 299, 299), 1000, 55_843_464, 13_155_794_016, 1536),
        ("cnn-9", image(3, 32, 32), 10, 4_434_570, 745_538_816, 128),
        ("cnn-7", image(3, 32, 32), 10, 518_150, 112_400_896, 256),
    ];
    assert_eq!(table.map(|row| row.0).to_vec(), names());
    let mut found = Vec::new();
    for ((name, input, classes, ..), card) in table.iter().zip(CARDS) {
        let spec = NetSpec::new(*name, *input, *classes);
        let net = build(&spec);
        assert_eq!(net.feature_size(), card.features, "{name}");
        found.push((
            *name,
            *input,
            *classes,
            Module::num_params(&net),
            multiply_adds(&spec).unwrap(),
            net.feature_size(),
        ));
    }
    assert_eq!(found, table);
    assert!(table[2].4 < 3_000_000, "cnn-small is to stay cheap");
}

#[test]
fn every_network_runs_at_reduced_width_with_channels_in_eights() {
    let device = Device::flex();
    for name in names() {
        let spec = small(name);
        let net = build(&spec);
        for entry in net.entries().iter().filter(|entry| entry.kind == ParameterKind::Norm) {
            assert_eq!(entry.shape[0] % 8, 0, "{name} {}", entry.path);
        }
        let out = match spec.input {
            Input::Features(size) => net.forward(Tensor::<2>::ones([2, size], &device), &Pass::evaluate()),
            Input::Image { channels, height, width } => {
                net.forward(Tensor::<4>::ones([2, channels, height, width], &device), &Pass::evaluate())
            }
        };
        let out = out.unwrap();
        assert_eq!(out.features.dims(), [2, net.feature_size()], "{name}");
        assert_eq!(out.logits.dims(), [2, 4], "{name}");
        assert!(out.logits.into_data().try_to_vec::<f32>().unwrap().iter().all(|v| v.is_finite()), "{name}");
    }
}

#[test]
fn images_of_another_size_pass_if_they_fit_and_are_refused_if_not() {
    let net = build(&small("resnet-18"));
    let device = Device::flex();
    let forward = |net: &Network, shape| net.forward(Tensor::<4>::ones(shape, &device), &Pass::evaluate());
    assert_eq!(forward(&net, [1, 3, 45, 17]).unwrap().logits.dims(), [1, 4]);
    let message = forward(&net, [1, 1, 32, 32]).unwrap_err().to_string();
    assert!(message.contains("images of 1 x 32 x 32") && message.contains("1 channels where 3"), "{message}");
    let message = forward(&build(&small("cnn-7")), [1, 3, 40, 40]).unwrap_err().to_string();
    assert!(message.contains("a dense layer that takes"), "{message}");
    let message = net.forward(Tensor::<2>::ones([1, 9], &device), &Pass::evaluate()).unwrap_err().to_string();
    assert!(message.contains("for feature vectors use `mlp`"), "{message}");
    let message = build(&small("mlp")).forward(Tensor::<2>::ones([1, 9], &device), &Pass::evaluate());
    assert!(message.unwrap_err().to_string().contains("9 values reach a dense layer that takes 20"));
}

#[test]
fn impossible_wishes_are_refused_with_what_to_do() {
    let message = refusal(&NetSpec::new("preact-resnet18", image(3, 32, 32), 10));
    assert!(message.contains("nearest: preact-resnet-18"), "{message}");
    let message = refusal(&NetSpec::new("resnet-20", Input::Features(512), 10));
    assert!(message.contains("feature vectors of length 512") && message.contains("use `mlp`"), "{message}");
    let message = refusal(&NetSpec::new("inception-resnet-v2", image(3, 74, 74), 10));
    assert!(message.contains("too small") && message.contains("images of 3 x 74 x 74"), "{message}");
    for (name, size) in [("vgg-19-bn", 31), ("cnn-9", 27), ("cnn-7", 7), ("cnn-small", 3)] {
        assert!(refusal(&NetSpec::new(name, image(3, size, size), 10)).contains("too small"), "{name}");
        assert!(
            Network::build(&NetSpec::new(name, image(3, size + 1, size + 1), 10), &Device::flex()).is_ok(),
            "{name}"
        );
    }
    let base = NetSpec::new("resnet-20", image(3, 32, 32), 10);
    assert!(refusal(&NetSpec { classes: 0, ..base.clone() }).contains("classes is 0"));
    assert!(refusal(&base.clone().scaled(f64::NAN)).contains("width is NaN"));
    assert!(refusal(&NetSpec { dropout: Some(1.0), ..base.clone() }).contains("dropout is 1"));
    assert!(refusal(&NetSpec { input: image(3, 0, 4), ..base.clone() }).contains("no size may be 0"));
    assert!(refusal(&base.clone().with_heads(None, true)).contains("ask for one too"));
    let message =
        build(&base).project(Tensor::zeros([1, 64], &Device::flex()), &Pass::evaluate()).unwrap_err();
    assert!(message.to_string().contains("no projection head"), "{message}");
}

#[test]
fn a_spec_can_be_read_from_a_file_with_defaults() {
    let text = r#"{"name": "resnet-20", "input": {"image": {"channels": 3, "height": 32, "width": 32}}, "classes": 10,
                   "heads": {"projection": "norm-relu", "prediction": true}}"#;
    let spec: NetSpec = serde_json::from_str(text).unwrap();
    let wanted = NetSpec::new("resnet-20", image(3, 32, 32), 10).with_heads(Some(Projection::NormRelu), true);
    assert_eq!(spec, wanted);
    assert!(serde_json::from_str::<NetSpec>(&text.replace("classes", "clases")).is_err());
}

#[test]
fn first_weights_follow_the_rule_of_each_network() {
    for name in names() {
        let net = build(&small(name));
        let rule = CARDS.iter().find(|card| card.id == name).unwrap().rule;
        for (entry, values) in net.read().unwrap() {
            let fan_in = entry.shape.iter().skip(1).product::<usize>() as f64;
            let fan_out = values.len() as f64 / entry.shape.get(1).copied().unwrap_or(1) as f64;
            let bound = 1.0 / fan_in.sqrt();
            let (uniform, deviation) = match (rule, entry.shape.len()) {
                (InitScheme::Torch, _) | (InitScheme::HeOut, 2) => (true, bound / 3_f64.sqrt()),
                (InitScheme::HeIn, _) => (false, (2.0 / fan_in).sqrt()),
                (InitScheme::Vgg, 2) => (false, 0.01),
                (InitScheme::HeOut | InitScheme::Vgg, _) => (false, (2.0 / fan_out).sqrt()),
            };
            let what = format!("{name} {}", entry.path);
            match entry.kind {
                ParameterKind::Norm | ParameterKind::Buffer => {
                    let wanted =
                        if entry.path.ends_with("weight") || entry.path.ends_with("var") { 1.0 } else { 0.0 };
                    assert!(values.iter().all(|&v| v == wanted), "{what}");
                }
                ParameterKind::Bias => {
                    assert_eq!(values.iter().all(|&v| v == 0.0), rule == InitScheme::Vgg, "{what}")
                }
                ParameterKind::Weight => {
                    let n = values.len() as f64;
                    let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n;
                    // The square of n draws has a relative deviation of at most sqrt(2/n): five of them.
                    let slack = 5.0 * (2.0 / n).sqrt();
                    assert!(
                        (square / deviation.powi(2) - 1.0).abs() < slack,
                        "{what}: {square}, {deviation}"
                    );
                    if uniform {
                        assert!(values.iter().all(|&v| f64::from(v.abs()) <= bound * (1.0 + 1e-6)), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_seed_alone_decides_the_first_weights() {
    let spec = small("resnet-20").seeded(7);
    assert_eq!(build(&spec).read().unwrap(), build(&spec).read().unwrap());
    // Neither a head nor the number of classes changes what the body begins with.
    let other = NetSpec { classes: 9, ..spec.clone() }.with_heads(Some(Projection::Relu), false);
    assert_eq!(build(&spec).read().unwrap()[..10], build(&other).read().unwrap()[..10]);
    assert_ne!(build(&spec).read().unwrap()[0], build(&spec.seeded(8)).read().unwrap()[0]);
}

#[test]
fn a_saved_network_comes_back_bit_for_bit() {
    for name in ["vgg-19-bn", "inception-resnet-v2", "resnet-18", "mlp"] {
        let spec = small(name).with_heads(Some(Projection::NormRelu), true);
        let net = build(&spec.clone().seeded(1));
        let bytes = net.to_safetensors().unwrap();
        let back = build(&spec.seeded(2)).from_safetensors(&bytes, "memory", Loading::default()).unwrap();
        assert_eq!(net.read().unwrap(), back.read().unwrap(), "{name}");
        assert_eq!(bytes, back.to_safetensors().unwrap(), "{name}");
    }
}

#[test]
fn a_weights_file_is_replaced_whole_and_never_written_in_place() {
    let folder = tempfile::TempDir::new().unwrap();
    let [path, second_name] = ["a.safetensors", "b.safetensors"].map(|name| folder.path().join(name));
    let [old, new] = [1, 2].map(|seed| build(&small("mlp").seeded(seed)));
    old.save_safetensors(&path).unwrap();
    // A second name of the same file: it would change along if the file were written in place.
    std::fs::hard_link(&path, &second_name).unwrap();
    new.save_safetensors(&path).unwrap();
    let bytes = |net: &Network| net.to_safetensors().unwrap();
    assert!(std::fs::read(&path).unwrap() == bytes(&new));
    assert!(std::fs::read(&second_name).unwrap() == bytes(&old));
    let back = build(&small("mlp")).load_safetensors(&path, Loading::default()).unwrap();
    assert!(bytes(&back) == bytes(&new));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no part is left behind");
    let nowhere = folder.path().join("missing").join("a.safetensors");
    let error = new.save_safetensors(&nowhere).unwrap_err().to_string();
    assert!(error.starts_with(nowhere.to_str().unwrap()) && error.contains("does not exist"), "{error}");
}

#[test]
fn one_error_lists_every_key_that_does_not_fit() {
    let file = build(&small("resnet-20")).to_safetensors().unwrap();
    let wide =
        build(&NetSpec { classes: 6, ..small("resnet-20") }.with_heads(Some(Projection::LinearNorm), false));
    let Err(Error::Weights { problems, .. }) =
        wide.clone().from_safetensors(&file, "memory", Loading::default())
    else {
        panic!("must not fit")
    };
    for wanted in [
        "`linear.weight` has shape [4, 8], not [6, 8]",
        "`linear.bias` has",
        "`projection.0.weight` is missing",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(wanted)), "{wanted}: {problems:?}");
    }
    assert_eq!(problems.len(), 2 + 6);
    let before = wide.read().unwrap();
    let after =
        wide.from_safetensors(&file, "memory", Loading { skip_classifier: true, skip_heads: true }).unwrap();
    let after = after.read().unwrap();
    let source = build(&small("resnet-20")).read().unwrap();
    for ((entry, new), (_, old)) in after.iter().zip(&before) {
        match source.iter().find(|(other, _)| other == entry) {
            Some((_, values)) => assert_eq!(new, values, "{}", entry.path),
            None => assert_eq!(new, old, "{}", entry.path),
        }
    }

    let other = build(&small("cnn-small"))
        .from_safetensors(&file, "memory", Loading::default())
        .unwrap_err()
        .to_string();
    assert!(
        other.contains("`conv2.weight` is missing")
            && other.contains("`layer1.0.conv1.weight` is unexpected")
    );
    assert!(!other.contains("num_batches_tracked"), "{other}");
    let garbage =
        build(&small("mlp")).from_safetensors(b"no weights", "notes.txt", Loading::default()).unwrap_err();
    assert!(garbage.to_string().starts_with("notes.txt is not a readable safetensors file"), "{garbage}");
    let absent =
        build(&small("mlp")).load_safetensors("no/such/file", Loading::default()).unwrap_err().to_string();
    assert!(absent.starts_with("no/such/file: "), "{absent}");
}

#[test]
fn concept_vectors_come_with_their_projection_and_are_saved_with_it() {
    for (classes, count) in [(4, 8), (32, 64), (33, 33)] {
        let spec = NetSpec { classes, ..small("resnet-20") }.with_heads(Some(Projection::Concepts), false);
        let net = build(&spec);
        assert_eq!(net.concepts().unwrap().dims(), [count, 128]);
        let plain =
            build(&NetSpec { classes, ..small("resnet-20") }.with_heads(Some(Projection::Relu), false));
        let message = plain.concepts().unwrap_err().to_string();
        assert!(message.contains("concepts"), "{message}");
        // Beside the concepts it is the plain projection.
        let entries = net.entries();
        let last = entries.last().unwrap();
        assert_eq!((last.path.as_str(), last.shape.as_slice()), ("concepts.weight", [count, 128].as_slice()));
        assert_eq!(entries[..entries.len() - 1], plain.entries()[..]);
        let file = net.to_safetensors().unwrap();
        let other = build(&spec.clone().seeded(9));
        assert_ne!(other.read().unwrap(), net.read().unwrap());
        let loaded = other.clone().from_safetensors(&file, "memory", Loading::default()).unwrap();
        assert_eq!(loaded.read().unwrap(), net.read().unwrap());
        let bare = plain.to_safetensors().unwrap();
        assert!(other.clone().from_safetensors(&bare, "memory", Loading::default()).is_err());
        let skip_heads = Loading { skip_heads: true, ..Loading::default() };
        assert!(other.from_safetensors(&bare, "memory", skip_heads).is_ok());
    }
}
