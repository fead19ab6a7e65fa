//! Completions and manual pages.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn negscale(arguments: &[&str]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_negscale")).args(arguments).output().unwrap();
    (out.status.success(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

#[test]
fn every_shell_gets_a_script_that_knows_verbs_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let (is_fine, script) = negscale(&["completions", shell]);
        assert!(is_fine, "{script}");
        for word in ["audit", "sweep", "label-column"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let (is_fine, words) = negscale(&["completions", "cmd"]);
    assert!(!is_fine && words.contains("bash"), "{words}");
}

#[test]
fn bash_accepts_its_script() {
    let (_, script) = negscale(&["completions", "bash"]);
    let checked = Command::new("bash").args(["-n", "-c", &script]).status();
    // Where there is no bash, nobody uses its script.
    assert!(checked.map_or(true, |status| status.success()));
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    let (is_fine, words) = negscale(&["man", "--out", out.to_str().unwrap()]);
    assert!(is_fine, "{words}");
    for name in ["negscale", "negscale-audit", "negscale-sweep-collect", "negscale-data-inspect"] {
        let page = std::fs::read_to_string(out.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let audit = std::fs::read_to_string(out.join("negscale-audit.1")).unwrap();
    assert!(audit.contains("negscale audit table.csv"), "examples are in it");
}
