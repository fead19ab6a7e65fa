//! The trainer: owns loop, networks, optimisers, views, plug-ins, evaluation and checkpoints of a run; hosts only plan
//! epochs and compute the loss of batches.
//!
//! An epoch: the host plans, and may replan before each further phase; for every phase of the plan and every batch of
//! the phase the host gives a loss, plug-ins add to it, the phase's networks take a step; then the networks are run over all
//! samples in evaluation mode, which fills the [`Ledger`] and the epoch's record.
//!
//! [`Trainer::save`] gives everything as bytes, at any batch; a trainer made from the same task and settings that
//! [`Trainer::restore`]s them continues bit for bit as the first one would have, on a CPU with the same
//! instructions (`negscale_cpu::instructions`). Results do not depend on the number of threads. Work inside a rayon pool (`rayon::scope`), so that a parallel step wakes the other threads only.

/// The context of a trainer; a macro, because a method would borrow all of it.
macro_rules! context {
    ($trainer:ident) => {
        HostContext {
            epoch: Epoch { number: $trainer.position.epoch, of: $trainer.settings.epochs },
            networks: &$trainer.networks,
            tapped: $trainer.plugin.is_some(),
            guess_weights: $trainer.guess_weights.as_deref(),
            loader: &$trainer.train.loader,
            held_out: $trainer.held_out.as_ref().map(|held| (&held.loader, held.given.as_slice())),
            ledger: &mut $trainer.train.ledger,
            truths: &$trainer.truths,
            scans: &$trainer.scans,
            device: &$trainer.device,
            seed: $trainer.settings.seed,
            stop: &$trainer.stop,
        }
    };
}

mod checkpoint;
mod device;
mod evaluation;
mod phase;
mod relations;
mod settings;
mod similarity;
mod stage;
mod state;
mod task;
mod tensor;

pub use crate::plugins::Tree;
pub use device::{check_device, describe_device, device_kind, devices, open_device};
pub use settings::TrainSettings;
pub use task::Task;

use crate::host::{
    Card, Epoch, Facts, Host, HostContext, ItemKind, KnownNoise, Networks, Plan, PredictedBy, Scans,
};
use crate::hosts;
use crate::plugins::{self, Plugin};
use crate::{Error, Result};
use burn::module::Module;
use burn::tensor::Device;
use negscale::{PairCoverage, Taxonomy};
use negscale_audit::Ledger;
use negscale_audit::{NoiseEstimate, NoiseModel, Predictions, Verdict};
use negscale_nets::model::{Model, Preparation};
use negscale_nets::optim::Optimiser;
use negscale_records::EpochRecord;
use similarity::{Changes, Probe};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use task::Shown;
use tensor::to_part;

/// How many labels are wrong, and the predictions that say so.
pub type Estimated = (NoiseEstimate, Predictions);

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Position {
    epoch: usize,
    /// The plan of the epoch, once there is one.
    plan: Option<Plan>,
    phase: usize,
    batch: usize,
    /// Batches since the start of training.
    batches: u64,
    /// Sum and count of every term of the loss in this epoch.
    sums: BTreeMap<String, (f64, u64)>,
    /// Seconds spent in this epoch so far.
    seconds: f64,
    /// Learning rate of the last step.
    learning_rate: f64,
    /// What the steps of this epoch changed, where that is recorded.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    changes: Changes,
}

/// Progress of an epoch, for callbacks.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The epoch, from 0.
    pub epoch: usize,
    /// How many epochs.
    pub epochs: usize,
    /// Batches of this epoch that are done, if the phases before were as long as this one.
    pub done: usize,
    /// Batches of this epoch, if all phases are as long as this one.
    pub of: usize,
    /// Mean of every term of the loss in this epoch so far.
    pub losses: &'a BTreeMap<String, (f64, u64)>,
}

/// How a call of [`Trainer::epoch`] ended.
#[derive(Debug)]
pub enum EpochEnd {
    /// The epoch is over.
    Finished(Box<EpochRecord>),
    /// It was asked to stop.
    Stopped,
}

/// A training run.
pub struct Trainer {
    settings: TrainSettings,
    card: &'static Card,
    classes: Vec<String>,
    preparation: Preparation,
    host: Box<dyn Host>,
    plugin: Option<Box<dyn Plugin>>,
    tree: Tree,
    /// Weights of the host's guesses in this epoch.
    guess_weights: Option<Vec<f32>>,
    networks: Networks,
    train: Shown,
    /// Samples of `train` whose true labels the method is given, with these.
    truths: Vec<(u32, u32)>,
    held_out: Option<Shown>,
    tests: Vec<Shown>,
    device: Device,
    scans: Scans,
    probe: Option<Probe>,
    position: Position,
    stop: Arc<AtomicBool>,
}

impl Trainer {
    /// A run at its start.
    pub fn new(task: Task, settings: TrainSettings) -> Result<Self> {
        let settings = settings.checked()?;
        check_device(&settings.device)?;
        let card = hosts::card(&settings.host)?;
        let Task { train, test, second_test, preparation, tree, noise } = task;
        let classes = train.classes().to_vec();
        let (train, held_out) = task::divide(train, settings.validation, settings.seed)?;
        let needs_tree_now = !settings.classifier.is_linear();
        if plugins::card(&settings.plugin)?.attaches() || needs_tree_now {
            tree.check(&train.0)?;
        }
        if needs_tree_now && tree.taxonomy().is_none() {
            let problem = "classifier = \"tree\" needs a class tree before training begins, and this one would be learnt during \
                           it: give a `tree`, or set classifier = \"linear\"";
            return Err(Error::Settings { place: "classifier".into(), problem: problem.into() });
        }
        let device = open_device(&settings.device)?;
        let probe = Probe::new(&train, &preparation, &settings, &device)?;
        let shown = |(dataset, numbers)| Shown::new(dataset, numbers, &preparation, &settings);
        let train = shown(train)?;
        let asked = card.true_labels(&settings.host_settings, train.len())?;
        let truths = task::draw_truths(train.truth.as_deref(), asked, settings.seed, card.id)?;
        let facts = Facts {
            kind: match preparation {
                Preparation::Images(_) => ItemKind::Images,
                Preparation::Features(_) => ItemKind::Features,
            },
            classes: classes.len(),
            samples: train.len(),
            epochs: settings.epochs,
            batch: settings.batch,
            noise: KnownNoise::from(&noise),
            wrong_share: train.wrong_share(),
        };
        let host = (card.build)(&settings.host_settings, &facts)?;
        let mut plugin = plugins::card(&settings.plugin)?.build(&settings.plugin_settings)?;
        plugins::card(&settings.plugin)?.pair_coverage(&settings.plugin_settings, &tree)?;
        let misfit = plugin.as_deref().and_then(|plugin| plugins::misfit(plugin, card, &*host));
        if let Some((_, problem)) = misfit {
            return Err(Error::Settings { place: format!("of plug-in `{}`", settings.plugin), problem });
        }
        if let (Some(plugin), Tree::Given(tree)) = (&mut plugin, &tree) {
            plugin.set_tree(tree)?;
        }
        let nets = stage::networks(&settings, preparation.input(), classes.len(), 0, &tree, &device)?;
        let networks = Networks::new(nets, &Optimiser::new(settings.optimiser.clone())?, settings.seed);
        // One set of threads reads for the whole run.
        let beside = |set| Ok::<_, Error>(shown(set)?.with_threads_of(&train));
        let probe = probe.map(|probe| probe.with_threads_of(&train));
        let held_out = held_out.map(beside).transpose()?;
        let tests = test.into_iter().chain(second_test);
        let tests = tests.map(|test| beside(task::all(test))).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            card,
            classes,
            preparation,
            host,
            plugin,
            tree,
            guess_weights: None,
            networks,
            train,
            truths,
            held_out,
            tests,
            device,
            scans: Scans::default(),
            probe,
            position: Position::default(),
            stop: Arc::default(),
            settings,
        })
    }

    /// Set it to stop after the batch at hand.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Stops after the batch at hand once this flag is set.
    pub fn set_stop_flag(&mut self, flag: Arc<AtomicBool>) {
        self.stop = flag;
    }

    /// Epochs that are over.
    pub fn epochs_done(&self) -> usize {
        self.position.epoch
    }

    /// Whether all epochs are over.
    pub fn is_finished(&self) -> bool {
        self.position.epoch >= self.settings.epochs
    }

    /// Batches since the start of training.
    pub fn batches_done(&self) -> u64 {
        self.position.batches
    }

    /// The settings.
    pub fn settings(&self) -> &TrainSettings {
        &self.settings
    }

    /// The class tree in use, if there is one by now.
    pub fn tree(&self) -> Option<&Taxonomy> {
        self.tree.taxonomy()
    }

    /// Which class pairs the plug-in acts on, if there are a plug-in and a class tree by now.
    pub fn pair_coverage(&self) -> Option<&PairCoverage> {
        self.plugin.as_ref()?.pair_coverage()
    }

    /// How many true labels the method was given: none, except for methods that need them.
    pub fn true_labels(&self) -> usize {
        self.truths.len()
    }

    /// The networks.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    /// Runs the rest of the epoch, calling `watch` after every batch.
    pub fn epoch(&mut self, mut watch: impl FnMut(Progress)) -> Result<EpochEnd> {
        let begun = Instant::now();
        let before = self.position.seconds;
        if self.position.plan.is_none() {
            let kept = self.host.state();
            match self.plan() {
                Err(Error::Interrupted) => {
                    // A plan that was not finished is made again, from the same state.
                    self.host.restore(kept)?;
                    return Ok(EpochEnd::Stopped);
                }
                other => self.begin(other?)?,
            }
        }
        let Some(mut plan) = self.position.plan.clone() else { unreachable!("the epoch has just begun") };
        self.guess_weights = self.weights_by(&plan);
        let mut over = true;
        while over && self.position.phase < plan.phases.len() {
            over = match self.replan(&mut plan).and_then(|()| self.phase(&plan, &mut watch)) {
                Err(Error::Interrupted) => false,
                other => other?,
            };
            self.position.seconds = before + begun.elapsed().as_secs_f64();
        }
        let record = if over { self.evaluate(&plan) } else { Err(Error::Interrupted) };
        match record {
            Err(Error::Interrupted) => Ok(EpochEnd::Stopped),
            record => {
                let mut record = record?;
                record.seconds = before + begun.elapsed().as_secs_f64();
                let Position { epoch, batches, learning_rate, .. } = self.position;
                self.position = Position { epoch: epoch + 1, batches, learning_rate, ..Position::default() };
                Ok(EpochEnd::Finished(Box::new(record)))
            }
        }
    }

    fn plan(&mut self) -> Result<Plan> {
        self.guess_weights = None;
        let mut plan = self.host.plan(&mut context!(self))?;
        self.check(&plan)?;
        self.note_relations(&mut plan);
        Ok(plan)
    }

    /// Lets the host replan the phase that comes next.
    fn replan(&mut self, plan: &mut Plan) -> Result<()> {
        let Position { phase, batch, .. } = self.position;
        if phase == 0 || batch > 0 {
            return Ok(());
        }
        self.scans.forget();
        self.host.replan(phase, plan, &mut context!(self))?;
        self.check(plan)?;
        self.position.plan = Some(plan.clone());
        Ok(())
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        let nets = self.networks.len();
        let misfit = plan.phases.iter().flat_map(|phase| &phase.trains).find(|&&net| net >= nets);
        let problem = match misfit {
            Some(net) => format!("its plan trains network {net}; its card has {nets}"),
            None if plan.phases.iter().any(|phase| phase.trains.is_empty()) => {
                "its plan has a phase that trains no network".into()
            }
            None => return Ok(()),
        };
        Err(Error::Settings { place: format!("of `{}`", self.card.id), problem })
    }

    /// What is believed of every sample of the data as it came, those held out included.
    pub fn ledger(&self) -> Result<Ledger> {
        let parts = [Some(&self.train), self.held_out.as_ref()];
        let parts: Vec<_> = parts.into_iter().flatten().map(|s| (&s.ledger, s.numbers.as_slice())).collect();
        Ok(Ledger::merge(&parts)?)
    }

    /// The verdict on every sample of the data as it came, and how many labels are wrong by all of them.
    pub fn verdicts(&self) -> Result<(Vec<Verdict>, Option<NoiseEstimate>)> {
        let (verdicts, judged) = self.judge()?;
        Ok((verdicts, judged.map(|(estimate, _)| estimate)))
    }

    /// The same, with the predictions that the estimate is made from.
    pub fn judge(&self) -> Result<(Vec<Verdict>, Option<Estimated>)> {
        let ledger = self.ledger()?;
        let Some(predictions) = ledger.predictions() else {
            return Ok((ledger.verdicts(&self.settings.verdict)?, None));
        };
        let predictions = Predictions::new(predictions, ledger.given(), ledger.classes())?;
        let model = NoiseModel::fit(&predictions);
        let (verdicts, estimate) = ledger.judge_by(&model, &self.settings.verdict)?;
        Ok((verdicts, Some((estimate, predictions))))
    }

    /// The trained model; `about` is text for people.
    pub fn model(&self, about: BTreeMap<String, String>) -> Result<Model> {
        let predicting = if self.card.predicted_by == PredictedBy::Sum { self.networks.len() } else { 1 };
        let nets = (0..predicting)
            .map(|net| Ok(self.networks.for_evaluation(net)?.valid()))
            .collect::<Result<_>>()?;
        Ok(Model::new(nets, self.classes.clone(), self.preparation.clone(), about)?)
    }
}
