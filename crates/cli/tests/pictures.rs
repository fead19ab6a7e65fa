//! Folders of pictures that are not as they should be, as a person meets them; and words on what is not there.
#![allow(clippy::unwrap_used)]

mod support;

use image::{Rgb, RgbImage};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{command, fail, fails, fine, folder, succeed, text};

/// Two classes of twelve small pictures, JPEG and PNG in phase.
fn pictures(root: &Path) {
    for (class, name) in ["cat", "dog"].into_iter().enumerate() {
        fs::create_dir_all(root.join(name)).unwrap();
        for i in 0..12 {
            let shade = |x: u32, y: u32| Rgb([(x * 20 + i) as u8, (y * 15 + i) as u8, 200 * class as u8]);
            let file = format!("{i:02}.{}", if i % 2 == 0 { "jpg" } else { "png" });
            RgbImage::from_fn(8, 8, shade).save(root.join(name).join(file)).unwrap();
        }
    }
}

fn halve(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

/// A short training of the cheapest kind.
const SHORT: [&str; 12] = [
    "--host",
    "cross-entropy",
    "--plugin",
    "none",
    "--set",
    "baseline=none",
    "--set",
    "batch=8",
    "--epochs",
    "1",
    "--noise",
    "none",
];

fn error_of(output: Output) -> String {
    String::from_utf8(output.stderr).unwrap()
}

fn rows(path: &Path) -> Vec<csv::StringRecord> {
    csv::Reader::from_path(path).unwrap().records().map(|row| row.unwrap()).collect()
}

/// Pictures of which three cannot be read.
fn damaged(here: &Path) -> (PathBuf, [PathBuf; 3]) {
    let data = here.join("pictures");
    pictures(&data);
    let bad = ["cat/00.jpg", "cat/05.png", "dog/04.jpg"].map(|name| data.join(name));
    halve(&bad[0]);
    fs::write(&bad[1], "").unwrap();
    halve(&bad[2]);
    (data, bad)
}

#[test]
fn training_and_auditing_name_all_unreadable_pictures_at_once_before_anything_is_made() {
    let here = folder("refused");
    let (data, bad) = damaged(&here);
    let out = here.join("out");
    let data = text(&data);
    for verb in [vec!["train", "--data", data], vec!["audit", data]] {
        let message = fail(command(&verb).args(["--out", text(&out)]).args(SHORT));
        assert!(message.contains("3 of 24 images cannot be read"), "{message}");
        for path in &bad {
            assert_eq!(message.matches(text(path)).count(), 1, "{message}");
        }
        assert!(message.contains("--skip-unreadable"), "{message}");
        assert!(!out.exists(), "no folder for a run that cannot begin");
    }
    let report = fine(&["data", "inspect", data]);
    assert!(
        report.contains("unreadable    3") && bad.iter().all(|path| report.contains(text(path))),
        "{report}"
    );
}

#[test]
fn unreadable_pictures_are_left_out_counted_and_listed_and_the_corrected_labels_fit_the_rest() {
    let here = folder("skipped");
    let (data, bad) = damaged(&here);
    let out = here.join("out");
    let mut audit = command(&["audit", text(&data), "--skip-unreadable", "--out", text(&out)]);
    let said = error_of(succeed(audit.args(SHORT)));
    assert!(said.contains("note: 3 of 24 images cannot be read and are skipped"), "{said}");
    let listed = rows(&out.join("skipped.csv"));
    assert_eq!(listed.iter().map(|row| &row[0]).collect::<Vec<_>>(), bad.each_ref().map(|path| text(path)));
    assert!(listed[0][1].contains("cut off") && listed[1][1].contains("0 bytes"), "{listed:?}");
    assert!(fs::read_to_string(out.join("settings.toml")).unwrap().contains("skip_unreadable = true"));
    let audited = rows(&out.join("audit.csv"));
    assert_eq!(audited.len(), 21);
    let mut numbers: Vec<usize> = audited.iter().map(|row| row[0].parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..21).collect::<Vec<_>>(), "numbers count what was kept");

    let corrected = out.join("corrected.csv");
    let again = here.join("again");
    let mut train =
        command(&["train", "--data", text(&data), "--labels", text(&corrected), "--skip-unreadable"]);
    succeed(train.args(["--out", text(&again)]).args(SHORT));
    assert_eq!(rows(&again.join("skipped.csv")).len(), 3);

    // A model judges and predicts by the same rule.
    for verb in ["eval", "predict"] {
        let words = [verb, text(&out), "--data", text(&data)];
        let message = fails(&words);
        assert!(message.contains("3 of 24") && message.contains(text(&bad[2])), "{message}");
        let said = error_of(succeed(command(&words).arg("--skip-unreadable")));
        assert!(said.contains("note: 3 of 24"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_passed_over_in_class_folders_is_said_by_every_verb_that_reads_them() {
    let here = folder("passed");
    let data = here.join("pictures");
    pictures(&data);
    for name in ["cat/a.gif", "cat/b.gif", "dog/c.tiff", "dog/notes.txt"] {
        fs::write(data.join(name), "x").unwrap();
    }
    std::os::unix::fs::symlink("gone.png", data.join("dog/link.png")).unwrap();
    fs::create_dir(data.join("hollow")).unwrap();
    let (model, noise) = (here.join("model"), here.join("noise.csv"));
    let (data, model, noise) = (text(&data), text(&model), text(&noise));
    let verbs = [
        [&["train", "--data", data, "--out", model], &SHORT[..]].concat(),
        vec!["data", "inspect", data],
        vec!["noise", "--data", data, "--noise", "sym:0.2", "--out", noise],
        vec!["eval", model, "--data", data],
    ];
    for verb in verbs {
        let said = error_of(succeed(&mut command(&verb)));
        for part in
            ["2 .gif files, 1 .tiff file skipped", "1 link that leads nowhere", "`hollow`", "1 other file"]
        {
            assert!(
                said.lines().any(|line| line.starts_with("note: ") && line.contains(part)),
                "{verb:?}: {said}"
            );
        }
    }
    let quiet = [&["train", "--data", data, "--out", model, "--quiet"], &SHORT[..]].concat();
    assert_eq!(error_of(succeed(&mut command(&quiet))), "");

    fs::create_dir(here.join("pictures/bird")).unwrap();
    fs::write(here.join("pictures/bird/1.avif"), "x").unwrap();
    let message = fails(&["data", "inspect", data]);
    assert!(message.contains("bird") && message.contains("1 .avif file: convert"), "{message}");
}

#[test]
fn a_slip_in_the_name_of_a_data_set_is_answered_with_the_name_that_was_meant() {
    for words in [
        vec!["data", "inspect", "cifra10"],
        vec!["train", "--data", "cifra10"],
        vec!["audit", "cifra10"],
        vec!["noise", "--data", "cifra10", "--noise", "sym:0.2", "--out", "never.csv"],
        vec!["data", "get", "cifra10"],
    ] {
        let message = fails(&words);
        assert!(message.contains("did you mean `cifar10`?"), "{message}");
    }
    let message = fails(&["data", "inspect", "no/such/folder"]);
    assert!(message.contains("no such file or folder") && !message.contains("did you mean"), "{message}");
}

#[test]
fn a_data_folder_that_is_not_there_is_an_error_for_every_verb_that_reads_from_it() {
    let absent = folder("absent").join("nowhere");
    let absent = text(&absent);
    for words in [
        vec!["data", "list"],
        vec!["data", "inspect", "fashion-mnist-subset"],
        vec!["train", "--data", "fashion-mnist-subset"],
        vec!["audit", "fashion-mnist-subset"],
        vec!["noise", "--data", "fashion-mnist-subset", "--noise", "sym:0.2", "--out", "never.csv"],
    ] {
        let message = fails(&[&words[..], &["--data-dir", absent]].concat());
        assert!(message.contains("nowhere") && message.contains("--data-dir"), "{words:?}: {message}");
    }
}

#[test]
fn what_the_system_says_of_a_missing_file_is_said_once() {
    let here = folder("once");
    let (table, gone) = (here.join("points.csv"), here.join("gone.npy"));
    fs::write(&table, "x,y,label\n1,2,cat\n3,4,dog\n5,6,cat\n").unwrap();
    let (table, gone) = (text(&table), text(&gone));
    let noise = format!("file:{gone}");
    for words in [
        vec!["data", "inspect", table, "--labels", gone],
        vec!["data", "inspect", table, "--class-names", gone],
        vec!["data", "inspect", table, "--test", gone],
        vec!["data", "inspect", table, "--noise", &noise],
        vec!["noise", "--data", table, "--noise", &noise, "--out", "never.csv"],
        vec!["train", "--data", table, "--test", gone],
        vec!["train", "no-such-recipe.toml"],
        vec!["audit", table, "--class-names", gone],
        vec!["audit", "no-such-recipe.toml"],
        vec!["eval", gone, "--data", table],
        vec!["predict", gone, "--data", table],
        vec!["config", "show", "no-such-recipe.toml"],
        vec!["sweep", "run", "no-such-recipe.toml"],
    ] {
        let message = fails(&words);
        assert_eq!(message.to_lowercase().matches("no such file").count(), 1, "{words:?}: {message}");
    }
}
