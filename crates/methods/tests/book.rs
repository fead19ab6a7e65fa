//! The book has a page for every training method, and none is older than the method's card.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_methods::host::{Card, Provenance};
use negscale_methods::hosts::METHODS;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/methods").join(name)
}

fn page(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a page says of a card, in one line below its title.
fn facts(card: &Card) -> String {
    let provenance = match card.provenance {
        Provenance::Standard => "textbook",
        Provenance::PaperAndCode => "from the paper and its authors' code",
        Provenance::Code => "from its authors' code",
        Provenance::Reconstruction => "a reconstruction",
    };
    let networks = if card.nets == 1 { "1 network".into() } else { format!("{} networks", card.nets) };
    let paper = if card.paper == "-" { String::new() } else { format!("{}; ", card.paper) };
    let cost = card.cost;
    format!(
        "`host = \"{}\"`: {paper}{provenance}; {networks}; forward passes per sample and epoch: {cost}.",
        card.id
    )
}

/// The second cell of the row of a table whose first cell is the name of this setting.
fn default_in<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let cell = format!("| `{key}` |");
    text.lines().find_map(|line| line.strip_prefix(&cell)?.split('|').next().map(str::trim))
}

/// Whether a cell begins with this value, in whatever clothes.
fn says(cell: &str, value: &toml::Value) -> bool {
    let bare: String = cell.chars().filter(|c| !"`\"".contains(*c)).collect();
    match value {
        toml::Value::String(text) => bare.starts_with(text.as_str()),
        toml::Value::Integer(_) | toml::Value::Float(_) => {
            let wanted = value.as_float().unwrap_or_else(|| value.as_integer().unwrap() as f64);
            let first = bare.split([' ', ',', ':', ';']).next().unwrap_or_default();
            let found = match first.split_once('/') {
                Some((a, b)) => a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).map(|(a, b)| a / b),
                None => first.parse::<f64>().ok(),
            };
            found.is_some_and(|found| (found - wanted).abs() <= 1e-9 * wanted.abs())
        }
        other => bare.starts_with(&other.to_string()),
    }
}

/// Pages in the same folder that a page links to.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.split('#').next().unwrap_or_default().to_owned());
    targets.filter(|target| target.ends_with(".md") && !target.contains('/')).collect()
}

#[test]
fn every_method_has_a_page_with_the_facts_of_its_card_and_all_settings_as_they_are() {
    let mut stale = Vec::new();
    for card in METHODS {
        let own = page(&format!("{}.md", card.id));
        if !own.contains(&facts(card)) {
            stale.push(format!("{}.md misses this line: {}", card.id, facts(card)));
        }
        let linked: Vec<String> = links(&own).iter().map(|link| page(link)).collect();
        for (key, value) in (card.settings)() {
            // Its own table first; settings shared with another method may be on that one's page.
            let cell =
                default_in(&own, &key).or_else(|| linked.iter().find_map(|text| default_in(text, &key)));
            match cell {
                None => stale.push(format!("{}.md: no row for `{key}`, by default {value}", card.id)),
                Some(cell) if !says(cell, &value) => {
                    stale.push(format!("{}.md: `{key}` is {value} by default, not {cell}", card.id));
                }
                Some(_) => {}
            }
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn the_list_of_methods_in_the_book_is_that_of_the_program() {
    let mut wanted =
        String::from("| method | idea | paper | networks | forward passes per sample and epoch |\n");
    wanted.push_str("|---|---|---|---:|---|\n");
    for card in METHODS {
        let Card { id, about, paper, nets, cost, .. } = card;
        let mark = if card.provenance == Provenance::Reconstruction { " (a reconstruction)" } else { "" };
        let told = if card.wants_truth().is_some() { " (is told true labels)" } else { "" };
        wanted
            .push_str(&format!("| [`{id}`]({id}.md) | {about}{told} | {paper}{mark} | {nets} | {cost} |\n"));
    }
    assert!(
        page("README.md").contains(&wanted),
        "docs/book/src/methods/README.md must have this table:\n\n{wanted}"
    );
}

#[test]
fn the_checks_see_stale_pages() {
    let text = "| `tau` | 0.5 | published |\n| `view` | `\"weak\"` | |\n| `delta` | 1/30 (10 of 300) | |\n";
    assert!(says(default_in(text, "tau").unwrap(), &0.5.into()));
    assert!(!says(default_in(text, "tau").unwrap(), &0.6.into()));
    assert!(says(default_in(text, "view").unwrap(), &"weak".into()));
    assert!(says(default_in(text, "delta").unwrap(), &(1.0 / 30.0).into()));
    assert!(default_in(text, "missing").is_none());
    assert_eq!(links("see [SELC](selc.md#steps) and [x](../y.md)"), ["selc.md"]);
}
