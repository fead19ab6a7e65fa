//! Dependencies go along the flow of data only: between crates, and between modules where a crate is large.
//!
//! The flow of crates is the order of `members` in the workspace; that of modules is below. The drawing in `docs/house.md` is made here:
//! `NEGSCALE_UPDATE=1 cargo test --release -p negscale-records --test floor_plan` brings it up to date.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules in the order in which they may know each other: each knows those before it. All know the error of their crate.
const MODULES: &[(&str, &[&str])] = &[
    ("methods", &["settings", "host", "kit", "hosts", "plugins", "trainer"]),
    (
        "audit",
        &[
            "error",
            "gmm",
            "latent",
            "estimate",
            "ledger",
            "verdict",
            "findings",
            "measures",
            "table",
            "correction",
            "rank",
        ],
    ),
    ("nets", &["optim", "schedule", "ema", "networks", "scan", "model"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> toml::Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Crates in the order of the flow, each with the crates of ours that it depends on.
fn crates() -> Vec<(String, BTreeSet<String>)> {
    let workspace = read(&root().join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().unwrap().clone();
    let of_ours = |table: &toml::Table| -> BTreeSet<String> {
        let names = table.keys().filter(|name| name.starts_with("negscale"));
        names.map(|name| name.trim_start_matches("negscale-").to_owned()).collect()
    };
    let crate_of = |member: &toml::Value| {
        let manifest = read(&root().join(member.as_str().unwrap()).join("Cargo.toml"));
        let name = manifest["package"]["name"].as_str().unwrap().trim_start_matches("negscale-").to_owned();
        let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
        let all = kinds.iter().filter_map(|kind| manifest.get(*kind)?.as_table());
        (name, all.flat_map(of_ours).collect())
    };
    members.iter().map(crate_of).collect()
}

/// Whether a member is published; those that are not only serve the work on the others.
fn is_published(name: &str) -> bool {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    manifest.exists() && read(&manifest)["package"].get("publish").is_none()
}

#[test]
fn crates_depend_only_on_crates_before_them_in_the_flow() {
    let all = crates();
    let place = |name: &str| all.iter().position(|(other, _)| other == name);
    for (at, (name, uses)) in all.iter().enumerate() {
        for used in uses {
            let found = place(used).unwrap_or_else(|| unreachable!("{name} uses {used}, which is no member"));
            assert!(found < at, "{name} depends on {used}, against the flow (see docs/house.md)");
        }
    }
}

#[test]
fn crates_without_tensors_stay_without() {
    let all: BTreeMap<String, BTreeSet<String>> = crates().into_iter().collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut open = ["audit", "data", "report", "similarity"].map(str::to_owned).to_vec();
    while let Some(name) = open.pop() {
        if known.insert(name.clone()) {
            open.extend(all[&name].iter().cloned());
        }
    }
    for name in known {
        let manifest = read(&root().join("crates").join(&name).join("Cargo.toml"));
        let burn = manifest.get("dependencies").and_then(|all| all.get("burn"));
        let is_optional =
            |burn: &toml::Value| burn.get("optional").and_then(toml::Value::as_bool) == Some(true);
        assert!(burn.is_none_or(is_optional), "{name} must not depend on burn");
    }
}

/// The modules of a crate that the code of a module names; comments do not count.
fn named(module: &Path, found: &mut BTreeSet<String>) {
    if module.is_dir() {
        for entry in fs::read_dir(module).unwrap() {
            named(&entry.unwrap().path(), found);
        }
        return;
    }
    let text = fs::read_to_string(module).unwrap();
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    for part in code.join("\n").split("crate::").skip(1) {
        let word =
            |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        if let Some(list) = part.strip_prefix('{') {
            let list = list.split_once("};").map_or(list, |(list, _)| list);
            found.extend(list.split(',').map(|item| word(item.trim())));
        } else {
            found.insert(word(part));
        }
    }
}

#[test]
fn modules_know_only_those_before_them() {
    for (name, modules) in MODULES {
        let source = root().join("crates").join(name).join("src");
        for (at, module) in modules.iter().enumerate() {
            let (folder, file) = (source.join(module), source.join(format!("{module}.rs")));
            let mut found = BTreeSet::new();
            [folder, file].iter().filter(|path| path.exists()).for_each(|path| named(path, &mut found));
            for later in &modules[at + 1..] {
                assert!(
                    !found.contains(*later),
                    "crates/{name}: module {module} knows {later}, which comes after it"
                );
            }
        }
    }
}

/// The graph without edges that follow from others, as Mermaid, which pages of repositories draw.
fn drawing() -> String {
    let all = crates();
    let uses: BTreeMap<&str, &BTreeSet<String>> =
        all.iter().map(|(name, uses)| (name.as_str(), uses)).collect();
    fn reaches(uses: &BTreeMap<&str, &BTreeSet<String>>, from: &str, to: &str) -> bool {
        uses[from].iter().any(|next| next == to || reaches(uses, next, to))
    }
    let mut text = "```mermaid\nflowchart LR\n".to_owned();
    for (name, direct) in all.iter().filter(|(name, _)| is_published(name)) {
        for used in direct {
            let follows = direct.iter().any(|other| other != used && reaches(&uses, other, used));
            if !follows {
                text.push_str(&format!("    {used} --> {name}\n"));
            }
        }
    }
    text + "```\n"
}

#[test]
fn the_house_shows_the_graph_as_it_is() {
    const MARKS: [&str; 2] = ["<!-- graph -->\n", "<!-- /graph -->"];
    let path = root().join("docs/house.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (shown, after) = rest.split_once(MARKS[1]).unwrap();
    let wanted = drawing();
    if shown != wanted && std::env::var_os("NEGSCALE_UPDATE").is_some() {
        fs::write(&path, [before, MARKS[0], &wanted, MARKS[1], after].concat()).unwrap();
        return;
    }
    assert_eq!(
        shown, wanted,
        "docs/house.md shows another graph; the head of this file says how to update it"
    );
}
