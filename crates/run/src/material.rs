//! The data of a run, with the noise that was laid over it.

use crate::Result;
use crate::recipe::Recipe;
use negscale_data::{Dataset, Noise, NoiseSpec, Splits, noise};
use negscale_methods::trainer::Task;
use negscale_nets::model::Preparation;

/// The data of a run, ready to be learnt from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Material {
    /// The samples to train on, with labels as given.
    pub train: Dataset,
    /// All parts as they came.
    pub splits: Splits,
    /// The noise that was laid over the labels, if any.
    pub noise: Option<Noise>,
    /// Hash of the training data as it came.
    pub fingerprint: String,
    /// How items become the networks' input.
    pub preparation: Preparation,
}

impl Material {
    /// Lays the noise over the data and fingerprints it.
    pub fn prepare(recipe: &Recipe, splits: Splits, preparation: Preparation) -> Result<Self> {
        let fingerprint = splits.train.fingerprint()?;
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

fn noise_rate(data: &Dataset) -> Option<f64> {
    let wrong = data.given().iter().zip(data.truth()?).filter(|(given, truth)| given != truth).count();
    (!data.is_empty()).then(|| wrong as f64 / data.len() as f64)
}
