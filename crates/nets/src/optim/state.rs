//! An optimiser's state, to be saved with a checkpoint and restored in another process.

use super::{Error, Optimiser, OptimiserSettings, Pace, Result, Slot, join};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything an optimiser knows beyond its settings. Names are `velocity/PATH`, `first/PATH`, `second/PATH` (moments of Adam) and
/// `steps/PATH`, where `PATH` leads to the parameter. A writer must keep all bits of the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimiserState {
    /// Which rule: `sgd`, `adam` or `adam-w`.
    pub rule: String,
    /// Learning rate and momentum of the next step.
    pub pace: Pace,
    /// Arrays in the order of the parameter's elements.
    pub arrays: BTreeMap<String, Vec<f32>>,
    /// Counters.
    pub counters: BTreeMap<String, u64>,
}

impl OptimiserSettings {
    /// Names of the arrays kept for a parameter.
    fn moments(&self) -> &'static [&'static str] {
        match self {
            OptimiserSettings::Sgd(_) => &["velocity"],
            OptimiserSettings::Adam(_) | OptimiserSettings::AdamW(_) => &["first", "second"],
        }
    }
}

impl Optimiser {
    /// A copy of the state.
    pub fn state(&self) -> Result<OptimiserState> {
        let (mut arrays, mut counters) = (BTreeMap::new(), BTreeMap::new());
        for (path, slot) in &self.slots {
            counters.insert(format!("steps/{path}"), slot.steps);
            for (kind, moment) in self.rule.moments().iter().zip(&slot.moments) {
                let name = format!("{kind}/{path}");
                let values = moment.clone().try_into_vec_as::<f32>();
                let values = values
                    .map_err(|error| Error::Device { name: name.clone(), reason: error.to_string() })?;
                arrays.insert(name, values);
            }
        }
        Ok(OptimiserState { rule: self.rule.name().into(), pace: self.pace, arrays, counters })
    }

    /// Takes over a state that was saved while training a module like this one. After an error the optimiser is as before.
    pub fn restore<M: Module>(&mut self, state: &OptimiserState, module: &M) -> Result<()> {
        if state.rule != self.rule.name() {
            let problem = format!(
                "saved by `{}`, but the settings say `{}`; resume with the same optimiser",
                state.rule,
                self.rule.name()
            );
            return Err(Error::State { name: "rule".into(), problem });
        }
        let mut plan = Plan::default();
        module.visit(&mut plan);
        let kinds = self.rule.moments();
        let mut slots = BTreeMap::<String, Slot>::new();
        for (name, &steps) in &state.counters {
            let (_, path) = split(name, &["steps"])?;
            plan.find(name, path)?;
            slots.insert(path.into(), Slot { moments: Vec::new(), steps });
        }
        // Moments lie in a slot in the order of their kinds.
        for kind in kinds {
            for (name, values) in &state.arrays {
                let (found, path) = split(name, kinds)?;
                if found != *kind {
                    continue;
                }
                let place = plan.find(name, path)?;
                if values.len() != place.count {
                    let problem = format!(
                        "{} values for a parameter of {}; the network has another shape than the saved one",
                        values.len(),
                        place.count
                    );
                    return Err(Error::State { name: name.clone(), problem });
                }
                let Some(slot) = slots.get_mut(path) else {
                    let problem =
                        format!("the counter `steps/{path}` is missing; the checkpoint is incomplete");
                    return Err(Error::State { name: name.clone(), problem });
                };
                let data = TensorData::new(values.clone(), [values.len()]);
                slot.moments.push(Tensor::from_data(data, (&place.device, place.dtype)));
            }
        }
        for (path, slot) in &slots {
            // SGD without momentum keeps no velocity; Adam keeps both moments from its first step on.
            if kinds.len() == 2 && slot.moments.len() != 2 {
                let problem = "one of the two moments is missing; the checkpoint is incomplete".into();
                return Err(Error::State { name: path.clone(), problem });
            }
        }
        self.set_pace(state.pace)?;
        self.slots = slots;
        Ok(())
    }
}

/// Kind and path of a name such as `velocity/head.weight`.
fn split<'a>(name: &'a str, kinds: &[&str]) -> Result<(&'a str, &'a str)> {
    let parts = name.split_once('/').filter(|(kind, _)| kinds.contains(kind));
    parts.ok_or_else(|| {
        let problem =
            format!("is not of a known kind ({}); was it saved by another optimiser?", kinds.join(", "));
        Error::State { name: name.into(), problem }
    })
}

/// Size and place of every float parameter of a module.
#[derive(Default)]
struct Plan {
    path: Vec<String>,
    places: BTreeMap<String, Place>,
}

struct Place {
    count: usize,
    device: Device,
    dtype: DType,
}

impl Plan {
    fn find(&self, name: &str, path: &str) -> Result<&Place> {
        self.places.get(path).ok_or_else(|| Error::State {
            name: name.into(),
            problem: "the network has no such parameter; it is not the network that was saved".into(),
        })
    }
}

impl ModuleVisitor for Plan {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.base().inner();
        let place =
            Place { count: value.shape().num_elements(), device: value.device(), dtype: value.dtype() };
        self.places.insert(join(&self.path), place);
    }
}
