//! Models as files, their predictions and their evaluation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_data::views::{Fit, ImageSettings, Normalise};
use negscale_data::{Dataset, FeatureStore, Image, ImageStore, Items, Shape, known};
use negscale_nets::model::{Evaluation, Model, Preparation};
use negscale_nets::{Input, NetSpec, Network, Pass};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

struct Numbers {
    dim: usize,
    values: Vec<f32>,
}

impl FeatureStore for Numbers {
    fn len(&self) -> usize {
        self.values.len() / self.dim
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn read(&self, index: usize, out: &mut [f32]) -> negscale_data::Result<()> {
        out.copy_from_slice(&self.values[index * self.dim..][..self.dim]);
        Ok(())
    }
}

/// Pictures of other sizes and channels, in turn.
struct Mixed;

impl ImageStore for Mixed {
    fn len(&self) -> usize {
        5
    }
    fn load(&self, index: usize) -> negscale_data::Result<Image> {
        let shape = Shape { width: 8 + 3 * index, height: 9, channels: [1, 3][index % 2] };
        Ok(Image { shape, pixels: (0..shape.len()).map(|i| (i * 31 + index) as u8).collect() })
    }
    fn bytes(&self, _: usize) -> negscale_data::Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&[]))
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| name.to_string()).collect()
}

/// Six classes, four features, 300 items: more than one batch.
fn points() -> Dataset {
    let values = (0..1200u32).map(|i| (i * 7919 % 101) as f32 / 10.0).collect();
    let given = (0..300u32).map(|i| i * 5 % 6).collect();
    let items = Items::Features(Arc::new(Numbers { dim: 4, values }));
    Dataset::new("points", names(&["a", "b", "c", "d", "e", "f"]), items, given, None).unwrap()
}

fn mlp(preparation: &Preparation, seed: u64) -> Network {
    let mut spec = NetSpec::new("mlp", preparation.input(), 6).seeded(seed);
    spec.hidden = vec![5];
    Network::build(&spec, &Device::flex()).unwrap()
}

fn model(nets: u64) -> Model {
    let points = points();
    let preparation = Preparation::measure(&points, None).unwrap();
    let nets = (1..=nets).map(|seed| mlp(&preparation, seed)).collect();
    let about = BTreeMap::from([("method".to_string(), "none \"at all\"".to_string())]);
    Model::new(nets, points.classes().to_vec(), preparation, about).unwrap()
}

fn probabilities(model: &Model, dataset: &Dataset) -> Vec<f32> {
    let mut all = Vec::new();
    model
        .predict(dataset, 2, |first, rows| {
            assert_eq!(first * model.classes().len(), all.len(), "rows come in order");
            all.extend_from_slice(rows);
            Ok(())
        })
        .unwrap();
    all
}

fn load(path: &Path) -> Result<Model, String> {
    Model::load(path, &Device::flex()).map_err(|error| error.to_string())
}

fn refusal(path: &Path) -> String {
    load(path).err().unwrap()
}

#[test]
fn a_model_comes_back_bit_for_bit_from_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(2);
    let paths = model.save(folder.path()).unwrap();
    assert_eq!(paths, ["model.safetensors", "model-2.safetensors"].map(|name| folder.path().join(name)));
    let loaded = load(folder.path()).unwrap();
    assert_eq!(loaded.classes(), model.classes());
    assert_eq!(loaded.preparation(), model.preparation());
    assert_eq!(loaded.about(), model.about());
    for (net, other) in model.nets().iter().zip(loaded.nets()) {
        assert_eq!(net.spec(), other.spec());
        assert_eq!(net.read().unwrap(), other.read().unwrap());
    }
    assert_eq!(probabilities(&model, &points()), probabilities(&loaded, &points()));
    let again = tempfile::tempdir().unwrap();
    for (one, two) in paths.iter().zip(loaded.save(again.path()).unwrap()) {
        assert_eq!(
            std::fs::read(one).unwrap(),
            std::fs::read(two).unwrap(),
            "saving is a function of the model"
        );
    }
    assert!(load(&paths[0]).is_ok(), "the file itself will do");
}

#[test]
fn a_model_in_memory_is_the_bytes_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(2);
    let files = model.to_files().unwrap();
    for (path, bytes) in model.save(folder.path()).unwrap().iter().zip(&files) {
        assert_eq!(&std::fs::read(path).unwrap(), bytes);
    }
    let back = Model::from_files(&files, &Device::flex()).unwrap();
    assert_eq!(back.about(), model.about());
    assert_eq!(probabilities(&model, &points()), probabilities(&back, &points()));
    let refusal = |files: &[Vec<u8>]| Model::from_files(files, &Device::flex()).unwrap_err().to_string();
    assert!(refusal(&[]).contains("no file"));
    assert!(refusal(&files[..1]).contains("is missing"));
    assert!(refusal(&files[1..]).contains("is network 2 of 2"));
    assert!(refusal(&[files[0].clone(), files[0].clone()]).contains("does not belong"));
    assert!(refusal(&[files[0][..100].to_vec()]).contains("not a safetensors file"));
}

#[test]
fn probabilities_are_those_of_logits_added_by_hand() {
    let (points, model) = (points(), model(2));
    let Preparation::Features(settings) = model.preparation() else { panic!("features") };
    let Items::Features(store) = points.items() else { panic!("features") };
    let found = probabilities(&model, &points);
    assert_eq!(found.len(), 300 * 6);
    for item in [0, 1, 255, 256, 299] {
        let mut row = [0.0; 4];
        store.read(item, &mut row).unwrap();
        for (j, x) in row.iter_mut().enumerate() {
            *x = (*x - settings.moments.mean[j]) / settings.moments.std[j];
        }
        let input = || Tensor::<2>::from_data(TensorData::new(row.to_vec(), [1, 4]), &Device::flex());
        let mut sum = [0f64; 6];
        for net in model.nets() {
            let logits = net.forward(input(), &Pass::evaluate()).unwrap().logits.into_data();
            let logits = logits.try_to_vec::<f32>().unwrap();
            sum.iter_mut().zip(logits).for_each(|(sum, logit)| *sum += logit as f64);
        }
        let total: f64 = sum.iter().map(|z| z.exp()).sum();
        for (class, z) in sum.iter().enumerate() {
            let (wanted, found) = (z.exp() / total, found[item * 6 + class] as f64);
            assert!((wanted - found).abs() < 1e-6, "item {item}, class {class}: {found}, not {wanted}");
        }
    }
    let alone = Model::new(
        model.nets()[..1].to_vec(),
        model.classes().to_vec(),
        model.preparation().clone(),
        BTreeMap::new(),
    );
    assert_ne!(probabilities(&alone.unwrap(), &points), found, "the second network has a say");
}

#[test]
fn evaluation_follows_the_names_of_the_classes() {
    let (points, model) = (points(), model(1));
    let rows = probabilities(&model, &points);
    let plain = Evaluation::of(6, &rows, points.given()).unwrap();
    assert_eq!(model.evaluate(&points, 1).unwrap(), plain);
    assert!(plain.top_1() > 0.0 && plain.top_1() < 1.0 && plain.top_5().unwrap() > plain.top_1());
    let turned: Vec<u32> = points.given().iter().map(|label| 5 - label).collect();
    let same = |classes: &[&str], given: Vec<u32>| {
        Dataset::new("other", names(classes), points.items().clone(), given, None).unwrap()
    };
    let turned = same(&["f", "e", "d", "c", "b", "a"], turned);
    assert_eq!(model.evaluate(&turned, 1).unwrap(), plain, "another order of the same names");
    let numbered = same(&["0", "1", "2", "3", "4", "5"], points.given().to_vec());
    assert_eq!(model.evaluate(&numbered, 1).unwrap(), plain, "plain numbers count into the names");
    let strange = same(&["a", "b", "c", "d", "e", "goat"], points.given().to_vec());
    let error = model.evaluate(&strange, 1).unwrap_err().to_string();
    assert!(
        error.contains("`goat`") && error.contains("1 of the data's 6") && error.contains("`f`"),
        "{error}"
    );
    let unlabelled = Dataset::unlabelled("points", points.items().clone());
    assert_eq!(probabilities(&model, &unlabelled), rows, "labels are not needed to predict");
    let noisy = points.with_noise(vec![0; 300]).unwrap();
    assert_eq!(model.evaluate(&noisy, 1).unwrap(), plain, "judged by the true labels where they are known");
}

#[test]
fn preparation_takes_published_constants_by_name_and_measures_the_rest() {
    let items = Items::Images(Arc::new(Mixed));
    let of = |name: &str, side| {
        let set = Dataset::new(name, names(&["a"]), items.clone(), vec![0; 5], None).unwrap();
        match Preparation::measure(&set, side).unwrap() {
            Preparation::Images(settings) => settings,
            Preparation::Features(_) => panic!("pictures"),
        }
    };
    let own = of("holiday", None);
    assert_eq!(own.shape, Shape { width: 8, height: 9, channels: 1 }, "that of the first picture");
    assert_eq!(own.normalise, Normalise::measure(&Mixed, 1).unwrap());
    assert!(own.flip && own.fit == Fit::Cover && own.border.is_none());
    assert_eq!(of("holiday", Some((6, 7))).shape, Shape { width: 6, height: 7, channels: 1 });
    assert!(!of("mnist", None).flip);
    assert_eq!(of("fashion-mnist-subset", None).normalise, Normalise::fashion_mnist());
    assert!(of("fashion-mnist-subset", None).flip);
    assert_eq!(of("cifar10-grey", None).normalise.mean.len(), 1, "constants of colours do not fit grey");
    let train = known::embedded().unwrap().train;
    let preparation = Preparation::measure(&train, None).unwrap();
    assert_eq!(preparation.input(), Input::Image { channels: 1, height: 28, width: 28 });
    let points = Preparation::measure(&points(), None).unwrap();
    assert_eq!(points.input(), Input::Features(4));
    for preparation in [preparation, points] {
        let text = serde_json::to_string(&preparation).unwrap();
        assert_eq!(serde_json::from_str::<Preparation>(&text).unwrap(), preparation);
    }
}

#[test]
fn pictures_of_any_size_and_colour_are_brought_to_the_networks() {
    let shape = Shape { width: 12, height: 10, channels: 3 };
    let preparation = Preparation::Images(ImageSettings::new(shape, Normalise::cifar100()));
    let spec = NetSpec::new("cnn-small", preparation.input(), 2);
    let net = Network::build(&spec, &Device::flex().autodiff()).unwrap();
    let model = Model::new(vec![net], names(&["x", "y"]), preparation, BTreeMap::new()).unwrap();
    let set = Dataset::unlabelled("mixed", Items::Images(Arc::new(Mixed)));
    let rows = probabilities(&model, &set);
    assert_eq!(rows.len(), 10);
    assert!(rows.chunks(2).all(|row| (row[0] + row[1] - 1.0).abs() < 1e-6));
    let error = model.predict(&points(), 1, |_, _| Ok(())).unwrap_err().to_string();
    assert!(error.contains("feature vectors of length 4") && error.contains("3 x 10 x 12"), "{error}");
}

#[test]
fn parts_that_do_not_fit_make_no_model() {
    let points = points();
    let preparation = Preparation::measure(&points, None).unwrap();
    let net = || mlp(&preparation, 1);
    let tried = |nets, classes: &[&str], preparation: Preparation| {
        Model::new(nets, names(classes), preparation, BTreeMap::new()).unwrap_err().to_string()
    };
    let six = ["a", "b", "c", "d", "e", "f"];
    assert!(tried(vec![], &six, preparation.clone()).contains("no network"));
    assert!(tried(vec![net()], &six[1..], preparation.clone()).contains("6 classes"));
    assert!(tried(vec![net()], &["a", "b", "c", "d", "e", "a"], preparation.clone()).contains("`a`"));
    let shape = Shape { width: 4, height: 1, channels: 1 };
    let pictures = Preparation::Images(ImageSettings::new(shape, Normalise::none(1)));
    assert!(tried(vec![net()], &six, pictures).contains("feature vectors of length 4"));
}

#[test]
fn parts_that_are_missing_or_of_another_model_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = &model(2).save(folder.path()).unwrap()[0];
    let second = folder.path().join("model-2.safetensors");
    assert!(refusal(&second).contains("network 2 of 2"));
    let other = tempfile::tempdir().unwrap();
    model(3).save(other.path()).unwrap();
    std::fs::copy(other.path().join("model-2.safetensors"), &second).unwrap();
    let error = refusal(first);
    assert!(error.contains("model-2.safetensors") && error.contains("another"), "{error}");
    std::fs::remove_file(&second).unwrap();
    let error = refusal(folder.path());
    assert!(
        error.contains("model-2.safetensors is missing") || error.contains("model-2.safetensors: is missing"),
        "{error}"
    );
    assert!(refusal(&folder.path().join("nothing")).contains("no such file"));
    let empty = tempfile::tempdir().unwrap();
    assert!(refusal(empty.path()).contains("model.safetensors: there is no such file"));
}

#[test]
fn damaged_and_foreign_files_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(1).save(folder.path()).unwrap().remove(0);
    let whole = std::fs::read(&path).unwrap();
    let with = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load(&path)
    };
    for end in (0..whole.len()).step_by(7) {
        let error = with(&whole[..end]).err().unwrap();
        assert!(error.contains("model.safetensors"), "{error}");
    }
    assert!(
        with(b"PK\x03\x04 a PyTorch file, which is a zip archive")
            .err()
            .unwrap()
            .contains("not a safetensors")
    );
    let bare = mlp(&Preparation::measure(&points(), None).unwrap(), 1).to_safetensors().unwrap();
    let error = with(&bare).err().unwrap();
    assert!(error.contains("not a model saved by this program") && error.contains("run's folder"), "{error}");
    // Replacements of the same length, so that the rest of the file stays where it is.
    let changed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = whole.windows(from.len()).position(|w| w == from.as_bytes()).expect(from);
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        with(&bytes).err().unwrap()
    };
    for (from, to, part) in [
        (r#"\"version\":1"#, r#"\"version\":2"#, "version 2, which is newer"),
        (r#"\"version\":1"#, r#"\"version\":x"#, "damaged"),
        (r#"\"version\":1"#, r#"\"virsion\":1"#, "damaged"),
        (r#"\"version\":1"#, r#"\"version\":0"#, "contradict"),
        (r#"\"part\":1"#, r#"\"part\":3"#, "contradict"),
        (r#"\"parts\":1"#, r#"\"parts\":0"#, "contradict"),
        (r#"\"parts\":1"#, r#"\"parts\":2"#, "model-2.safetensors"),
        (r#"\"hidden\":[5]"#, r#"\"hidden\":[6]"#, "does not fit network"),
        (r#"\"classes\":6"#, r#"\"classes\":7"#, "contradict"),
        (r#"\"name\":\"mlp\""#, r#"\"name\":\"mlq\""#, "mlq"),
    ] {
        let error = changed(from, to);
        assert!(error.contains(part), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_file_with_any_one_byte_changed_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(1).save(folder.path()).unwrap().remove(0);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] = [b'9', b'"', whole[at] ^ 0x80][at % 3];
        std::fs::write(&path, bytes).unwrap();
        let _ = load(&path);
    }
}

#[test]
fn weights_that_are_not_numbers_are_an_error_that_names_the_item() {
    let model = model(1);
    let net = model.nets()[0].clone();
    let net = net.replace(|entry| Some(vec![f32::NAN; entry.shape.iter().product()])).unwrap();
    let broken =
        Model::new(vec![net], model.classes().to_vec(), model.preparation().clone(), BTreeMap::new())
            .unwrap();
    let mut rows = broken.predictions(&points(), 1).unwrap();
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("item 0") && error.contains("diverged"), "{error}");
    assert!(rows.next().is_none(), "after an error there is nothing more");
}
