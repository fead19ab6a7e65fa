//! Arms of a sweep: what is searched, chosen, resumed, and what the tables say of a claim.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use support::sweeps::{arrange, remains, said, sweep};
use support::{fail, folder, succeed};

type Row = BTreeMap<String, String>;

const COMMON: &str = "epochs = 2\nvalidation = 0.2\ntree = \"tree.txt\"";
const ARMS: &str = r#"
noise = ["sym:0.1", "sym:0.3"]
seed = [1, 2, 3]

[arms]
host = { plugin = "none" }
tuned-host = { like = "host", search = { "optimiser.lr" = [1e-6, 0.05] } }
plugin = { plugin = "negscale", search = { "negscale.lambda" = [0.1, 1.0] } }
permuted = { like = "plugin", search = "plugin", tree = "permuted:{seed}:tree.txt" }

[search]
seeds = [11, 12]
"#;

fn arranged(name: &str, common: &str, matrix: &str) -> std::path::PathBuf {
    let here = folder(name);
    arrange(&here, common, matrix);
    std::fs::write(
        here.join("tree.txt"),
        "all\n  a\n    b\n      class 0\n      class 1\n  c\n    d\n      class 2\n",
    )
    .unwrap();
    here
}

/// How many runs a dry run lists in each state; development runs apart.
fn listed(here: &Path, more: &[&str]) -> BTreeMap<String, usize> {
    let words: Vec<&str> = ["run", "sweep.toml", "--dry-run"].iter().chain(more).copied().collect();
    let mut counts = BTreeMap::new();
    for line in said(&succeed(&mut sweep(here, &words))).0.lines() {
        let state = line.split(' ').next().unwrap();
        let search = if line.contains("search: ") { " search" } else { "" };
        *counts.entry(format!("{state}{search}")).or_default() += 1;
    }
    counts
}

fn counted<const N: usize>(pairs: [(&str, usize); N]) -> BTreeMap<String, usize> {
    pairs.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
}

fn read(path: &Path) -> Vec<Row> {
    csv::Reader::from_path(path).unwrap().deserialize().map(|row| row.unwrap()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Two-sided p of three differences: Student's law with two degrees of freedom has a closed form.
fn p_of_three(values: &[f64]) -> f64 {
    let mean = mean(values);
    let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let t = mean.abs() * 3f64.sqrt() / deviation;
    if mean == 0.0 { 1.0 } else { 1.0 - 1.0 / (1.0 + 2.0 / (t * t)).sqrt() }
}

#[test]
fn a_search_chooses_on_its_own_seeds_and_the_rest_follows_it() {
    let here = arranged("arms", COMMON, ARMS);
    assert_eq!(listed(&here, &[]), counted([("missing", 6), ("missing search", 16), ("waiting", 18)]));
    assert_eq!(listed(&here, &["--only", "arm=host"]), counted([("missing", 6)]));
    let tuned = ["--only", "arm=tuned-host,noise=sym:0.1,seed=1"];
    assert_eq!(listed(&here, &tuned), counted([("missing search", 4), ("waiting", 1)]));

    let (_, first) = said(&succeed(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(first.contains("22 runs: 0 already done, 22 to do"), "{first}");
    assert!(
        first.contains("40 runs: 22 already done, 18 to do") && first.contains("40 of 40 runs are done"),
        "{first}"
    );
    let (_, second) = said(&succeed(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(second.contains("40 already done, 0 to do"), "{second}");

    let collect = ["collect", "sweep.toml", "--out", "tables", "--figure", "test_last,validation_last10"];
    let (text, _) = said(&succeed(&mut sweep(&here, &collect)));
    let lines = read(&here.join("tables/runs.csv"));
    assert_eq!(lines.len(), 40);

    // The larger mean over the development seeds is chosen, cell by cell, and used with the seeds of the matrix.
    let chosen: toml::Table =
        std::fs::read_to_string(here.join("runs/search-sweep/chosen.toml")).unwrap().parse().unwrap();
    let choices = chosen["choice"].as_array().unwrap();
    assert_eq!(choices.len(), 4);
    for (arm, key) in [("tuned-host", "optimiser.lr"), ("plugin", "negscale.lambda")] {
        for noise in ["sym:0.1", "sym:0.3"] {
            let full = noise.replace("sym", "sym-incl");
            let mut means: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            let of_arm = |line: &&Row| line["arm"] == arm && line["noise"] == full;
            for line in lines.iter().filter(of_arm).filter(|line| line["development"] == "yes") {
                assert!(["11", "12"].contains(&line["seed"].as_str()) && line["seed"] == line["noise_seed"]);
                means.entry(&line[key]).or_default().push(number(line, "validation_last10"));
            }
            assert!(means.len() == 2 && means.values().all(|values| values.len() == 2), "{means:?}");
            let best = means.iter().max_by(|a, b| mean(a.1).total_cmp(&mean(b.1))).unwrap();
            let is_tie = means.values().all(|values| mean(values) == mean(best.1));
            let choice = choices.iter().find(|choice| {
                choice["arm"].as_str() == Some(arm)
                    && choice["cell"].as_str() == Some(&format!("noise={noise}"))
            });
            let value = choice.unwrap()["chosen"][key].as_float().unwrap();
            // Among equals the first of the grid.
            let wanted: f64 = if is_tie { 0.1 } else { best.0.parse().unwrap() };
            assert_eq!(value, wanted, "{arm} {noise} {means:?}");
            let followers: &[&str] = if arm == "plugin" { &["plugin", "permuted"] } else { &[arm] };
            let used = lines.iter().filter(|line| {
                followers.contains(&line["arm"].as_str())
                    && line["noise"] == full
                    && line["development"] == "no"
            });
            let used: Vec<f64> = used.map(|line| number(line, key)).collect();
            assert_eq!(used, vec![value; 3 * followers.len()]);
        }
    }
    assert!(
        choices.iter().all(|choice| choice["arm"].as_str() != Some("tuned-host")
            || choice["chosen"]["optimiser.lr"].as_float() == Some(0.05)),
        "a rate that learns nothing is not chosen"
    );
    for line in lines.iter().filter(|line| line["arm"] == "permuted") {
        assert_eq!(line["tree"], format!("permuted:{}:tree.txt", line["seed"]));
    }

    // Differences by seed, their test, and Holm's correction over the two cells.
    let table = read(&here.join("tables/test_last-paired.csv"));
    let names: BTreeSet<&str> = table.iter().map(|row| row["difference of"].as_str()).collect();
    assert_eq!(names, BTreeSet::from(["plugin - host", "plugin - tuned-host", "plugin - permuted"]));
    let of = |arm: &str, noise: &str, seed: &str| {
        let is_it = |line: &&Row| {
            line["arm"] == arm
                && line["noise"] == noise
                && line["seed"] == seed
                && line["development"] == "no"
        };
        number(lines.iter().find(is_it).unwrap(), "test_last")
    };
    for name in names {
        let family: Vec<&Row> = table.iter().filter(|row| row["difference of"] == name).collect();
        let mut tests = Vec::new();
        for row in &family {
            let other = name.trim_start_matches("plugin - ");
            let differences = ["1", "2", "3"]
                .map(|seed| of("plugin", &row["noise"], seed) - of(other, &row["noise"], seed));
            assert!((number(row, "difference") - mean(&differences)).abs() < 1e-12, "{row:?}");
            assert_eq!(row["difference n"], "3");
            assert!((number(row, "p") - p_of_three(&differences)).abs() < 1e-9, "{row:?} {differences:?}");
            tests.push(number(row, "p"));
        }
        assert_eq!(tests.len(), 2);
        let (small, large) = (tests[0].min(tests[1]), tests[0].max(tests[1]));
        let small_by_holm = (2.0 * small).min(1.0);
        for (row, p) in family.iter().zip(&tests) {
            let wanted = if *p == small { small_by_holm } else { large.max(small_by_holm) };
            assert!((number(row, "p by Holm") - wanted).abs() < 1e-12, "{row:?}");
        }
    }
    assert!(text.contains("host 0, tuned-host 4, plugin 4, permuted as chosen for plugin"), "{text}");
    for other in ["host", "tuned-host", "permuted"] {
        let drawing = std::fs::read_to_string(here.join(format!("tables/test_last-{other}.svg"))).unwrap();
        assert!(drawing.contains(&format!("test_last: plugin minus {other}</title>")), "{other}");
        for noise in ["sym-incl:0.1", "sym-incl:0.3"] {
            assert!(drawing.contains(noise), "{other} {noise}");
        }
    }
    assert!(
        text.contains("chosen by validation_last10 on 2 development seeds.") && !text.contains("Warning"),
        "{text}"
    );
    assert_eq!(read(&here.join("tables/search.csv")).len(), 4);
    let arms = read(&here.join("tables/test_last.csv"));
    assert_eq!(arms.len(), 4, "a row for each arm");

    // A development run that is lost reopens the question; the same command answers it as before.
    let before = remains_of_runs(&here);
    let lost = lines.iter().find(|line| line["development"] == "yes" && line["arm"] == "plugin").unwrap();
    std::fs::remove_file(here.join("runs").join(&lost["run"]).join("results.json")).unwrap();
    let (text, _) = said(&succeed(&mut sweep(&here, &["status", "sweep.toml"])));
    assert!(text.contains("34 runs: 33 done, 1 missing") && text.contains("6 more wait"), "{text}");
    succeed(&mut sweep(&here, &["run", "sweep.toml"]));
    assert_eq!(remains_of_runs(&here), before);
}

/// Of all runs, the folder of the searches left out.
fn remains_of_runs(here: &Path) -> BTreeMap<String, String> {
    let aside = here.join("search-sweep");
    std::fs::rename(here.join("runs/search-sweep"), &aside).unwrap();
    let all = remains(&here.join("runs"));
    std::fs::rename(aside, here.join("runs/search-sweep")).unwrap();
    all
}

#[test]
fn a_choice_on_the_test_set_and_unequal_budgets_are_said() {
    let arms = ARMS
        .replace("[0.1, 1.0]", "[1.0]")
        .replace("seeds = [11, 12]", "seeds = [11, 12]\nfigure = \"test_last\"\nper = [\"host\"]");
    let here = arranged("budgets", COMMON, &arms.replace("[1, 2, 3]", "[1, 2]"));
    // One choice for both noises: two points x two seeds x two noises, and one point of the plug-in.
    assert_eq!(listed(&here, &[]), counted([("missing", 4), ("missing search", 12), ("waiting", 12)]));
    let (_, notes) = said(&succeed(&mut sweep(&here, &["run", "sweep.toml"])));
    assert!(notes.contains("unequal search budgets, `plugin` 2 and `tuned-host` 4 runs"), "{notes}");
    let (text, _) = said(&succeed(&mut sweep(&here, &["collect", "sweep.toml"])));
    assert!(text.contains("TEST SET") && text.contains("Warning: unequal search budgets"), "{text}");
    assert!(text.contains("in test_last10 in %") && text.contains("in test_last in %"), "{text}");
    assert!(text.contains("tuned-host  host=cross-entropy"), "{text}");
}

#[test]
fn what_would_spoil_a_comparison_is_refused_before_anything_runs() {
    let refuse = |name: &str, common: &str, arms: &str, words: &[&str]| {
        let here = arranged(name, common, arms);
        let error = fail(&mut sweep(&here, &["run", "sweep.toml"]));
        words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
        assert!(!here.join("runs").exists());
    };
    refuse(
        "same-seeds",
        COMMON,
        &ARMS.replace("[11, 12]", "[2, 12]"),
        &["[search] `seeds`", "seed 2", "use others"],
    );
    let none = COMMON.replace("0.2", "0.0");
    refuse("nothing-held-out", &none, ARMS, &["no `validation_last10`", "figure = \"test_last10\""]);
    refuse(
        "set-twice",
        COMMON,
        &ARMS.replace("noise = [", "plugin = [\"none\"]\nnoise = ["),
        &["both [matrix] and this arm set `plugin`"],
    );
    let here = arranged("two-recipes", COMMON, ARMS);
    let error = fail(&mut sweep(&here, &["run", "sweep.toml", "sweep.toml"]));
    assert!(error.contains("give it alone"), "{error}");
}
