//! The book has a page for every training method, and none is older than the method's card. What it repeats of the cards (the list of
//! methods, the contents, the line of facts on each page) is written from them by
//! `NEGSCALE_UPDATE=1 cargo test --release --workspace --test book`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_methods::host::{Card, Provenance};
use negscale_methods::hosts::METHODS;
use std::path::{Path, PathBuf};

const UPDATE: &str = "NEGSCALE_UPDATE=1 cargo test --release --workspace --test book";

/// The folder of the book's pages.
fn book() -> PathBuf {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book");
    let pages = book.join("src");
    if pages.is_dir() { pages } else { book }
}

fn path(name: &str) -> PathBuf {
    book().join("methods").join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page(name: &str) -> String {
    read(&path(name))
}

/// Fails if a file is not as the cards have it; where an update is asked for, writes it instead.
fn hold(path: &Path, wanted: &str) {
    if read(path) == wanted {
        return;
    }
    let name = path.file_name().unwrap().display();
    assert!(std::env::var_os("NEGSCALE_UPDATE").is_some(), "{name} is older than the cards: run {UPDATE}");
    std::fs::write(path, wanted).unwrap();
}

/// A text in which the lines after `mark` that begin with `prefix` are these.
fn with_lines(text: &str, mark: &str, prefix: &str, lines: &[String]) -> String {
    let (before, after) = text.split_once(mark).unwrap_or_else(|| panic!("no line `{}`", mark.trim()));
    let rest: Vec<&str> = after.split_inclusive('\n').skip_while(|line| line.starts_with(prefix)).collect();
    format!("{before}{mark}{}{}", lines.concat(), rest.concat())
}

fn source(card: &Card) -> &'static str {
    match card.provenance {
        Provenance::Standard => "textbook",
        Provenance::Paper => "paper",
        Provenance::PaperAndCode => "paper and code",
        Provenance::Code => "code",
        Provenance::Reconstruction => "reconstruction",
    }
}

/// What a page says of a card, in one line below its title.
fn facts(card: &Card) -> String {
    let provenance = match card.provenance {
        Provenance::Standard => "textbook",
        Provenance::Paper => "from the paper",
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

/// The title of a method's page, without what explains it.
fn title(card: &Card) -> String {
    let own = page(&format!("{}.md", card.id));
    let first = own.lines().next().and_then(|line| line.strip_prefix("# "));
    let title = first.unwrap_or_else(|| panic!("{}.md begins without a title, `# NAME`", card.id));
    title.split(": ").next().unwrap_or(title).to_owned()
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
        let path = path(&format!("{}.md", card.id));
        let own = read(&path);
        let (first, _) = own.split_once("\n\n").expect("a title, and an empty line below it");
        let line = format!("{}\n", facts(card));
        hold(&path, &with_lines(&own, &format!("{first}\n\n"), "`host = ", &[line]));
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
    let mut lines = vec![
        "| method | idea | paper | made from | networks | forward passes per sample and epoch |\n".to_owned(),
        "|---|---|---|---|---:|---|\n".to_owned(),
    ];
    for card in METHODS {
        let (Card { id, about, paper, nets, cost, .. }, source) = (card, source(card));
        let told = if card.wants_truth().is_some() { " (is told true labels)" } else { "" };
        lines.push(format!("| [`{id}`]({id}.md) | {about}{told} | {paper} | {source} | {nets} | {cost} |\n"));
    }
    let path = path("README.md");
    let mark = format!("<!-- The table is written by {UPDATE} -->\n");
    hold(&path, &with_lines(&read(&path), &mark, "|", &lines));
}

#[test]
fn the_contents_of_the_book_name_every_method() {
    let path = book().join("SUMMARY.md");
    if !path.exists() {
        return; // pages without a book around them
    }
    let line = |card: &&Card| format!("  - [{}](methods/{}.md)\n", title(card), card.id);
    let lines: Vec<String> = METHODS.iter().map(line).collect();
    let mark = "- [Training methods](methods/README.md)\n";
    hold(&path, &with_lines(&read(&path), mark, "  - [", &lines));
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
    let old = "before\nmark\n| 1 |\n| 2 |\nafter\n| 3 |\n";
    assert_eq!(with_lines(old, "mark\n", "|", &["| 4 |\n".into()]), "before\nmark\n| 4 |\nafter\n| 3 |\n");
}
