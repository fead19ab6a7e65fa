//! Saving and resuming a run.

use super::checkpoint::Contents;
use super::similarity::Probe;
use super::task::Shown;
use super::{Position, Trainer, Tree};
use crate::host::HostState;
use crate::plugins::PluginState;
use crate::{Error, Result};
use negscale::Taxonomy;
use negscale_nets::{optim, precision_name};
use std::collections::BTreeMap;

/// How products are taken, which resuming cannot change.
const PRECISION: &str = "precision";

/// An optimiser's state without its arrays.
#[derive(serde::Serialize, serde::Deserialize)]
struct Paces {
    rule: String,
    pace: optim::Pace,
    counters: BTreeMap<String, u64>,
}

/// Moves arrays below a prefix out of a map.
fn below<T>(map: &mut BTreeMap<String, T>, prefix: &str) -> BTreeMap<String, T> {
    let names: Vec<String> = map.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    let moved =
        names.into_iter().filter_map(|name| Some((name[prefix.len()..].to_owned(), map.remove(&name)?)));
    moved.collect()
}

fn save_optimiser(contents: &mut Contents, name: &str, optimiser: &optim::Optimiser) -> Result<()> {
    let optim::OptimiserState { rule, pace, arrays, counters } = optimiser.state()?;
    contents.put(name, &Paces { rule, pace, counters })?;
    contents.floats.extend(arrays.into_iter().map(|(array, values)| (format!("{name}/{array}"), values)));
    Ok(())
}

fn take_optimiser(contents: &mut Contents, name: &str) -> Result<optim::OptimiserState> {
    let Paces { rule, pace, counters } = contents.get(name)?;
    let arrays = below(&mut contents.floats, &format!("{name}/"));
    Ok(optim::OptimiserState { rule, pace, arrays, counters })
}

fn save_ledger(contents: &mut Contents, name: &str, shown: &Shown) -> Result<()> {
    let ((epochs, looks), [targets, clean, losses, predictions]) = shown.ledger.arrays();
    contents.put(&format!("{name}/epochs"), &epochs)?;
    contents.put(&format!("{name}/looks"), &looks)?;
    let arrays = [("targets", targets), ("clean", clean), ("losses", losses), ("predictions", predictions)];
    for (part, array) in arrays {
        contents.floats.insert(format!("{name}/{part}"), array);
    }
    Ok(())
}

fn restore_ledger(contents: &mut Contents, name: &str, shown: &mut Shown) -> Result<()> {
    let epochs: Vec<u64> = contents.get(&format!("{name}/epochs"))?;
    let looks: Option<u32> = contents.get(&format!("{name}/looks"))?;
    let mut take = |part: &str| contents.take_floats(&format!("{name}/{part}"));
    let arrays = [take("targets")?, take("clean")?, take("losses")?, take("predictions")?];
    Ok(shown.ledger.restore((&epochs, looks), arrays)?)
}

impl Trainer {
    /// Everything needed to resume this run, with a checksum. `stamp` names the run: the same must be
    /// given to [`restore`](Self::restore).
    pub fn save(&self, stamp: &str) -> Result<Vec<u8>> {
        let mut contents = Contents::default();
        contents.put("stamp", &stamp)?;
        contents.put(PRECISION, &precision_name(self.settings.precision))?;
        contents.put("position", &self.position)?;
        contents.put("passes", &self.networks.passes())?;
        contents.put("widths", &self.networks.widths())?;
        for number in 0..self.networks.len() {
            for (entry, values) in self.networks.net(number).read()? {
                contents.floats.insert(format!("net{number}/{}", entry.path), values);
            }
            save_optimiser(&mut contents, &format!("optimiser{number}"), self.networks.optimiser(number))?;
            let classifier = self.networks.classifier(number);
            if classifier.has_moved() {
                save_optimiser(&mut contents, &format!("classifier{number}"), classifier)?;
            }
        }
        save_ledger(&mut contents, "ledger", &self.train)?;
        if let Some(held_out) = &self.held_out {
            save_ledger(&mut contents, "held-out", held_out)?;
        }
        let HostState { floats, whole } = self.host.state();
        contents.floats.extend(floats.into_iter().map(|(name, array)| (format!("host/{name}"), array)));
        contents.whole.extend(whole.into_iter().map(|(name, array)| (format!("host/{name}"), array)));
        let grown = if let Tree::Grown(tree) = &self.tree { Some(tree.to_tsv()) } else { None };
        contents.put("tree", &grown)?;
        let plugin = self.plugin.as_ref().map(|plugin| plugin.state()).transpose()?;
        contents.put("plugin", &plugin.as_ref().map(|state| &state.text))?;
        let arrays = plugin.map(|state| state.floats).unwrap_or_default();
        contents.floats.extend(arrays.into_iter().map(|(name, array)| (format!("plugin/{name}"), array)));
        contents.encode()
    }

    /// Resumes where a run of the same task and settings was saved; `origin` names the bytes in errors. After an error the
    /// trainer may be half restored and must not be used.
    pub fn restore(&mut self, bytes: &[u8], stamp: &str, origin: &str) -> Result<()> {
        let mut contents = Contents::decode(bytes, origin)?;
        let saved: String = contents.get("stamp")?;
        if saved != stamp {
            let problem = "it belongs to a run with other data, settings or program version".to_owned();
            return Err(Error::Checkpoint { origin: origin.into(), problem });
        }
        // Checkpoints from before there was a choice do not say.
        let theirs =
            if contents.values.contains_key(PRECISION) { contents.get(PRECISION)? } else { "f32".to_owned() };
        let ours = precision_name(self.settings.precision);
        if theirs != ours {
            let problem = format!(
                "it was computed in {theirs}, not in {ours}: set precision = \"{theirs}\" to resume it"
            );
            return Err(Error::Checkpoint { origin: origin.into(), problem });
        }
        let position: Position = contents.get("position")?;
        self.networks.set_passes(contents.get("passes")?);
        self.networks.set_widths(&contents.get::<Vec<_>>("widths")?);
        for number in 0..self.networks.len() {
            let state = take_optimiser(&mut contents, &format!("optimiser{number}"))?;
            let name = format!("classifier{number}");
            let has_moved = contents.values.contains_key(&name);
            let classifier = has_moved.then(|| take_optimiser(&mut contents, &name)).transpose()?;
            let mut values = below(&mut contents.floats, &format!("net{number}/"));
            self.networks.restore(number, |path| values.remove(path), &state, classifier.as_ref())?;
        }
        restore_ledger(&mut contents, "ledger", &mut self.train)?;
        if let Some(held_out) = &mut self.held_out {
            restore_ledger(&mut contents, "held-out", held_out)?;
        }
        let floats = below(&mut contents.floats, "host/");
        self.host.restore(HostState { floats, whole: below(&mut contents.whole, "host/") })?;
        let grown: Option<String> = contents.get("tree")?;
        if let Some(text) = grown {
            let tree = Taxonomy::from_tsv("learnt", &text)?;
            if let Some(plugin) = &mut self.plugin {
                plugin.set_tree(&tree)?;
            }
            self.tree = Tree::Grown(tree);
        }
        let text: Option<String> = contents.get("plugin")?;
        if let (Some(plugin), Some(text)) = (&mut self.plugin, text) {
            plugin.restore(PluginState { text, floats: below(&mut contents.floats, "plugin/") })?;
        }
        self.scans.forget();
        self.probe.iter_mut().for_each(Probe::forget);
        self.position = position;
        Ok(())
    }
}
