//! What a person sees while training: a bar on a terminal, lines elsewhere, JSON for programs, or nothing.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use negscale::PairCoverage;
use negscale_methods::trainer::{Progress, Trainer};
use negscale_records::EpochRecord;
use negscale_run::folder::RunFolder;
use negscale_run::recipe::{Judge, Recipe};
use negscale_run::{Material, Result, Watch, clock, name};
use std::io::IsTerminal;
use std::time::Instant;

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutputMode {
    /// Text, and a bar if it is a terminal.
    People,
    /// JSON lines.
    Json,
    /// Nothing.
    Quiet,
}

impl OutputMode {
    /// By the flags that say so.
    pub fn new(quiet: bool, json: bool) -> Self {
        match (quiet, json) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Json,
            _ => Self::People,
        }
    }
}

/// The screen.
pub struct Screen {
    mode: OutputMode,
    bar: ProgressBar,
    /// When this process started training, and how many epochs were done by then.
    begun: Option<(Instant, f64)>,
    epochs: usize,
    /// The figures of the last epoch.
    last: String,
}

impl Screen {
    /// A screen of this mode.
    pub fn new(mode: OutputMode) -> Self {
        let bar = if mode == OutputMode::People && std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30.cyan/blue} {msg}") {
            bar.set_style(style);
        }
        Self { mode, bar, begun: None, epochs: 0, last: String::new() }
    }

    /// A line for people, above the bar.
    fn line(&self, text: &str) {
        if self.mode == OutputMode::People {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    fn words(&self, record: &EpochRecord) -> String {
        let losses = record.losses.iter().map(|(name, value)| match name.as_str() {
            "total" => format!("loss {value:.3}"),
            name => format!("{name} {value:.3}"),
        });
        let percent = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {:.1} %", 100.0 * v));
        let rest = [
            percent("test", record.test_accuracy),
            percent("train, given labels", record.train_accuracy),
            record.separation_auc.map(|auc| format!("right/wrong AUC {auc:.3}")),
            percent("estimated noise", record.noise_estimate),
            Some(clock::duration(record.seconds)),
        ];
        let parts: Vec<String> = losses.chain(rest.into_iter().flatten()).collect();
        format!("epoch {:>3}/{}  {}", record.epoch, self.epochs, parts.join("  "))
    }
}

impl Watch for Screen {
    fn note(&mut self, text: &str) {
        if self.mode != OutputMode::Quiet {
            self.bar.suspend(|| eprintln!("note: {text}"));
        }
    }

    fn open(
        &mut self,
        recipe: &Recipe,
        coverage: Option<&PairCoverage>,
        material: &Material,
        folder: &RunFolder,
    ) {
        let (train, data) = (&recipe.train, &material.train);
        let size = format!("{}: {} samples, {} classes", data.name(), data.len(), data.classes().len());
        self.line(&match recipe.judge {
            Judge::CrossFit => size,
            Judge::Training => {
                format!("{} on {size}, {} for {} epochs", name(recipe, coverage), train.net, train.epochs)
            }
        });
        if let Some(noise) = &material.noise {
            self.line(&format!("noise {noise}"));
        } else if let Some(rate) = material.noise_rate() {
            self.line(&format!("{:.1} % of the labels are wrong (the truth is known)", 100.0 * rate));
        }
        if let Some(side) = recipe.data.side {
            self.line(&format!(
                "images are resized to {side} x {side} pixels; --set side=N for another size"
            ));
        }
        self.line(&format!("writing to {}", folder.place().display()));
    }

    fn begin_baseline(&mut self, recipe: &Recipe) {
        self.line(&format!("baseline: {}, for as many epochs", name(recipe, None)));
    }

    fn pairs(&mut self, coverage: &PairCoverage) {
        self.line(&format!("plug-in: {coverage}"));
        if self.mode != OutputMode::Quiet {
            for warning in coverage.warnings() {
                self.bar.suspend(|| eprintln!("warning: {warning}"));
            }
        }
    }

    fn complete(&mut self, epochs: usize) {
        self.line(&format!("the run is already complete: {epochs} of {epochs} epochs are done"));
    }

    fn begin(&mut self, trainer: &Trainer, records: &[EpochRecord]) {
        self.epochs = trainer.settings().epochs;
        self.begun = None;
        self.last.clear();
        if trainer.batches_done() > 0 {
            let what = if trainer.is_finished() { "is complete" } else { "resumes" };
            self.line(&format!("the run {what}: {} of {} epochs are done", records.len(), self.epochs));
        }
        self.bar.reset();
        self.bar.set_prefix(format!(
            "epoch {}/{}",
            (trainer.epochs_done() + 1).min(self.epochs),
            self.epochs
        ));
    }

    fn batch(&mut self, progress: &Progress) {
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

    fn epoch(&mut self, records: &[EpochRecord]) -> Result<()> {
        let Some(record) = records.last() else { return Ok(()) };
        let test = record.test_accuracy.map(|test| format!("test {:.1} %", 100.0 * test));
        let separation = record.separation_auc.map(|auc| format!("right/wrong AUC {auc:.3}"));
        self.last = [test, separation].into_iter().flatten().collect::<Vec<_>>().join(", ");
        match self.mode {
            OutputMode::Quiet => {}
            OutputMode::Json => say!("{}", serde_json::to_string(record)?),
            OutputMode::People => self.line(&self.words(record)),
        }
        Ok(())
    }

    fn progress(&mut self, done: f64) {
        self.bar.set_prefix("judging");
        self.bar.set_position((1000.0 * done) as u64);
    }

    fn encoding(&mut self, done: f64) {
        self.bar.set_prefix("encoding");
        self.bar.set_position((1000.0 * done) as u64);
    }

    fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}
