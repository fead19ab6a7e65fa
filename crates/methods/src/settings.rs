//! Settings as tables: what a struct's defaults look like in a recipe, and back.

use crate::{Error, Result};
use negscale_nets::schedule::Milestone;
use negscale_records::nearest;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use negscale_nets::FEW_CLASSES;

/// A struct of settings as a TOML table; what TOML cannot hold (an absent value) is left out.
///
/// # Panics
/// If a whole number is above 2^63 - 1, which no settings file can hold either.
#[expect(clippy::expect_used, reason = "settings are words, numbers and lists of them, which TOML holds")]
pub fn table(settings: &impl Serialize) -> toml::Table {
    toml::Table::try_from(settings).expect("settings are words and numbers that TOML can hold")
}

/// Settings from a table that holds some of them; the others take their defaults. An unknown key is an error that
/// names the nearest one.
pub fn read<T: Serialize + DeserializeOwned + Default>(place: &str, given: &toml::Table) -> Result<T> {
    let mut whole = table(&T::default());
    check_keys(place, given, whole.keys().map(String::as_str))?;
    // Over all defaults, because a struct that is flattened into another would take its own, not those of the outer one.
    whole.extend(given.clone());
    whole.try_into().map_err(|error| Error::Settings {
        place: format!("[{place}]"),
        problem: error.message().trim().to_owned(),
    })
}

/// Refuses keys that are not among the known ones.
pub fn check_keys<'a>(
    place: &str,
    given: &toml::Table,
    known: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let known: Vec<&str> = known.into_iter().collect();
    let Some(unknown) = given.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let hint = match nearest(unknown, known.iter().copied()).first() {
        Some(near) => format!("did you mean `{near}`? All keys: {}", known.join(", ")),
        None => "it has no settings".to_owned(),
    };
    Err(Error::Settings {
        place: format!("[{place}]"),
        problem: format!("there is no key `{unknown}`; {hint}"),
    })
}

/// Refuses a number that is not finite or not as it must be.
pub fn require(setting: &'static str, value: f64, fits: bool, wanted: &'static str) -> Result<()> {
    if fits && value.is_finite() {
        return Ok(());
    }
    Err(Error::Range { setting, value: value.to_string(), wanted })
}

/// Refuses a number below 0.
pub fn not_negative(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, value >= 0.0, "must be 0 or larger")
}

/// Refuses a number that is not above 0.
pub fn positive(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, value > 0.0, "must be above 0")
}

/// Refuses a number outside [0, 1].
pub fn share(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, (0.0..=1.0).contains(&value), "must be in [0, 1]")
}

/// Refuses a number outside [0, 1).
pub fn below_1(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, (0.0..1.0).contains(&value), "must be in [0, 1)")
}

/// Refuses a number outside (0, 1].
pub fn positive_share(setting: &'static str, value: f64) -> Result<()> {
    require(setting, value, value > 0.0 && value <= 1.0, "must be above 0 and at most 1")
}

/// Refuses none.
pub fn at_least_1(setting: &'static str, value: usize) -> Result<()> {
    require(setting, value as f64, value >= 1, "must be at least 1")
}

/// Refuses an epoch or share that cannot be.
pub fn milestone(setting: &'static str, value: Milestone) -> Result<()> {
    Ok(value.check(setting)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Inner {
        weight: f64,
        share: f64,
    }

    impl Default for Inner {
        fn default() -> Self {
            Self { weight: 25.0, share: 0.3 }
        }
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Outer {
        rounds: usize,
        #[serde(flatten)]
        inner: Inner,
    }

    impl Default for Outer {
        fn default() -> Self {
            Self { rounds: 2, inner: Inner { weight: 0.0, ..Inner::default() } }
        }
    }

    #[test]
    fn defaults_of_the_outer_settings_win_over_those_of_flattened_ones() {
        let given = toml::Table::from_iter([("share".to_owned(), 0.5.into())]);
        let read: Outer = read("outer", &given).unwrap();
        assert_eq!(read, Outer { rounds: 2, inner: Inner { weight: 0.0, share: 0.5 } });
    }
}
