//! Labels purified with the help of a few true ones (DMLP, stage 2): no network is trained, features stay as they are.
//!
//! Two branches $v = 1, 2$ see a view $X^v$ of the features each. A branch has labels $Y^v \in \mathbb{R}^{N \times C}$, at first one-hot and then free,
//! and a linear classifier $o^v$. Per epoch and block of rows:
//!
//! 1. [`labels`]: $Y^v$ takes a step that makes the best linear classifier of the block do better on samples with true labels;
//! 2. [`reader`]: $o^v$ learns $\arg\max_c Y^v$ in small batches;
//! 3. every `exchange` epochs: $Y^1 \leftarrow o^2$, $Y^2 \leftarrow o^1$.
//!
//! Purified: $\tfrac12 (o^1 + o^2)$ of every sample, and the true label where it is known. One Adam moves all of $Y^v$ at every block, as
//! the authors' code does: rows outside the block have no gradient but go on along their moments.
//!
//! # Where this differs from the authors' code
//! Theirs never exchanges (its condition cannot be met) and ends without labels; blocks that are not full are left out. Its reader's losses have a
//! softmax of a softmax (`double_softmax`), which cannot learn a hundred classes. Ours are of
//! equal size, in an order drawn once. A ridge steadies the inverse. On small sets batches are smaller and the reader goes through a block as
//! often as makes `reader_steps` steps an epoch, at a rate as much larger as these are fewer than theirs. Rows are scaled to length 1 and have a constant
//! beside them.

pub mod labels;
pub mod reader;
pub mod ridge;
mod rows;

use super::rows::{check_labels, count, largest, normalise};
use crate::host::Meaning;
use crate::settings::{FEW_CLASSES, require};
use crate::{Error, Result};
use labels::{Block, Judged};
use negscale_data::draw::Draw;
use negscale_nets::optim::Adam;
use reader::{Reader, ReaderLoss};
use rows::Moved;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// When the branches of a purification exchange labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Exchange {
    /// Every so many epochs; 0: never, as in the authors' code.
    Every(usize),
    /// By the number of classes.
    Auto(Auto),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// Decided by the task.
    Auto,
}

impl Exchange {
    /// Epochs between exchanges, or 0. Beliefs over many classes are too flat to be labels: the steps that follow, each as large as
    /// the learning rate, would decide alone which of them is the largest.
    pub fn epochs(self, classes: usize) -> usize {
        match self {
            Self::Every(epochs) => epochs,
            Self::Auto(_) if classes <= FEW_CLASSES => PUBLISHED_EXCHANGE,
            Self::Auto(_) => 0,
        }
    }
}

/// How labels are purified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Purify {
    /// Passes over all blocks.
    pub purify_epochs: usize,
    /// When branches exchange labels.
    pub exchange: Exchange,
    /// Rows per block, about: blocks are of equal size.
    pub block: usize,
    /// Ridge of the closed form, in parts of the mean of the moment's diagonal.
    pub ridge: f64,
    /// Learning rate of the labels.
    pub label_lr: f64,
    /// Rows per batch of the reader, or less.
    pub reader_batch: usize,
    /// Least number of steps of the reader per epoch.
    pub reader_steps: usize,
    /// Learning rate of the reader; a tenth of it after the first 4 % of the epochs.
    pub reader_lr: f64,
    /// Weight of the reader's negative entropy.
    pub confidence_weight: f64,
    /// Weight of the reader's uniform prior.
    pub prior_weight: f64,
    /// Whether the reader's losses see a softmax of its softmax.
    pub double_softmax: bool,
}

impl Default for Purify {
    fn default() -> Self {
        Self {
            purify_epochs: 100,
            exchange: Exchange::Auto(Auto::Auto),
            block: 7000,
            ridge: 1e-4,
            label_lr: 0.01,
            reader_batch: 500,
            reader_steps: 20,
            reader_lr: 0.006,
            confidence_weight: 0.4,
            prior_weight: 1.0,
            double_softmax: false,
        }
    }
}

/// Epochs between exchanges in the paper.
const PUBLISHED_EXCHANGE: usize = 20;
/// Steps of the reader per epoch that its learning rate is for: 49,000 rows in batches of 500. With fewer it goes as far by a larger one.
const PUBLISHED_STEPS: f64 = 98.0;
/// Share of the epochs in which the reader learns at its full rate.
const FULL_RATE: f64 = 0.04;
/// A batch of the reader has at most this share of the rows.
const BATCH_SHARE: usize = 10;
/// A batch of the reader has at least so many rows per class, if there are as many, or its prior would be mere chance.
const BATCH_PER_CLASS: usize = 8;

impl Purify {
    /// What each setting means.
    pub const MEANINGS: &'static [Meaning] = &[
        ("purify_epochs", "passes of the purification over all samples"),
        (
            "exchange",
            "the two branches exchange labels every this many passes; 0: never, as in the authors' code; auto: 20 up to 32 classes, else 0",
        ),
        ("block", "rows per block of the closed-form solution"),
        ("ridge", "ridge of the closed-form solution, relative to the mean of the moment matrix's diagonal"),
        ("label_lr", "learning rate of the labels"),
        (
            "reader_batch",
            "rows per batch of the linear classifier (reader) that learns the labels; fewer on small datasets",
        ),
        ("reader_steps", "least number of steps of the reader per pass"),
        ("reader_lr", "learning rate of the reader; a tenth of it after the first passes"),
        ("confidence_weight", "weight of the reader's negative entropy"),
        ("prior_weight", "weight of the reader's uniform prior; 2200 goes with double_softmax"),
        ("double_softmax", "whether the reader's losses apply softmax twice, as in the authors' code"),
    ];

    /// Refuses settings out of range.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [
            ("purify_epochs", self.purify_epochs),
            ("block", self.block),
            ("reader_batch", self.reader_batch),
        ] {
            require(name, value as f64, value >= 1, "must be at least 1")?;
        }
        for (name, value) in
            [("ridge", self.ridge), ("label_lr", self.label_lr), ("reader_lr", self.reader_lr)]
        {
            require(name, value, value > 0.0, "must be above 0")?;
        }
        for (name, value) in
            [("confidence_weight", self.confidence_weight), ("prior_weight", self.prior_weight)]
        {
            require(name, value, value >= 0.0, "must be 0 or larger")?;
        }
        Ok(())
    }

    fn terms(&self) -> ReaderLoss {
        ReaderLoss {
            confidence: self.confidence_weight,
            prior: self.prior_weight,
            double_softmax: self.double_softmax,
        }
    }

    fn label_rule(&self) -> Adam {
        Adam { lr: self.label_lr, beta1: 0.5, beta2: 0.999, weight_decay: 3e-4, ..Adam::default() }
    }

    /// The reader's rule in an epoch of so many steps.
    fn reader_rule(&self, epoch: usize, steps: usize) -> Adam {
        let is_early = (epoch as f64) < (FULL_RATE * self.purify_epochs as f64).ceil();
        let full = self.reader_lr * (PUBLISHED_STEPS / steps.max(1) as f64).max(1.0);
        let lr = if is_early { full } else { 0.1 * full };
        Adam { lr, ..self.label_rule() }
    }
}

/// What there is to purify.
#[derive(Debug, Clone, Copy)]
pub struct PurificationInput<'a> {
    /// Features of all samples as each branch sees them, row after row.
    pub views: [&'a [f32]; 2],
    /// Numbers per row.
    pub dim: usize,
    /// Labels as given.
    pub given: &'a [u32],
    /// Number of classes.
    pub classes: usize,
    /// Samples whose true labels are known, with these; at least one.
    pub truths: &'a [(u32, u32)],
}

/// Purified labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Purified {
    /// The likeliest class of every sample.
    pub labels: Vec<u32>,
    /// What is held of every class, N x C; one-hot where the truth was known.
    pub beliefs: Vec<f32>,
}

/// Purifies labels. Draws decide the order of rows and the readers' first weights; `is_stopped` is asked once an epoch.
pub fn purify(
    from: PurificationInput,
    settings: &Purify,
    draw: &mut Draw,
    is_stopped: impl Fn() -> bool,
) -> Result<Purified> {
    let PurificationInput { views, dim, given, classes, truths } = from;
    for view in views {
        check_labels("labels to purify", given, count("features", view, dim)?, classes)?;
    }
    let is_known = |i: u32| truths.iter().any(|&(sample, _)| sample == i);
    let known: Vec<bool> = (0..given.len() as u32).map(is_known).collect();
    let order: Vec<u32> = draw.permutation(given.len()).into_iter().filter(|&i| !known[i as usize]).collect();
    if truths.is_empty() || order.len() < 2 {
        let problem =
            format!("{} true labels and {} others: give at least one and two", truths.len(), order.len());
        return Err(Error::Samples { what: "labels to purify", problem });
    }
    let labels: Vec<u32> = order.iter().map(|&i| given[i as usize]).collect();
    let truth: Vec<u32> = truths.iter().map(|&(_, label)| label).collect();
    let judges: Vec<u32> = truths.iter().map(|&(sample, _)| sample).collect();
    let rows = |view: &[f32], samples: &[u32]| gather(view, dim, samples);
    let x = [rows(views[0], &order)?, rows(views[1], &order)?];
    let judged = [rows(views[0], &judges)?, rows(views[1], &judges)?];
    let blocks = even_blocks(order.len(), settings.block);
    let branch = |v: usize, draw: &mut Draw| {
        let judged = Judged { x: &judged[v], labels: &truth };
        Branch::new(&x[v], judged, &labels, classes, &blocks, settings, draw)
    };
    let (mut a, mut b) = (branch(0, draw)?, branch(1, draw)?);
    let period = settings.exchange.epochs(classes);
    for epoch in 0..settings.purify_epochs {
        if is_stopped() {
            return Err(Error::Interrupted);
        }
        let is_exchange = period > 0 && epoch > 0 && epoch.is_multiple_of(period);
        for number in 0..blocks.len() {
            rayon::join(|| a.work(number, epoch), || b.work(number, epoch));
            if is_exchange {
                let (of_a, of_b) = rayon::join(|| a.read(number), || b.read(number));
                a.replace(number, &of_b);
                b.replace(number, &of_a);
            }
        }
    }
    let mut beliefs = vec![0.0; given.len() * classes];
    let (of_a, of_b) = rayon::join(|| a.read_all(), || b.read_all());
    for ((&i, a), b) in order.iter().zip(of_a.chunks(classes)).zip(of_b.chunks(classes)) {
        let out = &mut beliefs[i as usize * classes..][..classes];
        out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = (a + b) / 2.0);
    }
    for &(i, label) in truths {
        beliefs[i as usize * classes + label as usize] = 1.0;
    }
    let labels = beliefs.chunks(classes).map(|row| largest(row) as u32).collect();
    Ok(Purified { labels, beliefs })
}

/// The rows of these samples, each of length 1 with a constant beside it.
fn gather(view: &[f32], dim: usize, samples: &[u32]) -> Result<Vec<f32>> {
    let picked: Vec<f32> =
        samples.iter().flat_map(|&i| &view[i as usize * dim..(i as usize + 1) * dim]).copied().collect();
    let rows = normalise(&picked, dim)?;
    Ok(rows.chunks(dim).flat_map(|row| row.iter().copied().chain([CONSTANT])).collect())
}

/// The constant beside every row of length 1.
const CONSTANT: f32 = 0.1;

/// Blocks of equal size, to within one, of about `size` rows.
fn even_blocks(rows: usize, size: usize) -> Vec<Range<usize>> {
    let blocks = (rows as f64 / size as f64).round().max(1.0) as usize;
    (0..blocks).map(|b| rows * b / blocks..rows * (b + 1) / blocks).collect()
}

struct Branch<'a> {
    x: &'a [f32],
    dim: usize,
    classes: usize,
    judged: Judged<'a>,
    blocks: Vec<(Range<usize>, Block<'a>)>,
    y: Moved,
    reader: Reader,
    settings: &'a Purify,
}

impl<'a> Branch<'a> {
    fn new(
        x: &'a [f32],
        judged: Judged<'a>,
        labels: &[u32],
        classes: usize,
        blocks: &[Range<usize>],
        settings: &'a Purify,
        draw: &mut Draw,
    ) -> Result<Self> {
        let dim = x.len() / labels.len();
        let mut y = vec![0.0; labels.len() * classes];
        labels.iter().enumerate().for_each(|(i, &label)| y[i * classes + label as usize] = 1.0);
        let block = |rows: &Range<usize>| {
            let x = &x[rows.start * dim..rows.end * dim];
            Ok((rows.clone(), Block::new(x, dim, settings.ridge)?))
        };
        Ok(Self {
            blocks: blocks.iter().map(block).collect::<Result<_>>()?,
            reader: Reader::new(dim, classes, draw),
            y: Moved::new(y),
            x,
            dim,
            classes,
            judged,
            settings,
        })
    }

    /// Labels of a block take a step, then the reader learns them.
    fn work(&mut self, number: usize, epoch: usize) {
        let (rows, block) = &self.blocks[number];
        let within = rows.start * self.classes..rows.end * self.classes;
        let (_, gradient) = block.cost(&self.y.values[within.clone()], self.judged, self.classes);
        self.y.step(&self.settings.label_rule(), |at| {
            if within.contains(&at) { gradient[at - within.start] } else { 0.0 }
        });
        let labels: Vec<u32> =
            self.y.values[within].chunks(self.classes).map(|row| largest(row) as u32).collect();
        let x = &self.x[rows.start * self.dim..rows.end * self.dim];
        let (size, passes) = self.pace(rows.len());
        let steps = self.blocks.len() * passes * (rows.len() / size);
        let (rule, terms) = (self.settings.reader_rule(epoch, steps), self.settings.terms());
        for _ in 0..passes {
            for (x, labels) in x.chunks(size * self.dim).zip(labels.chunks(size)) {
                // The rest of a block would be too small for a prior.
                if labels.len() == size {
                    self.reader.learn(x, labels, &terms, &rule);
                }
            }
        }
    }

    /// Size of the reader's batches, and how often it goes through a block of so many rows.
    fn pace(&self, rows: usize) -> (usize, usize) {
        let small = (rows / BATCH_SHARE).max(BATCH_PER_CLASS * self.classes);
        let size = self.settings.reader_batch.min(small).min(rows);
        let steps = self.settings.reader_steps.div_ceil(self.blocks.len());
        (size, steps.div_ceil(rows / size).max(1))
    }

    fn read(&self, number: usize) -> Vec<f32> {
        let rows = &self.blocks[number].0;
        self.reader.read(&self.x[rows.start * self.dim..rows.end * self.dim])
    }

    fn read_all(&self) -> Vec<f32> {
        self.reader.read(self.x)
    }

    fn replace(&mut self, number: usize, labels: &[f32]) {
        let rows = &self.blocks[number].0;
        self.y.values[rows.start * self.classes..rows.end * self.classes].copy_from_slice(labels);
    }
}
