//! Forms of the plug-in that the paper does not print, around the evaluation of those that it does.

use crate::exclusion::exclude;
use crate::features::FeatureBuffers;
use crate::plugin::{Input, expect_finite, expect_size};
use crate::product::gram;
use crate::real::dot;
use crate::{
    BatchLabels, DeltaFeatures, Error, GradientLengths, Memory, NegScale, Real, Result, Settings, Terms,
    Workspace, snop,
};

impl NegScale {
    /// Value and gradient, B x C, of [exclusion](crate::exclusion) with its weight, from logits B x C of the same batch; `errors` are the
    /// probabilities, at most a half, that labels are wrong by an unrelated class.
    pub fn exclusion<T: Real>(
        &self,
        logits: &[T],
        batch: &BatchLabels<T>,
        errors: &[T],
    ) -> Result<(f64, Vec<T>)> {
        let (classes, labels) = (self.classes(), self.labels(batch)?);
        let b = labels.len();
        expect_size("logits", logits.len(), b * classes, || format!("{b} labels times {classes} classes"))?;
        expect_finite("logit", logits, classes)?;
        expect_size("errors of exclusion", errors.len(), b, || format!("{b} labels"))?;
        if let Some(error) = errors.iter().find(|error| !(0.0..=0.5).contains(&error.wide())) {
            let (value, requirement) = (error.wide().to_string(), "a probability from 0 to 0.5");
            return Err(Error::Setting { name: "errors of exclusion", value, requirement });
        }
        let weight = self.settings.exclusion;
        let mut gradient = vec![T::ZERO; logits.len()];
        let value = exclude(&self.relations, logits, labels, errors, weight, &mut gradient);
        Ok((weight * value, gradient))
    }

    /// How long the gradients of the single terms are for a batch: for looking at them, since it evaluates each term by itself.
    pub fn gradient_lengths<T: Real>(
        &self,
        features: &[T],
        dim: usize,
        batch: &BatchLabels<T>,
    ) -> Result<GradientLengths> {
        let whole = self.settings.clone().with_anchor(0.0).with_balance(0.0);
        let gradient = |settings: Settings| -> Result<Vec<T>> {
            let mut alone = self.clone();
            alone.settings = settings;
            let mut workspace = Workspace::new();
            Ok(alone.loss_and_gradient(features, dim, batch, &mut workspace)?.gradient.to_vec())
        };
        let length = |settings| gradient(settings).map(|g| dot(&g, &g).sqrt());
        let Settings { global, local, .. } = whole;
        let sum = gradient(whole.clone())?;
        let square = dot(&sum, &sum);
        let below = sum.iter().zip(features).filter(|(_, f)| **f <= T::ZERO);
        let below: f64 = below.map(|(g, _)| g.wide() * g.wide()).sum();
        Ok(GradientLengths {
            global: length(whole.clone().with_dcsa(false).with_local(0.0).with_global(global))?,
            local: length(whole.clone().with_dcsa(false).with_global(0.0).with_local(local))?,
            dcsa: length(whole.with_snop(false))?,
            inactive: if square > 0.0 { below / square } else { 0.0 },
        })
    }

    /// Cosines of the features at the epoch's start, where delta is made from them.
    pub(crate) fn freeze<T: Real>(&self, input: Input<T>, workspace: &mut Workspace<T>) -> Result<()> {
        if self.settings.delta_features == DeltaFeatures::Batch {
            return Ok(());
        }
        let Input { threads, dim, labels, given, .. } = input;
        let (lacks, by) = ("features of the epoch's start", "with_frozen");
        let frozen =
            given.frozen.ok_or(Error::Lacking { setting: "delta_features = \"epoch\"", lacks, by })?;
        let b = labels.len();
        expect_size("frozen features", frozen.len(), b * dim, || {
            format!("{b} labels times dimension {dim}")
        })?;
        expect_finite("frozen feature", frozen, dim)?;
        let buffers = &mut workspace.frozen;
        buffers.normalise(threads, frozen, b, dim, self.settings.rectify);
        buffers.gram.resize(b * b, T::ZERO);
        gram(threads, &mut buffers.gram, &buffers.unit, b, &mut buffers.gradient);
        Ok(())
    }

    /// With the anchor of class means, where that is on and something is remembered.
    pub(crate) fn anchored<T: Real>(
        &self,
        input: Input<T>,
        features: &[T],
        value: f64,
        terms: Terms,
        workspace: &mut Workspace<T>,
    ) -> (f64, Terms) {
        let Settings { anchor: weight, anchor_momentum: momentum, during_warm_up, .. } = self.settings;
        let Input { labels, given, .. } = input;
        let Workspace { memory, features: FeatureBuffers { gradient, .. }, .. } = workspace;
        let Some(anchor) = memory.anchor.as_mut().filter(|_| weight > 0.0) else { return (value, terms) };
        if given.warming_up && !during_warm_up {
            return (value, terms);
        }
        let loss = anchor.pull(&self.relations, features, labels, given.clean, momentum, weight, gradient);
        (value + weight * loss, Terms { anchor: loss, ..terms })
    }

    /// Value and gradient scaled to a share of the host's gradient, where that is asked for.
    pub(crate) fn balanced<T: Real>(
        &self,
        value: f64,
        terms: Terms,
        workspace: &mut Workspace<T>,
    ) -> (f64, Terms) {
        let rho = self.settings.balance;
        let Workspace { memory: Memory { balance, .. }, features: FeatureBuffers { gradient, .. }, .. } =
            workspace;
        if rho == 0.0 {
            return (value, terms);
        }
        let own = dot(gradient, gradient).sqrt();
        if own > 0.0 {
            balance.take_own(own);
        }
        let scale = balance.factor(rho, own);
        let factor = T::of(scale);
        gradient.iter_mut().for_each(|g| *g = *g * factor);
        (scale * value, Terms { scale, ..terms })
    }

    /// Evaluates with the cosines that delta is made from: those of the batch, or of the epoch's start.
    pub(crate) fn with_delta<T: Real>(
        &self,
        input: Input<T>,
        gram: &[T],
        features: Option<snop::Features<T>>,
        workspace: &mut Workspace<T>,
    ) -> (f64, Terms) {
        match self.settings.delta_features {
            DeltaFeatures::Batch => self.evaluate(input, gram, gram, features, workspace),
            DeltaFeatures::Epoch => {
                let frozen = std::mem::take(&mut workspace.frozen);
                let evaluated = self.evaluate(input, gram, &frozen.gram, features, workspace);
                workspace.frozen = frozen;
                evaluated
            }
        }
    }
}
