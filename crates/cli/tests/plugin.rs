//! What a person is told of the plug-in: which pairs it finds, what it cannot do, and what a run is called then.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{Chance, command, fail, folder, succeed, text};

const NAMES: [&str; 4] = ["rose", "tulip", "bus", "lorry"];
/// No two classes are further apart than 4.
const TWO_LEVELS: &str = "all\n  flowers\n    rose\n    tulip\n  vehicles\n    bus\n    lorry\n";
/// Every two classes are 2 apart.
const ONE_LEVEL: &str = "all\n  rose\n  tulip\n  bus\n  lorry\n";

/// Four clouds, a quarter of the labels wrong.
fn write_table(path: &Path) {
    let (mut chance, mut table) = (Chance(7), String::from("a,b,c,label\n"));
    for i in 0..240 {
        let class = i % 4;
        let label = if i % 16 < 4 { (class + 1) % 4 } else { class };
        let centre = [[2.0, 1.0], [2.0, -1.0], [-2.0, 1.0], [-2.0, -1.0]][class];
        let row = [centre[0] + chance.next(), centre[1] + chance.next(), chance.next()];
        writeln!(table, "{:.4},{:.4},{:.4},{}", row[0], row[1], row[2], NAMES[label]).unwrap();
    }
    std::fs::write(path, table).unwrap();
}

/// Data with a tree, and how to train on it.
struct Trial {
    here: PathBuf,
}

impl Trial {
    fn new(test: &str) -> Self {
        let here = folder(test);
        write_table(&here.join("train.csv"));
        std::fs::write(here.join("two.txt"), TWO_LEVELS).unwrap();
        std::fs::write(here.join("one.txt"), ONE_LEVEL).unwrap();
        Self { here }
    }

    fn train(&self, out: &str, sets: &[&str]) -> Command {
        let mut command = command(&["train", "--data", text(&self.here.join("train.csv"))]);
        command.args(["--label-column", "label", "--out", text(&self.here.join(out))]);
        let always =
            ["host=cross-entropy", "plugin=negscale", "epochs=3", "batch=32", "hidden=[16]", "baseline=none"];
        for set in always.iter().chain(sets) {
            command.args(["--set", set]);
        }
        command
    }

    fn tree(&self, name: &str) -> String {
        format!("tree={}", self.here.join(name).display())
    }

    fn results(&self, out: &str) -> Value {
        read(&self.here.join(out).join("results.json"))
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_plug_in_that_a_tree_of_two_levels_leaves_nothing_to_do_is_refused_before_anything_is_written() {
    let trial = Trial::new("idle");
    let tree = trial.tree("two.txt");
    let problem = fail(&mut trial.train("run", &[&tree]));
    for word in [
        "no effect",
        "`two`",
        "2 of 6 class pairs related, 0 unrelated",
        "eta_max below 4",
        "plugin = \"none\"",
    ] {
        assert!(problem.contains(word), "{word}: {problem}");
    }
    assert!(!trial.here.join("run").exists(), "no folder of a run that cannot be");
    let flat = fail(&mut trial.train("run", &["tree=flat"]));
    assert!(flat.contains("eta_max below 4"), "{flat}");
    let unrelated = said(&succeed(&mut trial.train("unrelated", &["tree=unrelated"])));
    assert!(unrelated.contains("plug-in: 0 of 6 class pairs related, 6 unrelated"), "{unrelated}");
    let learnt = fail(&mut trial.train("run", &["tree=learnt", "negscale.eta_max=6"]));
    assert!(learnt.contains("eta_max below 6"), "{learnt}");
    succeed(&mut trial.train("alone", &[&tree, "plugin=none"]));
    assert_eq!(trial.results("alone")["method"], "cross-entropy");
}

#[test]
fn a_run_says_which_pairs_its_plug_in_finds_and_bears_its_name() {
    let trial = Trial::new("pairs");
    let output = succeed(&mut trial.train("run", &[&trial.tree("two.txt"), "negscale.eta_max=3"]));
    let words = said(&output);
    assert!(words.contains("plug-in: 2 of 6 class pairs related, 4 unrelated\n"), "{words}");
    assert!(!words.contains("warning"), "{words}");
    let results = trial.results("run");
    assert_eq!(
        (&results["method"], &results["plugin"]),
        (&"cross-entropy + negscale".into(), &"negscale".into())
    );
}

#[test]
fn the_pairs_of_a_tree_that_is_learnt_are_told_once_it_has_grown() {
    let trial = Trial::new("learnt");
    let words = said(&succeed(&mut trial.train("run", &["tree=learnt"])));
    let (before, after) = words.split_once("epoch   1/3").unwrap();
    assert!(!before.contains("class pairs") && after.matches("class pairs related").count() == 1, "{words}");
}

#[test]
fn an_idle_term_is_a_warning_and_the_title_says_which_one_acted() {
    let trial = Trial::new("partly");
    let sets = ["negscale.eta_min=1", "negscale.eta_max=1"];
    let tree = trial.tree("one.txt");
    let words = said(&succeed(&mut trial.train("run", &[&tree, sets[0], sets[1]])));
    assert!(words.contains("0 of 6 class pairs related, 6 unrelated"), "{words}");
    assert!(words.contains("warning: DCSA will be off"), "{words}");
    let method = "cross-entropy + negscale (SNOP alone)";
    assert!(words.starts_with(method), "{words}");
    assert_eq!(trial.results("run")["method"], method);
    let page = std::fs::read_to_string(trial.here.join("run/report.html")).unwrap();
    assert!(page.contains(&format!("{method} on ")), "its page bears the same name");
    let page = trial.here.join("all.html");
    succeed(&mut trial.train("alone", &[&tree, "plugin=none"]));
    let runs = ["run", "alone"].map(|run| trial.here.join(run));
    let table = support::fine(&["report", text(&runs[0]), text(&runs[1]), "--out", text(&page)]);
    assert!(table.contains("(SNOP alone)"), "{table}");
}

#[test]
fn ablations_are_judged_by_the_terms_that_they_keep() {
    let trial = Trial::new("ablations");
    let (tree, eta) = (trial.tree("one.txt"), ["negscale.eta_min=1", "negscale.eta_max=1"]);
    let problem = fail(&mut trial.train("dcsa", &[&tree, eta[0], eta[1], "plugin=no-snop"]));
    assert!(problem.contains("plug-in `no-snop`") && problem.contains("eta_min = 2"), "{problem}");
    let words = said(&succeed(&mut trial.train("snop", &[&tree, eta[0], eta[1], "plugin=no-dcsa"])));
    assert!(!words.contains("warning"), "{words}");
    assert_eq!(trial.results("snop")["method"], "cross-entropy + no-dcsa");
    let two = trial.tree("two.txt");
    for plugin in ["plugin=no-snop", "plugin=no-dcsa", "plugin=random-pairs"] {
        let problem = fail(&mut trial.train("run", &[&two, plugin]));
        assert!(problem.contains("no effect"), "{plugin}: {problem}");
    }
    succeed(&mut trial.train("weightless", &[&two, "negscale.lambda=0", "negscale.mu=0"]));
    assert_eq!(trial.results("weightless")["method"], "cross-entropy + negscale (weight 0)");
}

#[test]
fn refurbished_targets_are_refused_where_the_method_hands_over_no_beliefs() {
    let trial = Trial::new("beliefs");
    let wish = "negscale.targets=refurbished";
    let problem = fail(&mut trial.train("run", &[wish]));
    assert!(
        problem.contains("`cross-entropy`") && problem.contains("negscale.targets = \"given\""),
        "{problem}"
    );
    let mixed = ["host=dividemix", "dividemix.tap=mixed", wish];
    let problem = fail(&mut trial.train("run", &mixed));
    assert!(problem.contains("set dividemix.tap = \"unmixed\""), "{problem}");
    let problem = fail(&mut trial.train("run", &["host=disc", "disc.tap_all=true", wish]));
    assert!(problem.contains("set disc.tap_all = false"), "{problem}");
    assert!(!trial.here.join("run").exists(), "no folder of a run that cannot be");
    succeed(&mut trial.train("unmixed", &["host=dividemix", "dividemix.tap=unmixed", wish]));
    succeed(&mut trial.train("mixed", &["host=dividemix", "dividemix.tap=mixed"]));
}

/// Ends after the first batches, cleanly.
fn stopped(command: &mut Command) {
    let output = command.arg("--stop-with-input").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
}

#[test]
fn a_run_that_goes_on_under_other_instructions_says_so_and_records_both() {
    let trial = Trial::new("instructions");
    let train = || trial.train("run", &["plugin=none", "epochs=40"]);
    stopped(&mut train());
    let settings = trial.here.join("run/settings.toml");
    let recorded = |text: &str| -> String {
        let table: toml::Table = text.parse().unwrap();
        table["provenance"]["instructions"].as_str().unwrap().to_owned()
    };
    let written = std::fs::read_to_string(&settings).unwrap();
    let ours = recorded(&written);
    std::fs::write(&settings, written.replace(&format!("\"{ours}\""), "\"abacus\"")).unwrap();
    let words = said(&succeed(&mut train()));
    assert!(words.contains("the run resumes"), "{words}");
    assert!(words.contains("started with other CPU instructions (abacus)"), "{words}");
    let both = format!("abacus then {ours}");
    assert_eq!(recorded(&std::fs::read_to_string(&settings).unwrap()), both);
    assert_eq!(trial.results("run")["instructions"], both.as_str());
    assert!(!said(&succeed(&mut train())).contains("other instructions"), "a finished run computes nothing");
}

/// Changes what a finished run says of its instructions.
fn made_elsewhere(run: &Path) {
    let path = run.join("results.json");
    let mut results = read(&path);
    assert!(results["instructions"].as_str().is_some_and(|name| name.contains("libraries")), "{results}");
    results["instructions"] = "abacus".into();
    std::fs::write(&path, results.to_string()).unwrap();
}

#[test]
fn a_report_says_where_pairs_were_not_made_by_the_same_instructions() {
    let trial = Trial::new("compared");
    let tree = trial.tree("two.txt");
    let sets = [tree.as_str(), "negscale.eta_max=3"];
    succeed(&mut trial.train("with", &sets));
    succeed(&mut trial.train("alone", &[sets[0], "plugin=none"]));
    let (with, alone, page) =
        (trial.here.join("with"), trial.here.join("alone"), trial.here.join("all.html"));
    let report = || succeed(&mut command(&["report", text(&with), text(&alone), "--out", text(&page)]));
    let output = report();
    assert!(!said(&output).contains("instructions"), "{}", said(&output));
    made_elsewhere(&alone);
    let output = report();
    assert!(said(&output).contains("on CPUs with different instructions (abacus: 1;"), "{}", said(&output));
    let tables = String::from_utf8(output.stdout).unwrap();
    assert!(tables.contains("differ by more than the plug-in: 1."), "{tables}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("abacus: 1"), "the page says so too");
}

#[test]
fn a_sweep_says_where_pairs_were_not_made_by_the_same_instructions() {
    let here = folder("swept");
    write_table(&here.join("train.csv"));
    let recipe = "data = \"train.csv\"\nlabel_column = \"label\"\nhost = \"cross-entropy\"\nepochs = 2\nbatch = 32\n\
                  hidden = [16]\nbaseline = \"none\"\n[matrix]\nplugin = [\"none\", \"negscale\"]\n";
    std::fs::write(here.join("sweep.toml"), recipe).unwrap();
    let sweep = |verb: &str, more: &[&str]| {
        let mut command = command(&["sweep", verb, "sweep.toml"]);
        succeed(command.args(more).current_dir(&here))
    };
    sweep("run", &[]);
    let collect = || String::from_utf8(sweep("collect", &["--figure", "seconds"]).stdout).unwrap();
    assert!(!collect().contains("instructions"));
    let mut runs = std::fs::read_dir(here.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    made_elsewhere(&runs.find(|run| read(&run.join("results.json"))["plugin"] == "none").unwrap());
    let tables = collect();
    assert!(tables.contains("on CPUs with different instructions (abacus: 1;"), "{tables}");
    assert!(tables.contains("differ by more than the plug-in: 1."), "{tables}");
}
