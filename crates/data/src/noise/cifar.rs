//! What noise needs to know of CIFAR: which classes are CIFAR's, the customary map, superclasses, channel statistics.

pub use crate::known::cifar::{CIFAR10, CIFAR100_SUPERCLASSES};
use crate::known::cifar::{CIFAR10_CHANNELS, CIFAR100_CHANNELS, Channels};

/// The class map that all code bases use for asymmetric noise on CIFAR-10; the five other classes never change.
pub const CIFAR10_MAP: [(&str, &str); 5] =
    [("truck", "automobile"), ("bird", "airplane"), ("cat", "dog"), ("dog", "cat"), ("deer", "horse")];

/// CIFAR-10's map over these class names, in whatever order they come; nothing if they are not CIFAR-10's.
pub(super) fn map_of(classes: &[String]) -> Option<Vec<(u32, u32)>> {
    let places = places(classes, &CIFAR10)?;
    let place = |name| CIFAR10.iter().position(|other| *other == name).map(|at| places[at]);
    CIFAR10_MAP.iter().map(|&(from, to)| Some((place(from)?, place(to)?))).collect()
}

/// Superclass of every class, if these are CIFAR-100's hundred classes.
pub fn superclasses_of(classes: &[String]) -> Option<Vec<u32>> {
    let fine: Vec<&str> = CIFAR100_SUPERCLASSES.iter().flat_map(|(_, members)| members).copied().collect();
    let places = places(classes, &fine)?;
    let mut superclasses = vec![0; classes.len()];
    places.iter().enumerate().for_each(|(n, &class)| superclasses[class as usize] = n as u32 / 5);
    Some(superclasses)
}

/// The channel statistics customary for these classes.
pub(super) fn channels_of(classes: &[String]) -> Option<Channels> {
    let ten = places(classes, &CIFAR10).map(|_| CIFAR10_CHANNELS);
    ten.or_else(|| superclasses_of(classes).map(|_| CIFAR100_CHANNELS))
}

/// Where each of `names` stands among `classes`, if the two are the same names.
fn places(classes: &[String], names: &[&str]) -> Option<Vec<u32>> {
    if classes.len() != names.len() {
        return None;
    }
    let plain = |name: &str| name.trim().to_lowercase().replace([' ', '-'], "_");
    let classes: Vec<String> = classes.iter().map(|name| plain(name)).collect();
    names
        .iter()
        .map(|name| classes.iter().position(|class| *class == plain(name)).map(|at| at as u32))
        .collect()
}
