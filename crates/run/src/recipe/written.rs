//! What people write: text to tables, and values checked one by one.

use super::keys::Key;
use super::layers::wrong;
use super::value::{Expected, describe};
use negscale_audit::VerdictSettings;
use negscale_audit::gmm::GmmSettings;
use negscale_data::NoiseSpec;
use negscale_data::own::Header;
use negscale_methods::{Error, Result, hosts, plugins, settings};
use toml::{Table, Value};

/// The text of a recipe as a table.
pub(super) fn parse(place: &str, text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let number = before.matches('\n').count();
        let line = text.lines().nth(number).unwrap_or_default().trim();
        let problem = format!("{}: `{line}`", error.message().trim().replace('\n', "; "));
        wrong(format!("in {place}, line {}", number + 1), problem)
    })
}

/// Puts a value at a dotted path.
pub(super) fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.into(), value)),
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The value, if it is of the right kind and, where it is a name, names something.
pub(super) fn check(key: &Key, value: Value, place: &str) -> Result<Value> {
    let path = key.path();
    let at = format!("in {place}, `{path}`");
    let said = describe(&value);
    let Some(value) = key.expected.take(value) else {
        return Err(wrong(at, format!("it must be {}; it is {said}", key.expected.words())));
    };
    let name = value.as_str().unwrap_or_default();
    let alone = || Table::from_iter([(key.name.clone(), value.clone())]);
    let checked = match (key.table.as_str(), key.name.as_str()) {
        (_, _)
            if key.expected == Expected::Text && name.is_empty() && key.default == super::meanings::UNSET =>
        {
            Ok(())
        }
        ("", "noise") => name.parse::<NoiseSpec>().map(drop).map_err(Error::from),
        ("", "tree") => super::permuted(name).map(drop),
        ("", "header") => name.parse::<Header>().map(drop).map_err(|problem| wrong(&at, problem)),
        ("", "host") => hosts::card(name).map(drop),
        ("", "baseline") if name != "none" => hosts::card(name).map(drop),
        ("", "plugin") => plugins::card(name).map(drop),
        ("", "net") if name != "auto" => negscale_nets::card(name).map(drop).map_err(Error::from),
        ("negscale", _) => settings::read::<::negscale::Settings>("negscale", &alone()).map(drop),
        ("audit", "losses") => settings::read::<VerdictSettings>("audit", &alone()).map(drop),
        ("audit.mixture", _) => settings::read::<GmmSettings>("audit.mixture", &alone()).map(drop),
        _ => Ok(()),
    };
    checked.map_err(|error| match error {
        Error::Settings { problem, .. } => wrong(at, problem),
        // Its own name for the setting would be said twice.
        Error::Data(negscale_data::Error::Setting { value, requirement, .. }) => {
            wrong(at, format!("{value}: {requirement}"))
        }
        error => wrong(at, error.to_string()),
    })?;
    Ok(value)
}
