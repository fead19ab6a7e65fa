//! How wrong labels stand to the class tree: counted when an epoch is planned, noted with it, and heeded by hosts that guess labels.
//!
//! The notes are saved with the plan, and the weights made from them alone: a run that resumes weighs guesses as before.

use super::Trainer;
use crate::host::Plan;
use crate::kit::posterior::RelationRates;
use negscale::taxonomy::Relation;

/// Under these names the rates stand in an epoch's record.
const NOTES: [&str; 3] = [
    "wrong labels related, times chance",
    "wrong labels neutral, times chance",
    "wrong labels unrelated, times chance",
];

impl Trainer {
    /// Relations of all pairs of classes, if guesses are weighed and there is a class tree by now.
    fn relations(&self) -> Option<&[Relation]> {
        self.plugin.as_ref().filter(|plugin| plugin.weighs_guesses())?.relations()
    }

    /// Notes with a plan how wrong labels stand to the class tree, as the host holds them now.
    pub(super) fn note_relations(&self, plan: &mut Plan) {
        let ledger = &self.train.ledger;
        let (false, Some(relations), Some(predictions)) =
            (plan.warming_up, self.relations(), ledger.predictions())
        else {
            return;
        };
        let clean: Vec<f32> = (0..ledger.len()).map(|i| ledger.clean(i).unwrap_or(f32::NAN)).collect();
        let RelationRates { related, neutral, unrelated } =
            RelationRates::of(predictions, &clean, ledger.given(), relations);
        plan.notes.extend(NOTES.map(str::to_owned).into_iter().zip([related, neutral, unrelated]));
    }

    /// The weights of guesses that a plan's notes ask for.
    pub(super) fn weights_by(&self, plan: &Plan) -> Option<Vec<f32>> {
        let [related, neutral, unrelated] = NOTES.map(|name| plan.notes.get(name).copied());
        let rates = RelationRates { related: related?, neutral: neutral?, unrelated: unrelated? };
        Some(rates.guess_weights(self.relations()?))
    }
}
