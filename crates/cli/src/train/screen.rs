//! What a person sees while training: a bar on a terminal, lines elsewhere, JSON for programs, or nothing.

use super::finish::{name, noise_rate};
use super::folder::Folder;
use super::{Material, clock};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use negscale::PairCoverage;
use negscale_learn::recipe::Recipe;
use negscale_learn::trainer::{Progress, Trainer};
use negscale_report::EpochRecord;
use std::io::IsTerminal;
use std::time::Instant;

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Text, and a bar if it is a terminal.
    People,
    /// JSON lines.
    Json,
    /// Nothing.
    Quiet,
}

/// The screen.
pub struct Screen {
    look: Look,
    bar: ProgressBar,
    /// When this process began to train, and how much was done then, in epochs.
    begun: Option<(Instant, f64)>,
    epochs: usize,
    /// What the last epoch came to.
    last: String,
}

impl Screen {
    /// A screen of this look.
    pub fn new(look: Look) -> Self {
        let bar = if look == Look::People && std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30.cyan/blue} {msg}") {
            bar.set_style(style);
        }
        Self { look, bar, begun: None, epochs: 0, last: String::new() }
    }

    /// A line for people, above the bar.
    fn line(&self, text: &str) {
        if self.look == Look::People {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    /// Something that went wrong and was mended.
    pub fn note(&self, text: &str) {
        if self.look != Look::Quiet {
            self.bar.suspend(|| eprintln!("note: {text}"));
        }
    }

    /// Says what is about to be done.
    pub fn open(
        &self,
        recipe: &Recipe,
        coverage: Option<&PairCoverage>,
        material: &Material,
        folder: &Folder,
    ) {
        let train = &recipe.train;
        self.line(&format!(
            "{} on {}: {} samples, {} classes, {} for {} epochs",
            name(recipe, coverage),
            material.train.name(),
            material.train.len(),
            material.train.classes().len(),
            train.net,
            train.epochs
        ));
        if let Some(noise) = &material.noise {
            self.line(&format!("noise {noise}"));
        } else if let Some(rate) = noise_rate(&material.train) {
            self.line(&format!("{:.1} % of the labels differ from the known truth", 100.0 * rate));
        }
        if let Some(side) = recipe.data.side {
            self.line(&format!(
                "pictures are brought to {side} x {side} pixels; --set side=N for another size"
            ));
        }
        self.line(&format!("into {}", folder.place().display()));
    }

    /// Says that the baseline comes.
    pub fn begin_baseline(&self, recipe: &Recipe) {
        self.line(&format!("baseline: {}, equally long", name(recipe, None)));
    }

    /// Says which pairs of classes the plug-in finds, and aloud what it cannot do for want of them; whether there is anything to
    /// say by now.
    pub fn pairs(&self, trainer: &Trainer) -> bool {
        let Some(coverage) = trainer.pair_coverage() else { return false };
        self.line(&format!("plug-in: {coverage}"));
        if self.look != Look::Quiet {
            for warning in coverage.warnings() {
                self.bar.suspend(|| eprintln!("warning: {warning}"));
            }
        }
        true
    }

    /// All was done before.
    pub fn complete(&self, epochs: usize) {
        self.line(&format!("the run is complete: {epochs} of {epochs} epochs were done"));
    }

    /// A run begins or goes on.
    pub fn begin(&mut self, trainer: &Trainer, records: &[EpochRecord]) {
        self.epochs = trainer.settings().epochs;
        self.begun = None;
        self.last.clear();
        if trainer.batches_done() > 0 {
            let what = if trainer.is_finished() { "is complete" } else { "goes on" };
            self.line(&format!("the run {what}: {} of {} epochs were done", records.len(), self.epochs));
        }
        self.bar.reset();
        self.bar.set_prefix(format!(
            "epoch {}/{}",
            (trainer.epochs_done() + 1).min(self.epochs),
            self.epochs
        ));
    }

    /// A batch is done.
    pub fn batch(&mut self, progress: &Progress) {
        let share = progress.done as f64 / progress.of.max(1) as f64;
        let at = progress.epoch as f64 + share;
        let (begun, from) = *self.begun.get_or_insert((Instant::now(), at));
        if self.bar.is_hidden() {
            return;
        }
        let speed = (at - from) / begun.elapsed().as_secs_f64().max(1e-9);
        let left =
            if at > from { clock::duration((progress.epochs as f64 - at) / speed) } else { "?".into() };
        let terms =
            progress.losses.iter().map(|(name, (sum, count))| format!("{name} {:.3}", sum / *count as f64));
        self.bar.set_prefix(format!("epoch {}/{}", progress.epoch + 1, progress.epochs));
        self.bar.set_position((1000.0 * share) as u64);
        let parts: Vec<String> = terms.chain([self.last.clone(), format!("{left} left")]).collect();
        self.bar
            .set_message(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "));
    }

    /// An epoch is done.
    pub fn epoch(&mut self, records: &[EpochRecord]) -> Result<()> {
        let Some(record) = records.last() else { return Ok(()) };
        let test = record.test_accuracy.map(|test| format!("test {:.1} %", 100.0 * test));
        let separation = record.separation_auc.map(|auc| format!("right from wrong {auc:.3}"));
        self.last = [test, separation].into_iter().flatten().collect::<Vec<_>>().join(", ");
        match self.look {
            Look::Quiet => {}
            Look::Json => say!("{}", serde_json::to_string(record)?),
            Look::People => self.line(&self.words(record)),
        }
        Ok(())
    }

    fn words(&self, record: &EpochRecord) -> String {
        let losses = record.losses.iter().map(|(name, value)| match name.as_str() {
            "total" => format!("loss {value:.3}"),
            name => format!("{name} {value:.3}"),
        });
        let percent = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {:.1} %", 100.0 * v));
        let rest = [
            percent("test", record.test_accuracy),
            percent("as labelled", record.train_accuracy),
            record.separation_auc.map(|auc| format!("right from wrong {auc:.3}")),
            percent("noise", record.noise_estimate),
            Some(clock::duration(record.seconds)),
        ];
        let parts: Vec<String> = losses.chain(rest.into_iter().flatten()).collect();
        format!("epoch {:>3}/{}  {}", record.epoch, self.epochs, parts.join("  "))
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
