//! What noise needs to know of CIFAR: class names, the customary map, superclasses, channel statistics.

/// CIFAR-10's classes, in order.
pub const CIFAR10: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The class map that all code bases use for asymmetric noise on CIFAR-10; the five other classes never change.
pub const CIFAR10_MAP: [(&str, &str); 5] =
    [("truck", "automobile"), ("bird", "airplane"), ("cat", "dog"), ("dog", "cat"), ("deer", "horse")];

/// CIFAR-100's twenty superclasses, in order, each with its five classes. The classes themselves are numbered
/// alphabetically over all hundred.
#[rustfmt::skip]
pub const CIFAR100_SUPERCLASSES: [(&str, [&str; 5]); 20] = [
    ("aquatic_mammals", ["beaver", "dolphin", "otter", "seal", "whale"]),
    ("fish", ["aquarium_fish", "flatfish", "ray", "shark", "trout"]),
    ("flowers", ["orchid", "poppy", "rose", "sunflower", "tulip"]),
    ("food_containers", ["bottle", "bowl", "can", "cup", "plate"]),
    ("fruit_and_vegetables", ["apple", "mushroom", "orange", "pear", "sweet_pepper"]),
    ("household_electrical_devices", ["clock", "keyboard", "lamp", "telephone", "television"]),
    ("household_furniture", ["bed", "chair", "couch", "table", "wardrobe"]),
    ("insects", ["bee", "beetle", "butterfly", "caterpillar", "cockroach"]),
    ("large_carnivores", ["bear", "leopard", "lion", "tiger", "wolf"]),
    ("large_man-made_outdoor_things", ["bridge", "castle", "house", "road", "skyscraper"]),
    ("large_natural_outdoor_scenes", ["cloud", "forest", "mountain", "plain", "sea"]),
    ("large_omnivores_and_herbivores", ["camel", "cattle", "chimpanzee", "elephant", "kangaroo"]),
    ("medium_mammals", ["fox", "porcupine", "possum", "raccoon", "skunk"]),
    ("non-insect_invertebrates", ["crab", "lobster", "snail", "spider", "worm"]),
    ("people", ["baby", "boy", "girl", "man", "woman"]),
    ("reptiles", ["crocodile", "dinosaur", "lizard", "snake", "turtle"]),
    ("small_mammals", ["hamster", "mouse", "rabbit", "shrew", "squirrel"]),
    ("trees", ["maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"]),
    ("vehicles_1", ["bicycle", "bus", "motorcycle", "pickup_truck", "train"]),
    ("vehicles_2", ["lawn_mower", "rocket", "streetcar", "tank", "tractor"]),
];

/// Means and standard deviations of the channels that published code divides by, for pixels from 0 to 1.
pub(super) type Channels = [(f64, f64); 3];
/// For CIFAR-10. (The deviations are means over images of the deviation within an image, hence smaller than the set's.)
pub(super) const CIFAR10_CHANNELS: Channels = [(0.4914, 0.2023), (0.4822, 0.1994), (0.4465, 0.2010)];
/// For CIFAR-100.
pub(super) const CIFAR100_CHANNELS: Channels = [(0.507, 0.267), (0.487, 0.256), (0.441, 0.276)];

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
