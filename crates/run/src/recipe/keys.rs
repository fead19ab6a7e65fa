//! Every key there is, with default and meaning: what is accepted, and what is explained, by the same list.

use super::meanings::{self, Row};
use super::value::Expected;
use negscale_audit::gmm::GmmSettings;
use negscale_methods::settings::table;
use negscale_methods::{Error, Result, hosts};
use toml::{Table, Value};

/// A key of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its table; empty for keys outside tables.
    pub table: String,
    /// Its name.
    pub name: String,
    /// What its value must be.
    pub expected: Expected,
    /// Its default, as text.
    pub default: String,
    /// What it means, in a line.
    pub meaning: String,
}

impl Key {
    /// Table and name, as for `--set`.
    pub fn path(&self) -> String {
        join(&self.table, &self.name)
    }
}

pub(super) fn join(table: &str, name: &str) -> String {
    if table.is_empty() { name.into() } else { format!("{table}.{name}") }
}

/// A table of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDoc {
    /// Its name; empty for keys outside tables.
    pub name: String,
    /// What it is about, in a line.
    pub about: String,
    /// Its keys.
    pub keys: Vec<Key>,
}

fn of_rows(name: &str, about: &str, rows: &[Row]) -> TableDoc {
    let keys = rows.iter().map(|&(key, expected, default, meaning)| Key {
        table: name.into(),
        name: key.into(),
        expected,
        default: default.into(),
        meaning: meaning.into(),
    });
    TableDoc { name: name.into(), about: about.into(), keys: keys.collect() }
}

/// Tables by their defaults; a table inside gets a table of its own. A key without a meaning of its own has that of the key
/// it is inside of.
fn of_defaults(name: &str, about: &str, defaults: &Table, meanings: &[(&str, &str)]) -> Vec<TableDoc> {
    let rank = |key: &str| meanings.iter().position(|(known, _)| *known == key).unwrap_or(meanings.len());
    let mut order: Vec<(&String, &Value)> = defaults.iter().collect();
    order.sort_by_key(|(key, _)| rank(key));
    let (mut keys, mut inner) = (Vec::new(), Vec::new());
    for (key, value) in order {
        let meaning = meanings.get(rank(key)).map_or("", |(_, meaning)| meaning);
        if let Value::Table(table) = value {
            let names: Vec<&str> = table.keys().map(String::as_str).collect();
            let said = |name: &str| {
                let dotted = format!("{key}.{name}");
                meanings.iter().find(|(known, _)| *known == dotted).map_or(meaning, |(_, own)| own)
            };
            let meanings: Vec<(&str, &str)> = names.iter().map(|name| (*name, said(name))).collect();
            inner.extend(of_defaults(&join(name, key), about, table, &meanings));
        } else {
            keys.push(Key {
                table: name.into(),
                name: key.clone(),
                expected: Expected::of(key, value),
                default: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                meaning: meaning.into(),
            });
        }
    }
    let mut all = vec![TableDoc { name: name.into(), about: about.into(), keys }];
    all.extend(inner);
    all
}

/// All tables, in the order in which they are written; the first holds the keys outside tables.
pub fn tables() -> Vec<TableDoc> {
    let mut all = vec![
        of_rows("", "data, method, network and training", meanings::TOP),
        of_rows("optimiser", "how parameters are updated", meanings::OPTIMISER),
        of_rows("schedule", "how the learning rate changes over training", meanings::SCHEDULE),
    ];
    let negscale = table(&::negscale::Settings::default());
    all.extend(of_defaults("negscale", "the plug-in", &negscale, meanings::NEGSCALE));
    all.push(of_rows("audit", "which labels are considered wrong", meanings::AUDIT));
    let mixture = table(&GmmSettings::default());
    all.extend(of_defaults("audit.mixture", "the Gaussian mixture over losses", &mixture, meanings::MIXTURE));
    for card in hosts::METHODS {
        all.extend(of_defaults(card.id, card.about, &(card.settings)(), card.meanings));
    }
    all
}

/// All keys, in the order in which they are written.
pub fn keys() -> Vec<Key> {
    tables().into_iter().flat_map(|table| table.keys).collect()
}

/// The keys that a name stands for: one key (`epochs`, `negscale.lambda`), or all of a table (`optimiser`).
pub fn find(name: &str) -> Result<Vec<Key>> {
    let all = keys();
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let inside = format!("{name}.");
    let of_table = |key: &&Key| key.table == name || key.table.starts_with(&inside);
    let found: Vec<Key> = all.iter().filter(|key| key.path() == name || of_table(key)).cloned().collect();
    if !found.is_empty() || hosts::names().contains(&name) {
        return Ok(found);
    }
    // A name without its table is enough where it is the only one.
    let bare: Vec<Key> = all.iter().filter(|key| key.name == name).cloned().collect();
    if !bare.is_empty() {
        return Ok(bare);
    }
    let paths: Vec<String> = all.iter().map(Key::path).collect();
    let tables: Vec<String> = tables().into_iter().map(|table| table.name).collect();
    let known = paths.iter().chain(&tables).map(String::as_str).filter(|name| !name.is_empty());
    let near = negscale_records::nearest(name, known.chain(all.iter().map(|key| key.name.as_str())));
    Err(Error::Settings {
        place: "of a recipe".into(),
        problem: format!(
            "there is no key or table `{name}`; did you mean `{}`? Leave the name out to list all keys",
            near.first().unwrap_or(&"")
        ),
    })
}
