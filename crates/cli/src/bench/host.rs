//! `negscale bench host`: time of a training step of each method, with and without NegScale.

use anyhow::{Result, bail};
use negscale::Taxonomy;
use negscale_data::draw::{Draw, Purpose};
use negscale_data::{Dataset, FeatureStore, Image, ImageStore, Items, NoiseSpec, Shape};
use negscale_methods::host::ItemKind;
use negscale_methods::hosts::{self, METHODS};
use negscale_methods::trainer::{Task, TrainSettings, Trainer, Tree};
use negscale_nets::model::Preparation;
use negscale_nets::{Precision, precision_name};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Time of a training step of each method, with and without NegScale; or, with --epochs, of whole epochs beside what their passes take.
///
/// Both alternate, some steps each, so that a change in the machine's speed affects them alike. Prints medians after warm-up
/// epochs; the share that the plug-in adds is the median over the rounds of the ratio within a round.
#[derive(clap::Args)]
pub struct Arguments {
    /// Training method [default: all].
    #[arg(long)]
    host: Option<String>,
    /// Network: `mlp` works on feature vectors, others on images of 32 x 32.
    #[arg(long, default_value = "mlp")]
    net: String,
    /// Samples per batch [default: the method's own]. Methods that divide samples take as many unlabelled ones as well.
    #[arg(long)]
    batch: Option<usize>,
    /// Length of a feature vector.
    #[arg(long, default_value_t = 128)]
    dim: usize,
    /// Number of rounds, at least 1 [default: 31 for mlp, 5 for others].
    #[arg(long)]
    rounds: Option<usize>,
    /// Steps per round, at least 1 [default: 10 for mlp, 2 for others].
    #[arg(long)]
    steps: Option<usize>,
    /// How products are taken: f32, bf16, or auto (bf16 where this CPU is fast at it).
    #[arg(long, default_value = "auto")]
    precision: String,
    /// Measure so many whole epochs instead of steps (planning, scans and evaluation included, without plug-in), and divide by the time
    /// that their passes alone take: forward passes of the network, of which a pass of training counts as three.
    #[arg(long)]
    epochs: Option<usize>,
    /// Print one JSON object per line: host, net, batch, plain_ms, negscale_ms, added; with --epochs: host, net, batch, epoch_ms, passes,
    /// forward_us, training, ratio, cpu_ratio, beside, cpu_beside.
    #[arg(long)]
    json: bool,
}

/// Images or vectors of noise around a centre of their class, made once: reading one costs no more than in a real dataset.
struct Cloud {
    size: usize,
    values: Vec<f32>,
}

const CLASSES: usize = 10;

impl Cloud {
    fn new(count: usize, size: usize) -> Self {
        let mut values = Vec::with_capacity(count * size);
        for index in 0..count {
            let mut centre = Draw::new(1, Purpose::Noise, 1, (index % CLASSES) as u64);
            let mut own = Draw::new(1, Purpose::Noise, 2, index as u64);
            values.extend((0..size).map(|_| (centre.unit() - 0.5 + 0.6 * (own.unit() - 0.5)) as f32));
        }
        Self { size, values }
    }

    fn item(&self, index: usize) -> &[f32] {
        &self.values[index * self.size..][..self.size]
    }
}

impl FeatureStore for Cloud {
    fn len(&self) -> usize {
        self.values.len() / self.size
    }
    fn dim(&self) -> usize {
        self.size
    }
    fn read(&self, index: usize, out: &mut [f32]) -> negscale_data::Result<()> {
        out.copy_from_slice(self.item(index));
        Ok(())
    }
}

const SHAPE: Shape = Shape { width: 32, height: 32, channels: 3 };

impl ImageStore for Cloud {
    fn len(&self) -> usize {
        self.values.len() / self.size
    }
    fn load(&self, index: usize) -> negscale_data::Result<Image> {
        let pixels = self.item(index).iter().map(|value| (127.5 + 150.0 * value) as u8);
        Ok(Image { shape: SHAPE, pixels: pixels.collect() })
    }
    fn bytes(&self, index: usize) -> negscale_data::Result<Cow<'_, [u8]>> {
        Ok(Cow::Owned(self.load(index)?.pixels))
    }
    fn shape(&self) -> Option<Shape> {
        Some(SHAPE)
    }
}

/// What a network takes.
fn kind_of(net: &str) -> ItemKind {
    if net.starts_with("mlp") { ItemKind::Features } else { ItemKind::Images }
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { host, net, batch, dim, rounds, steps, precision, epochs, json } = arguments;
    let precision = super::read_precision(&precision)?;
    let kind = kind_of(&net);
    // Short rounds: the speed of a machine wanders.
    let (many, long) = if kind == ItemKind::Features { (31, 10) } else { (5, 2) };
    let (rounds, steps) = (rounds.unwrap_or(many), steps.unwrap_or(long));
    if epochs == Some(0) || rounds == 0 || steps == 0 || batch.is_some_and(|batch| batch < 2) || dim == 0 {
        bail!("--epochs, --rounds, --steps and --dim must be at least 1, --batch at least 2");
    }
    let cards = match &host {
        Some(host) => vec![hosts::card(host)?],
        None => METHODS.to_vec(),
    };
    if !json {
        let (threads, cpu) = (rayon::current_num_threads(), negscale_cpu::name());
        say!("{net}, {threads} threads, {cpu}, {}", precision_name(precision));
    }
    if !json && epochs.is_some() {
        super::epoch::say_head()?;
    } else if !json {
        say!("{:<16} {:>6} {:>12} {:>14} {:>10}", "method", "batch", "alone, ms", "+ negscale, ms", "added");
    }
    for card in cards {
        let batch = match batch {
            Some(batch) => batch,
            None => TrainSettings::of(card.id, &net, kind)?.batch,
        };
        let case = Case { host: card.id, net: &net, batch, dim, precision };
        if let Some(epochs) = epochs {
            let line = rayon::scope(|_| super::epoch::measure(&case, epochs))?;
            if json {
                say!("{line}");
            } else {
                super::epoch::say(&line)?;
            }
            continue;
        }
        // Inside the pool, as a trainer works.
        let (alone, with, added) = rayon::scope(|_| measure(&case, rounds, steps))?;
        if json {
            let line = serde_json::json!({
                "host": card.id, "net": net, "batch": batch, "plain_ms": alone, "negscale_ms": with, "added": added,
                "rounds": rounds, "steps": steps, "cpu": negscale_cpu::name(), "precision": precision_name(precision), "threads": rayon::current_num_threads(),
            });
            say!("{line}");
        } else {
            say!("{:<16} {batch:>6} {alone:>12.2} {with:>14.2} {:>8.1} %", card.id, 100.0 * added);
        }
    }
    Ok(())
}

/// What is measured.
pub(super) struct Case<'a> {
    pub host: &'a str,
    pub net: &'a str,
    pub batch: usize,
    /// Length of a feature vector.
    pub dim: usize,
    pub precision: Precision,
}

fn measure(case: &Case, rounds: usize, steps: usize) -> Result<(f64, f64, f64)> {
    let mut plain = Stopwatch::new(case, "none")?;
    let mut tapped = Stopwatch::new(case, "negscale")?;
    let (mut alone, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Who goes first alternates too.
        let (a, b) = if round % 2 == 0 {
            let a = plain.run(steps)?;
            (a, tapped.run(steps)?)
        } else {
            let b = tapped.run(steps)?;
            (plain.run(steps)?, b)
        };
        ratios.push(b / a - 1.0);
        alone.push(a);
        with.push(b);
    }
    Ok((median(&mut alone), median(&mut with), median(&mut ratios)))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

pub(super) struct Stopwatch {
    pub trainer: Trainer,
}

impl Stopwatch {
    /// A trainer beyond its warm-up.
    pub fn new(case: &Case, plugin: &str) -> Result<Self> {
        let Case { host, net, batch, dim, precision } = *case;
        let tree = Taxonomy::builtin("cifar10")?;
        let names: Vec<String> = tree.class_names().map(str::to_owned).collect();
        let kind = kind_of(net);
        let (count, size) =
            if kind == ItemKind::Features { (64 * batch, dim) } else { (6 * batch, SHAPE.len()) };
        let store = Arc::new(Cloud::new(count, size));
        let items = if kind == ItemKind::Features { Items::Features(store) } else { Items::Images(store) };
        // A third of the labels are wrong, or methods that divide samples would have nothing to divide.
        let label = |i: usize| ((i + usize::from(i.is_multiple_of(3)) * (1 + i % 7)) % CLASSES) as u32;
        // Methods that are given some true labels need to find them.
        let truth = (0..count).map(|i| (i % CLASSES) as u32).collect();
        let train = Dataset::new("cloud", names, items, (0..count).map(label).collect(), Some(truth))?;
        let mut settings = TrainSettings::of(host, net, kind)?;
        let card = hosts::card(host)?;
        for key in ["warm_up", "warm"] {
            if (card.settings)().contains_key(key) {
                settings.host_settings.insert(key.into(), 0.into());
            }
        }
        let settings = TrainSettings {
            epochs: 1000,
            batch,
            validation: 0.0,
            plugin: plugin.into(),
            precision,
            ..settings
        };
        let preparation = Preparation::measure(&train, None)?;
        let task = Task {
            train,
            test: None,
            second_test: None,
            preparation,
            tree: Tree::Given(tree),
            noise: NoiseSpec::None,
        };
        let mut stopwatch = Self { trainer: Trainer::new(task, settings)? };
        stopwatch.run(1)?; // threads start, memory is fetched
        Ok(stopwatch)
    }

    /// Milliseconds of a step, the median over some. The first steps of a phase are left out, because the loader starts then.
    fn run(&mut self, steps: usize) -> Result<f64> {
        let mut times = Vec::new();
        while times.len() < steps {
            let flag = self.trainer.stop_flag();
            flag.store(false, Relaxed);
            let (mut last, mut before) = (None, 0);
            self.trainer.epoch(|progress| {
                let now = Instant::now();
                if let Some(last) = last.replace(now)
                    && progress.done == before + 1
                {
                    times.push(now.duration_since(last).as_secs_f64() * 1e3);
                }
                before = progress.done;
                if times.len() >= steps {
                    flag.store(true, Relaxed);
                }
            })?;
        }
        Ok(median(&mut times))
    }
}
