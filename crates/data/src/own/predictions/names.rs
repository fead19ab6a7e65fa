//! Which columns hold the probabilities of which classes.

use crate::own::header::{self, INDEX, PATHS, is_number};
use negscale_records::did_you_mean;

/// Columns by their places.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Names {
    /// Columns of probabilities, in the order of the classes.
    pub places: Vec<usize>,
    /// Their names.
    pub names: Option<Vec<String>>,
    /// Column of items' numbers.
    pub index: Option<usize>,
    /// Column of ids.
    pub id: Option<usize>,
}

/// The first names of a list.
pub(super) fn listing<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut some: Vec<&str> = names.take(21).collect();
    if some.len() > 20 {
        some[20] = "...";
    }
    some.join(", ")
}

/// Which field stands for each class by its number, if fields are the numbers 0 to C - 1 in some order.
fn by_number(fields: &[&str]) -> Option<Vec<usize>> {
    let place = |class: usize| fields.iter().position(|field| *field == class.to_string());
    (0..fields.len()).map(place).collect()
}

/// Which field is each class, if fields are the classes in some order.
fn by_name(fields: &[&str], classes: &[String]) -> Option<Vec<usize>> {
    let place = |class: &String| fields.iter().position(|field| field == class);
    let places: Option<Vec<usize>> = classes.iter().map(place).collect();
    places.filter(|_| fields.len() == classes.len())
}

/// Whether the first line is a header; `None` where it could be a prediction just as well.
pub(super) fn is_header(fields: &[&str], classes: Option<&[String]>, tolerance: f64) -> Option<bool> {
    if fields.iter().any(|field| !is_number(field)) {
        return Some(true);
    }
    let is_named = by_number(fields).is_some() || classes.is_some_and(|c| by_name(fields, c).is_some());
    let numbers = fields.iter().filter_map(|field| field.parse::<f64>().ok());
    let is_distribution =
        numbers.clone().all(|p| p >= 0.0) && (numbers.sum::<f64>() - 1.0).abs() <= tolerance;
    match (is_named, is_distribution) {
        (false, _) => Some(false),
        (true, false) => Some(true),
        (true, true) => None,
    }
}

impl Names {
    /// Columns without names: all are probabilities.
    pub fn unnamed(columns: usize) -> Self {
        Self { places: (0..columns).collect(), names: None, index: None, id: None }
    }

    /// What columns of these names are, or what is wrong.
    pub fn resolve(fields: &[&str], classes: Option<&[String]>) -> Result<Self, String> {
        if let Some(at) = (1..fields.len()).find(|&at| fields[..at].contains(&fields[at])) {
            return Err(format!("two columns are called `{}`: rename one", fields[at].escape_debug()));
        }
        let is_class = |at: usize| classes.is_some_and(|classes| classes.iter().any(|c| c == fields[at]));
        let others: Vec<usize> = (0..fields.len()).filter(|&at| !is_class(at)).collect();
        let index = others.iter().copied().find(|&at| fields[at].eq_ignore_ascii_case(INDEX));
        let is_key = |at: usize| {
            let is_place = PATHS.iter().any(|name| fields[at].eq_ignore_ascii_case(name));
            is_place || header::is_id(fields[at])
        };
        let id = others.iter().copied().find(|&at| Some(at) != index && is_key(at));
        let free: Vec<usize> = (0..fields.len()).filter(|&at| is_class(at) || !is_key(at)).collect();
        let Some(classes) = classes else {
            if free.is_empty() {
                return Err("there is no column of probabilities".into());
            }
            let names = free.iter().map(|&at| fields[at].to_owned()).collect();
            return Ok(Self { places: free, names: Some(names), index, id });
        };
        let named: Vec<&str> = free.iter().map(|&at| fields[at]).collect();
        let numbered = || by_number(&named).filter(|places| places.len() == classes.len());
        let Some(places) = by_name(&named, classes).or_else(numbered) else {
            return Err(unfit(&named, classes));
        };
        let places = places.into_iter().map(|place| free[place]).collect();
        Ok(Self { places, names: Some(classes.to_vec()), index, id })
    }
}

/// Why these names are not the classes.
fn unfit(named: &[&str], classes: &[String]) -> String {
    let all = || classes.iter().map(String::as_str);
    let missing = || all().filter(|class| !named.contains(class));
    match named.iter().find(|name| !all().any(|class| class == **name)) {
        Some(name) => format!(
            "column `{}` is not a class: {}classes are {}; name every column after its class, or leave the header out if columns are in this order",
            name.escape_debug(),
            did_you_mean(name, missing()),
            listing(all())
        ),
        None => format!(
            "no column for {} ({}): give a probability for every class",
            if missing().count() == 1 { "one class" } else { "some classes" },
            listing(missing())
        ),
    }
}
