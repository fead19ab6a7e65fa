//! Embeddings of pictures and of texts, and audits by them.
#![allow(clippy::unwrap_used)]

mod support;

use image::{Rgb, RgbImage};
use negscale_data::npy;
use negscale_data::real_data::real;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Chance, command, fail, folder, succeed, text};

/// Two classes of pictures that any eye tells apart, `wrong` of each in the other's folder.
fn pictures(root: &Path, each: u32, wrong: u32) {
    let mut chance = Chance(5);
    let mut noise = move || (30.0 * chance.next()) as i32;
    for (class, names) in [["stripes", "checks"], ["checks", "stripes"]].iter().enumerate() {
        for i in 0..each {
            let into = root.join(names[usize::from(i < wrong)]);
            fs::create_dir_all(&into).unwrap();
            let picture = RgbImage::from_fn(24, 20, |x, y| {
                let light = if class == 0 { (x / (2 + i % 3)) % 2 } else { (x / 4 + y / (3 + i % 2)) % 2 };
                Rgb([0, 1, 2].map(|c| (60 + 120 * light as i32 + 20 * c + noise()).clamp(0, 255) as u8))
            });
            picture.save(into.join(format!("{}{i:02}.png", names[0]))).unwrap();
        }
    }
}

/// The command where no data is but in this folder.
fn in_folder(data: &Path, here: &Path, words: &[&str]) -> Command {
    let mut command = command(words);
    command.args(["--data-dir", text(data)]).env("XDG_CACHE_HOME", here).env("HOME", here);
    command
}

/// A data folder with the real weights, if there are any.
fn weights(here: &Path) -> Option<PathBuf> {
    let real = real("efficientnet-lite0")?;
    let data = here.join("data");
    fs::create_dir_all(data.join("efficientnet-lite0")).unwrap();
    for file in ["efficientnet-lite0-57934424.pth", "LICENSE"] {
        fs::copy(real.join(file), data.join("efficientnet-lite0").join(file)).unwrap();
    }
    Some(data)
}

#[test]
fn without_weights_the_command_that_fetches_them_is_named_and_nothing_is_made() {
    let here = folder("none");
    let (data, out) = (here.join("pictures"), here.join("e.npy"));
    pictures(&data, 2, 0);
    let embed = ["embed", text(&data), "--out", text(&out)];
    let told = fail(&mut in_folder(&here, &here, &embed));
    assert!(told.contains("negscale data get efficientnet-lite0"), "{told}");
    let told = fail(&mut in_folder(&here, &here, &[&embed[..], &["--encoder", "efficientnet"]].concat()));
    assert!(told.contains("efficientnet-lite0"), "{told}");
    let told = fail(&mut in_folder(&here, &here, &["embed", text(&data), "--out", "e.csv"]));
    assert!(told.contains(".npy or .safetensors"), "{told}");
    let audit = ["audit", text(&data), "--encoder", "efficientnet-lite0", "--out", text(&out)];
    let told = fail(&mut in_folder(&here, &here, &audit));
    assert!(told.contains("negscale data get efficientnet-lite0"), "{told}");
    assert!(!out.exists() && !here.join("e.npy.parts").exists());
}

#[test]
fn pictures_become_rows_that_no_batch_and_no_thread_changes() {
    let here = folder("rows");
    let Some(weights) = weights(&here) else { return };
    let data = here.join("pictures");
    pictures(&data, 9, 0);
    let embed = |name: &str, more: &[&str], threads: &str| {
        let out = here.join(name);
        let words = [&["embed", text(&data), "--out", text(&out)], more].concat();
        succeed(in_folder(&weights, &here, &words).env("RAYON_NUM_THREADS", threads));
        fs::read(out).unwrap()
    };
    let rows = embed("a.npy", &[], "2");
    assert_eq!(npy::open(&here.join("a.npy")).unwrap().shape(), [18, 1280]);
    assert!(embed("b.npy", &["--together", "5"], "1") == rows);
    assert!(embed("c.safetensors", &["--together", "1"], "3").ends_with(&rows[rows.len() - 18 * 5120..]));
}

#[test]
fn an_audit_of_pictures_takes_the_encoder_whose_weights_are_here_and_says_so() {
    let here = folder("audit");
    let Some(weights) = weights(&here) else { return };
    let (data, out) = (here.join("pictures"), here.join("run"));
    pictures(&data, 40, 4);
    let audit = ["audit", text(&data), "--out", text(&out)];
    let said = succeed(&mut in_folder(&weights, &here, &audit));
    let told = String::from_utf8(said.stderr).unwrap();
    assert!(told.contains("efficientnet-lite0") && told.contains("--encoder none"), "{told}");
    let settings = fs::read_to_string(out.join("settings.toml")).unwrap();
    assert!(settings.contains("encoder = \"efficientnet-lite0\""), "{settings}");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("efficientnet-lite0"));
    assert!(
        !out.join("embeddings").exists() || fs::read_dir(out.join("embeddings")).unwrap().next().is_none()
    );
    // The labels that are wrong come first.
    let mut table = csv::Reader::from_path(out.join("audit.csv")).unwrap();
    let first: Vec<String> = table.records().take(8).map(|row| row.unwrap()[1].to_owned()).collect();
    let is_wrong = |path: &&String| path.contains("stripes/checks") || path.contains("checks/stripes");
    assert!(first.iter().filter(is_wrong).count() >= 6, "{first:?}");
    // Again, and from its settings: it is finished.
    let again = succeed(&mut in_folder(&weights, &here, &audit));
    assert_eq!(again.stdout, said.stdout);
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("already complete"), "{told}");
    // Settings of a training mean a training, and do not go with an encoder.
    let both = [&audit[..], &["--encoder", "efficientnet-lite0", "--host", "rolr"]].concat();
    let told = fail(&mut in_folder(&weights, &here, &both));
    assert!(told.contains("--encoder none"), "{told}");
}

/// A network in an ONNX file that takes texts or pictures, from the tests of the encoders.
fn network(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../encoders/tests/golden").join(name)
}

#[test]
fn a_network_of_ones_own_turns_pictures_into_rows_and_names_what_it_cannot_use() {
    let here = folder("onnx");
    let (data, out) = (here.join("pictures"), here.join("e.npy"));
    pictures(&data, 3, 0);
    let own = network("pictures.onnx");
    let embed = ["embed", text(&data), "--out", text(&out), "--onnx", text(&own)];
    succeed(&mut in_folder(&here, &here, &embed));
    let whole = npy::open(&out).unwrap();
    assert_eq!(whole.shape()[0], 6);
    // Other settings are another encoder: nothing of the first is taken for it.
    let first = fs::read(&out).unwrap();
    succeed(&mut in_folder(&here, &here, &[&embed[..], &["--onnx-mean", "0,0,0"]].concat()));
    assert_ne!(fs::read(&out).unwrap(), first);
    for (words, wanted) in [
        (&["--onnx-size", "8"][..], "--onnx-size"),
        (&["--onnx-std", "0,1,1"], "--onnx-std"),
        (&["--onnx-output", "none"], "it has no output none"),
        (&["--encoder", "minilm"], "cannot be used with"),
    ] {
        let told = fail(&mut in_folder(&here, &here, &[&embed[..], words].concat()));
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn texts_become_rows_and_a_column_that_is_not_there_is_named() {
    let here = folder("texts");
    let (table, out) = (here.join("reviews.csv"), here.join("e.npy"));
    let mut rows = String::from("text,kind\n");
    for i in 0..30 {
        let what = if i % 2 == 0 { "the screen broke after a week" } else { "arrived in time, works well" };
        rows.push_str(&format!("\"{what}, number {i}\",{}\n", i % 2));
    }
    fs::write(&table, rows).unwrap();
    let embed = ["embed", text(&table), "--out", text(&out), "--text-column"];
    let told = fail(&mut in_folder(&here, &here, &[&embed[..], &["text"]].concat()));
    assert!(told.contains("negscale data get minilm"), "{told}");
    let told = fail(&mut in_folder(
        &here,
        &here,
        &[&embed[..], &["text", "--encoder", "efficientnet-lite0"]].concat(),
    ));
    assert!(told.contains("reads pictures"), "{told}");
    let Some(real) = real("minilm") else { return };
    let data = here.join("data/minilm");
    fs::create_dir_all(&data).unwrap();
    for file in fs::read_dir(real).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), data.join(file.file_name())).unwrap();
    }
    let data = here.join("data");
    let told = fail(&mut in_folder(&data, &here, &[&embed[..], &["words"]].concat()));
    assert!(told.contains("has no column `words`"), "{told}");
    succeed(&mut in_folder(&data, &here, &[&embed[..], &["text"]].concat()));
    let whole = npy::open(&out).unwrap();
    assert_eq!(whole.shape(), [30, 384]);
    // Texts that mean alike are near each other.
    let bytes = fs::read(&out).unwrap();
    let numbers: Vec<f32> = bytes[bytes.len() - 30 * 384 * 4..]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&b| f32::from_le_bytes(b))
        .collect();
    let near =
        |a: usize, b: usize| -> f32 { (0..384).map(|k| numbers[a * 384 + k] * numbers[b * 384 + k]).sum() };
    assert!(near(0, 2) > near(0, 1) + 0.2, "{} {}", near(0, 2), near(0, 1));

    // And an audit, by the same rows, says which label is wrong: one of a screen that works well.
    let wrong = fs::read_to_string(&table).unwrap().replacen("number 8\",0", "number 8\",1", 1);
    fs::write(&table, wrong).unwrap();
    let run = here.join("run");
    let audit =
        ["audit", text(&table), "--text-column", "text", "--label-column", "kind", "--out", text(&run)];
    let told = fail(&mut in_folder(&here, &here, &audit));
    assert!(told.contains("negscale data get minilm"), "{told}");
    let said = succeed(&mut in_folder(&data, &here, &audit));
    assert!(String::from_utf8(said.stderr).unwrap().contains("minilm"));
    let mut list = csv::Reader::from_path(run.join("audit.csv")).unwrap();
    let first = list.records().next().unwrap().unwrap();
    assert_eq!((&first[0], &first[2], &first[3]), ("8", "1", "0"), "{first:?}");
    let train = ["train", "--data", text(&table), "--text-column", "text", "--label-column", "kind"];
    let told = fail(&mut in_folder(&data, &here, &train));
    assert!(told.contains("negscale embed"), "{told}");
    // Another text is another dataset.
    let other = fs::read_to_string(&table).unwrap().replacen("number 9", "number nine", 1);
    fs::write(&table, other).unwrap();
    let told = fail(&mut in_folder(&data, &here, &audit));
    assert!(told.contains("--fresh"), "{told}");
}
