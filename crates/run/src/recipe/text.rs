//! A recipe as text that reads back as the same recipe.

use super::{DataSettings, Judge, Recipe, keys};
use negscale_data::own::Header;
use negscale_methods::settings::table;
use negscale_methods::trainer::device_kind;
use negscale_nets::{Precision, precision_name};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys that are no part of what is run: how and where it is computed, and where data lies (its content has a fingerprint
/// of its own).
const WITHOUT_EFFECT: [&str; 3] = ["data_dir", "threads", "device"];

impl Recipe {
    /// Every setting with its value, as TOML; a plug-in that does not attach and hosts not in use have none.
    pub fn to_toml(&self) -> String {
        self.write(&[])
    }

    /// The first 16 hexadecimal digits of the SHA-256 of [`to_toml`](Self::to_toml) without `data_dir`, `threads` and `device`, and
    /// without a `precision` of `f32`: what was run before there was a choice keeps its name. Of a device other than the CPU its kind
    /// counts, because it rounds in its own way.
    pub fn fingerprint(&self) -> String {
        let plain = (self.train.precision == Precision::F32).then_some("precision");
        let without: Vec<&str> = WITHOUT_EFFECT.into_iter().chain(plain).collect();
        let kind = device_kind(&self.train.device);
        let device = if kind == "cpu" { String::new() } else { format!("device = {kind:?}\n") };
        let digest = Sha256::digest(self.write(&without) + &device);
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// In the order of the documentation, without the keys named.
    fn write(&self, without: &[&str]) -> String {
        let values = self.values();
        let mut text = String::new();
        for doc in keys::tables() {
            let lines: Vec<String> = doc
                .keys
                .iter()
                .filter(|key| !without.contains(&key.path().as_str()))
                .filter_map(|key| Some(format!("{} = {}", key.name, find(&values, &key.path())?)))
                .collect();
            if lines.is_empty() {
                continue;
            }
            if !doc.name.is_empty() {
                text += &format!("\n[{}]\n", doc.name);
            }
            text += &lines.join("\n");
            text.push('\n');
        }
        text
    }

    fn values(&self) -> Table {
        let Recipe { data, train, baseline, baseline_settings, flag_below, judge, pred_probs, .. } = self;
        let Recipe { encoder, neighbours, .. } = self;
        let mut all = of_data(data);
        let mut put = |key: &str, value: Value| drop(all.insert(key.into(), value));
        put("host", train.host.clone().into());
        put("plugin", train.plugin.clone().into());
        put("baseline", baseline.as_deref().unwrap_or("none").into());
        put("net", train.net.clone().into());
        put("width", train.width.into());
        put("hidden", train.hidden.iter().map(|&size| whole(size as u64)).collect::<Vec<_>>().into());
        put("precision", precision_name(train.precision).into());
        put("epochs", whole(train.epochs as u64));
        put("batch", whole(train.batch as u64));
        put("seed", whole(train.seed));
        put("validation", train.validation.into());
        put("threads", whole(train.threads as u64));
        put("device", train.device.clone().into());
        // Only where they are on: settings of runs without them stay what they were, and so do their fingerprints.
        if train.scan_every != 1 {
            put("scan_every", whole(train.scan_every as u64));
        }
        if !train.classifier.is_linear() {
            put("classifier", train.classifier.name().into());
        }
        if train.similarity {
            put("similarity", true.into());
        }
        if train.probe > 0 {
            put("probe", whole(train.probe as u64));
            put("probe_steps", whole(train.probe_steps as u64));
        }
        put("optimiser", table(&train.optimiser).into());
        put("schedule", table(&train.schedule).into());
        put("negscale", train.plugin_settings.clone().into());
        let mut audit = table(&train.verdict);
        if *judge == Judge::CrossFit {
            audit.insert("judge".into(), "cross-fit".into());
        }
        if let Some(below) = flag_below {
            audit.insert("flag_below".into(), (*below).into());
        }
        if let Some(path) = pred_probs {
            audit.insert("pred_probs".into(), path.to_string_lossy().into_owned().into());
        }
        if let Some(name) = encoder {
            audit.insert("encoder".into(), name.clone().into());
        }
        if *neighbours {
            audit.insert("neighbours".into(), true.into());
        }
        audit.insert("recent".into(), whole(train.recent as u64));
        put("audit", audit.into());
        if let Some(baseline) = baseline {
            put(baseline, baseline_settings.clone().into());
        }
        put(&train.host, train.host_settings.clone().into());
        all
    }
}

fn of_data(data: &DataSettings) -> Table {
    let path = |path: &Option<PathBuf>| path.as_deref().map(Path::to_string_lossy).map(String::from);
    let own = &data.own;
    let texts = [
        ("data", Some(data.data.clone())),
        ("data_dir", path(&data.data_dir)),
        ("labels", path(&own.labels)),
        ("label_column", own.label_column.clone()),
        ("truth_column", own.truth_column.clone()),
        ("source_column", own.source_column.clone()),
        ("text_column", own.text_column.clone()),
        ("image_column", own.image_column.clone()),
        // Only where they are said: settings of runs without them stay what they were, and so do their fingerprints.
        ("header", (own.header != Header::Auto).then(|| own.header.word().into())),
        ("array", own.array.clone()),
        ("id_column", own.id_column.clone()),
        ("test", path(&own.test)),
        ("test_labels", path(&own.test_labels)),
        ("class_names", path(&own.class_names)),
        ("noise", Some(data.noise.to_string())),
        ("tree", Some(data.tree.clone())),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?))));
    let mut all: Table = texts.collect();
    let lists = [
        ("label_columns", &own.label_columns),
        ("feature_columns", &own.feature_columns),
        ("ignore_columns", &own.ignore_columns),
    ];
    for (key, names) in lists {
        if !names.is_empty() {
            all.insert(key.into(), names.clone().into());
        }
    }
    all.insert("noise_seed".into(), whole(data.noise_seed));
    all.insert("skip_unreadable".into(), own.skip_unreadable.into());
    all.extend(data.samples.map(|samples| ("samples".to_owned(), whole(samples as u64))));
    all.extend(data.side.map(|side| ("side".to_owned(), whole(side as u64))));
    all
}

#[expect(clippy::expect_used, reason = "whole numbers come from TOML, so they fit")]
fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).expect("a whole number of at most 2^63 - 1, as TOML has them"))
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((first, rest)) => find(table.get(first)?.as_table()?, rest),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::recipe::Layers;
    use negscale_methods::host::ItemKind;

    #[test]
    fn the_kind_of_a_device_is_part_of_what_is_run_and_its_number_is_not() {
        let recipe = Layers::new().resolve(ItemKind::Features, None).unwrap();
        let name = |device: &str| {
            let mut recipe = recipe.clone();
            recipe.train.device = device.into();
            recipe.fingerprint()
        };
        assert_eq!(name("cpu"), recipe.fingerprint());
        assert_ne!(name("cuda"), name("cpu"));
        assert_ne!(name("cuda"), name("vulkan"));
        assert_eq!(name("cuda"), name("cuda:1"));
    }
}
