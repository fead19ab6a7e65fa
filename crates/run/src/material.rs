//! The data of a run, with the noise that was added to it.

use crate::Result;
use crate::recipe::Recipe;
use negscale_data::{Dataset, Noise, NoiseSpec, Splits, noise};
use negscale_methods::trainer::Task;
use negscale_nets::model::Preparation;
use sha2::{Digest, Sha256};

/// The data of a run, ready for training.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Material {
    /// The samples to train on, with labels as given.
    pub train: Dataset,
    /// All splits as they came.
    pub splits: Splits,
    /// The noise that was added to the labels, if any.
    pub noise: Option<Noise>,
    /// Hash of the training data as it came.
    pub fingerprint: String,
    /// How items become the networks' input.
    pub preparation: Preparation,
}

impl Material {
    /// Adds the noise to the data and fingerprints it.
    pub fn prepare(recipe: &Recipe, splits: Splits, preparation: Preparation) -> Result<Self> {
        let mut fingerprint = splits.train.fingerprint()?;
        if let Some(hash) = provenance(&splits.train) {
            fingerprint = format!("{fingerprint}\n{hash}");
        }
        let is_noisy = recipe.data.noise != NoiseSpec::None;
        let noise = is_noisy.then(|| {
            let context = recipe.data.noise_context();
            noise::apply(&recipe.data.noise, &splits.train, recipe.data.noise_seed, &context)
        });
        let mut noise = noise.transpose()?;
        let mut train = match &noise {
            Some(noise) => splits.train.with_noise(noise.labels.clone())?,
            None => splits.train.clone(),
        };
        // After the noise: tables of it have a line for every sample.
        if let Some(samples) = recipe.data.samples {
            train = train.sample(samples)?;
            if let (Some(noise), Some(achieved)) = (&mut noise, noise_rate(&train)) {
                noise.achieved = achieved;
            }
        }
        Ok(Self { train, splits, noise, fingerprint, preparation })
    }

    /// What is to be learnt from it with these settings.
    pub fn task(&self, recipe: &Recipe) -> Result<Task> {
        Ok(Task {
            train: self.train.clone(),
            test: self.splits.test.clone(),
            second_test: self.splits.second_test.clone(),
            preparation: self.preparation.clone(),
            tree: recipe.data.tree_for(self.train.classes())?,
            noise: recipe.data.noise.clone(),
        })
    }

    /// Share of labels that differ from the truth, where it is known.
    #[must_use]
    pub fn noise_rate(&self) -> Option<f64> {
        noise_rate(&self.train)
    }
}

/// A hash of where labels come from, where that is known.
fn provenance(data: &Dataset) -> Option<String> {
    let mut hash = Sha256::new();
    let add_names = |hash: &mut Sha256, names: &[String]| {
        for name in names {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
        }
    };
    if let Some(sources) = data.sources() {
        add_names(&mut hash, sources.names());
        sources.of_items().iter().for_each(|source| hash.update(source.to_le_bytes()));
    }
    if let Some(annotators) = data.annotators() {
        add_names(&mut hash, annotators.names());
        let labels = annotators.columns().iter().flatten();
        labels.for_each(|label| hash.update(label.unwrap_or(u32::MAX).to_le_bytes()));
    }
    let is_known = data.sources().is_some() || data.annotators().is_some();
    is_known.then(|| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn noise_rate(data: &Dataset) -> Option<f64> {
    let wrong = data.given().iter().zip(data.truth()?).filter(|(given, truth)| given != truth).count();
    (!data.is_empty()).then(|| wrong as f64 / data.len() as f64)
}
