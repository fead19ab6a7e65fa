//! Asymmetric noise: a class turns into one other class.
//!
//! Four things go by this name. `asym-map` chooses floor(rN) of all samples and sends them along a class map; with CIFAR-10's
//! map of five classes the share of wrong labels is r/2. The others let each sample change with probability r: `asym-block` to
//! the next of five consecutive class numbers, `asym-super` to the next class of the superclass, `pairflip` to the next class
//! of all; within a block or superclass the last turns into the first. On CIFAR-100 `asym-block` is what published code does
//! under the name of superclass noise, though the numbers are alphabetical: only 6 of its 100 flips stay in the superclass.

use super::spec::Rate;
use super::{NoiseContext, choice, cifar, no_fit};
use crate::{Dataset, Result};
use std::collections::BTreeMap;

/// How many consecutive classes make a block.
const BLOCK: usize = 5;

/// What each class turns into: itself where it never changes.
pub(super) struct Targets(Vec<u32>);

impl Targets {
    /// By pairs (from, to), or by CIFAR-10's map.
    pub(super) fn by_map(dataset: &Dataset, map: Option<&[(u32, u32)]>) -> Result<Self> {
        let map = match map {
            Some(map) => map.to_vec(),
            None => cifar::map_of(dataset.classes()).ok_or_else(|| {
                let problem = "`asym-map` has a built-in map only for CIFAR-10's class names: give one, as in \
                               asym-map:0.4:map=9to1+2to0, or use `pairflip`";
                no_fit(dataset, problem)
            })?,
        };
        let classes = dataset.classes().len();
        let mut targets: Vec<u32> = (0..classes as u32).collect();
        for (from, to) in map {
            if from.max(to) as usize >= classes {
                let problem = format!(
                    "{from}to{to} in the map names a class that does not exist: there are {classes}, numbered from 0"
                );
                return Err(no_fit(dataset, problem));
            }
            targets[from as usize] = to;
        }
        Ok(Self(targets))
    }

    /// The next of five consecutive classes.
    pub(super) fn by_block(dataset: &Dataset) -> Result<Self> {
        let classes = dataset.classes().len();
        if !classes.is_multiple_of(BLOCK) {
            let problem = format!(
                "`asym-block` cuts the classes into blocks of five, and there are {classes}: use `pairflip` or \
                 `asym-super`"
            );
            return Err(no_fit(dataset, problem));
        }
        Ok(Self((0..classes).map(|c| (c / BLOCK * BLOCK + (c + 1) % BLOCK) as u32).collect()))
    }

    /// The next class of the same superclass.
    pub(super) fn by_superclass(dataset: &Dataset, context: &NoiseContext) -> Result<Self> {
        let known = context.superclasses.clone().or_else(|| cifar::superclasses_of(dataset.classes()));
        let Some(superclasses) = known else {
            let problem = "`asym-super` needs the superclass of every class; it is built in for CIFAR-100's class \
                           names only: give it, or use `asym-block` or `pairflip`";
            return Err(no_fit(dataset, problem));
        };
        let classes = dataset.classes().len();
        if superclasses.len() != classes {
            let problem =
                format!("{} superclasses for {classes} classes: each needs one", superclasses.len());
            return Err(no_fit(dataset, problem));
        }
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        superclasses.iter().enumerate().for_each(|(c, &of)| members.entry(of).or_default().push(c as u32));
        let mut targets = vec![0; classes];
        for group in members.values() {
            let after = group.iter().cycle().skip(1);
            group.iter().zip(after).for_each(|(&from, &to)| targets[from as usize] = to);
        }
        Ok(Self(targets))
    }

    /// The next class.
    pub(super) fn by_pair(dataset: &Dataset) -> Self {
        let classes = dataset.classes().len() as u32;
        Self((0..classes).map(|c| (c + 1) % classes).collect())
    }

    /// Applied to floor(rN) of all samples.
    pub(super) fn on_chosen(&self, clean: &[u32], rate: Rate, seed: u64) -> Vec<u32> {
        let mut labels = clean.to_vec();
        for i in choice::from_all(seed, clean.len(), rate) {
            labels[i as usize] = self.0[clean[i as usize] as usize];
        }
        labels
    }

    /// Applied to each sample with probability r.
    pub(super) fn on_each(&self, clean: &[u32], rate: Rate, seed: u64) -> Vec<u32> {
        let flip = |(i, &label): (usize, &u32)| {
            if choice::of_sample(seed, i).chance(rate.get()) { self.0[label as usize] } else { label }
        };
        clean.iter().enumerate().map(flip).collect()
    }

    /// The pairs that change, by name, for the convention's sentence.
    pub(super) fn describe(&self, dataset: &Dataset) -> String {
        let changing = self.0.iter().enumerate().filter(|&(from, &to)| from as u32 != to);
        let names = dataset.classes();
        let pairs: Vec<String> =
            changing.map(|(from, &to)| format!("{} -> {}", names[from], names[to as usize])).collect();
        let fixed = names.len() - pairs.len();
        match pairs.len() {
            0 => "no class changes".into(),
            1..=10 => format!("{}; {fixed} of {} classes never change", pairs.join(", "), names.len()),
            n => format!("{n} of {} classes change", names.len()),
        }
    }
}
