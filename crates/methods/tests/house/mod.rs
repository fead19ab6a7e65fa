//! Small tasks on which every training method must behave.
#![allow(dead_code)]

use negscale::Taxonomy;
use negscale_data::draw::{Draw, Purpose};
use negscale_data::known;
use negscale_data::{Dataset, FeatureStore, Items, NoiseContext, NoiseSpec, noise};
use negscale_methods::host::{ItemKind, KnownNoise};
use negscale_methods::trainer::{EpochEnd, Task, TrainSettings, Trainer, Tree};
use negscale_nets::model::Preparation;
use negscale_nets::optim::OptimiserSettings;
use negscale_records::EpochRecord;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub const CLASSES: usize = 4;
const DIM: usize = 8;

struct Rows(Vec<Vec<f32>>);

impl FeatureStore for Rows {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn dim(&self) -> usize {
        DIM
    }
    fn read(&self, index: usize, out: &mut [f32]) -> negscale_data::Result<()> {
        out.copy_from_slice(&self.0[index]);
        Ok(())
    }
}

/// Four round clouds; two of the centres lie close to each other, as do the other two.
pub fn clouds(count: usize, seed: u64) -> Dataset {
    let centres: [[f64; 2]; CLASSES] = [[2.5, 1.0], [2.5, -1.0], [-2.5, 1.0], [-2.5, -1.0]];
    let labels: Vec<u32> = (0..count).map(|i| (i % CLASSES) as u32).collect();
    let row = |(i, &label): (usize, &u32)| {
        let mut draw = Draw::new(seed, Purpose::Noise, 7, i as u64);
        let centre = centres[label as usize];
        (0..DIM).map(|j| (centre.get(j).unwrap_or(&0.0) + 0.6 * draw.normal()) as f32).collect()
    };
    let rows = labels.iter().enumerate().map(row).collect();
    let names = ["rose", "tulip", "lorry", "bus"].map(str::to_owned).to_vec();
    Dataset::new("clouds", names, Items::Features(Arc::new(Rows(rows))), labels, None).unwrap()
}

pub fn tree() -> Taxonomy {
    let text = "thing
  living
    plant
      rose
      tulip
  made
    vehicle
      lorry
      bus
";
    Taxonomy::from_indented("clouds", text, &["rose", "tulip", "lorry", "bus"]).unwrap()
}

/// What methods know of noise, from its specification as the program prints it.
pub fn known_noise(noise: &str) -> KnownNoise {
    let spec: NoiseSpec = noise.parse().unwrap();
    assert_eq!(spec.to_string(), noise, "the program prints it otherwise");
    KnownNoise::from(&spec)
}

/// The clouds with this noise, and clean ones to be judged by.
pub fn task(count: usize, noise: &str) -> Task {
    let clean = clouds(count, 1);
    let spec: NoiseSpec = noise.parse().unwrap();
    let drawn = noise::apply(&spec, &clean, 3, &NoiseContext::default()).unwrap();
    let train = clean.with_noise(drawn.labels).unwrap();
    Task {
        preparation: Preparation::measure(&train, None).unwrap(),
        train,
        test: Some(clouds(400, 2)),
        second_test: None,
        tree: Tree::Given(tree()),
        noise: spec,
    }
}

pub fn settings(host: &str) -> TrainSettings {
    let settings = TrainSettings::of(host, "mlp", ItemKind::Features).unwrap();
    TrainSettings { hidden: vec![32], epochs: 3, batch: 32, threads: 1, ..settings }
}

/// Settings with which so few batches must do. Steps of Adam are as long as its rate, so that at its usual rate a hundred of them lead nowhere.
pub fn quick(host: &str, epochs: usize) -> TrainSettings {
    let mut settings = TrainSettings { epochs, ..settings(host) };
    if let OptimiserSettings::Adam(adam) = &mut settings.optimiser {
        adam.lr = 0.01;
    }
    settings
}

/// Some real pictures, every third label wrong.
pub fn pictures() -> Task {
    let picked: Vec<usize> = (0..97).map(|i| i * 7).collect();
    let train = known::embedded().unwrap().train.subset(&picked).unwrap();
    let labels = train.given().iter().enumerate();
    let labels = labels.map(|(i, &y)| if i % 3 == 0 { (y + 1) % 10 } else { y }).collect();
    let train = train.with_noise(labels).unwrap();
    Task {
        preparation: Preparation::measure(&train, None).unwrap(),
        train,
        test: None,
        second_test: None,
        tree: Tree::Given(Taxonomy::builtin("fashion-mnist").unwrap()),
        noise: NoiseSpec::None,
    }
}

/// For pictures: a small network that has batch norm.
pub fn picture_settings(host: &str) -> TrainSettings {
    let settings = TrainSettings::of(host, "cnn-small", ItemKind::Images).unwrap();
    TrainSettings { epochs: 4, batch: 16, width: 0.5, threads: 1, ..settings }
}

/// A run that is stopped, saved and taken up again after every batch, and in between while it plans, until its end.
pub fn in_pieces(make: impl Fn() -> Trainer) -> (Trainer, Vec<EpochRecord>) {
    let (mut stopped, mut records, mut at_once) = (make(), Vec::new(), false);
    loop {
        let flag = stopped.stop_flag();
        at_once = !at_once;
        flag.store(at_once, Relaxed);
        // Asked at every batch, a call runs one batch, or the evaluation alone.
        if let EpochEnd::Finished(record) = stopped.epoch(|_| flag.store(true, Relaxed)).unwrap() {
            records.push(*record);
        }
        if stopped.is_finished() {
            return (stopped, records);
        }
        let bytes = stopped.save("run").unwrap();
        stopped = make();
        stopped.restore(&bytes, "run", "memory").unwrap();
    }
}

/// Trains to the end without a stop, and once more [in pieces](in_pieces): records, weights and ledger must be the same, to the bit.
pub fn survives_stops(what: &str, make: impl Fn() -> Trainer) -> Vec<EpochRecord> {
    let mut straight = make();
    let records = finish(&mut straight);
    let (stopped, again) = in_pieces(make);
    assert_eq!(timeless(&again), timeless(&records), "{what}");
    assert_eq!(weights(&stopped), weights(&straight), "{what}");
    assert!(stopped.ledger().unwrap() == straight.ledger().unwrap(), "{what}");
    records
}

/// Whether all weights are numbers.
pub fn is_sound(trainer: &Trainer) -> bool {
    weights(trainer).into_iter().all(|bits| f32::from_bits(bits).is_finite())
}

/// What becomes of a method in a run that is long enough to learn wrong labels by heart: means over seeds, because a single run is a
/// matter of luck.
#[derive(Debug, Default)]
pub struct Long {
    pub accuracy: f64,
    pub separation: f64,
    pub by_heart: f64,
}

pub fn long_run(host: &str, text: &str) -> Long {
    const SEEDS: u64 = 3;
    let mut long = Long::default();
    for seed in 1..=SEEDS {
        let host_settings = text.parse().unwrap();
        let settings = TrainSettings { hidden: vec![64], seed, host_settings, ..quick(host, 30) };
        let mut trainer = Trainer::new(task(300, "sym-exact:0.4"), settings).unwrap();
        let last = finish(&mut trainer).pop().unwrap();
        long.accuracy += last.test_accuracy.unwrap() / SEEDS as f64;
        long.separation += last.separation_auc.unwrap() / SEEDS as f64;
        long.by_heart += last.fit_wrong_given.unwrap() / SEEDS as f64;
    }
    long
}

/// Trains to the end.
pub fn finish(trainer: &mut Trainer) -> Vec<EpochRecord> {
    let mut records = Vec::new();
    while !trainer.is_finished() {
        match trainer.epoch(|_| {}).unwrap() {
            EpochEnd::Finished(record) => records.push(*record),
            EpochEnd::Stopped => panic!("nobody asked it to stop"),
        }
    }
    records
}

/// All weights and running statistics, bit by bit.
pub fn weights(trainer: &Trainer) -> Vec<u32> {
    let nets = (0..trainer.networks().len()).map(|net| trainer.networks().net(net).read().unwrap());
    nets.flatten().flat_map(|(_, values)| values).map(f32::to_bits).collect()
}

/// Records without what the clock says.
pub fn timeless(records: &[EpochRecord]) -> Vec<EpochRecord> {
    let timeless = |record: &EpochRecord| {
        let mut record = record.clone();
        record.seconds = 0.0;
        record
    };
    records.iter().map(timeless).collect()
}
