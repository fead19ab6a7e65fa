//! The plug-in: $\lambda L_{SNOP} + \mu L_{DCSA}$ (paper, equation 9 without the host's own loss) and its gradient.
//!
//! Everything is a function of the Gram matrix $G = XX^\top$ of the unit features, so the heart is
//! [`NegScale::loss_and_gradient_from_cosines`]:
//! $(G, \tilde y, c) \mapsto (\text{value}, \Gamma = \partial\,\text{value}/\partial G)$. From there
//! $\partial/\partial X = 2\Gamma X$, and [`NegScale::loss_and_gradient`] adds the normalisation (see `features.rs`).

use crate::features::FeatureBuffers;
use crate::pairs::{Batch, ClassRelations, PairSets};
use crate::product::{self, View, add_product, product};
use crate::rows::Row;
use crate::taxonomy::{Distances, Relation};
use crate::threads::Threads;
use crate::{
    BatchLabels, Centre, Confidence, DeltaFeatures, Error, Evaluation, LocalDivisor, PairLists, Real,
    Reduction, Result, Settings, Targets, Taxonomy, TermState, Terms, Workspace, dcsa, snop,
};

/// What one evaluation is about, beside the features.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a, T> {
    pub(crate) threads: Threads,
    pub(crate) dim: usize,
    /// Those that decide the pair sets.
    pub(crate) labels: &'a [usize],
    pub(crate) confidence: &'a [T],
    pub(crate) given: &'a BatchLabels<'a, T>,
}

/// The plug-in for one class tree and one choice of settings. Shared freely among threads; each needs its own
/// [`Workspace`].
///
/// ```
/// use negscale::{BatchLabels, NegScale, Settings, Taxonomy, Workspace};
///
/// let plugin = NegScale::new(&Taxonomy::builtin("cifar10")?, Settings::default())?;
/// let mut workspace = Workspace::<f32>::new();
/// # let (features, labels, confidence) = (vec![0.1f32, 0.9, -0.4, 0.2, 0.3, -0.8], [3usize, 5, 9], [0.5f32, 0.7, 0.9]);
/// // per batch: features is B x d, row after row
/// let batch = BatchLabels::new(&labels, &confidence);
/// let result = plugin.loss_and_gradient(&features, 2, &batch, &mut workspace)?;
/// // loss += result.value;  gradient of the features += result.gradient
/// # assert!(result.value.is_finite() && result.gradient.len() == 6);
/// # Ok::<(), negscale::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NegScale {
    tree: String,
    pub(crate) relations: ClassRelations,
    pub(crate) settings: Settings,
}

impl NegScale {
    /// The plug-in, if the settings are valid.
    pub fn new(tree: &Taxonomy, settings: Settings) -> Result<Self> {
        Self::from_distances(tree.name(), &tree.distances(), settings)
    }

    /// The plug-in for class distances that come from no tree, called `name` in messages.
    pub fn from_distances(name: &str, distances: &Distances, settings: Settings) -> Result<Self> {
        let settings = settings.checked()?;
        let relations = ClassRelations::new(distances, settings.thresholds()?);
        Ok(Self { tree: name.to_owned(), relations, settings })
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of classes of the tree.
    pub fn classes(&self) -> usize {
        self.relations.classes
    }

    /// Relations of all pairs of classes, C x C.
    pub fn relations(&self) -> &[Relation] {
        self.relations.table()
    }

    /// The unrelated and the related pairs $i < j$ that the loss of this batch is about, as lists: for looking at them. The
    /// loss itself never makes these lists.
    pub fn pairs<T: Real>(&self, batch: &BatchLabels<T>) -> Result<PairLists> {
        let labels = self.labels(batch)?;
        let b = labels.len();
        let mut sets = PairSets::<T>::default();
        sets.find(labels, &self.relations, &self.settings, batch.step);
        let all = (0..b).flat_map(|i| (i + 1..b).map(move |j| (i, j)));
        let related = |&(i, j): &(usize, usize)| self.relations.of(labels[i], labels[j]) == Relation::Related;
        Ok(PairLists {
            unrelated: all.clone().filter(|&(i, j)| sets.unrelated_to(i, b)[j] == T::ONE).collect(),
            related: all.filter(related).collect(),
        })
    }

    /// Whether cosines of all pairs are all that the loss needs, so that [`loss_and_gradient_from_cosines`](Self::loss_and_gradient_from_cosines)
    /// of features that are neither centred nor rectified gives the same.
    #[must_use]
    pub fn is_of_cosines(&self) -> bool {
        self.settings.centre == Centre::None && self.needs_features().is_none()
    }

    /// A setting that cosines are not enough for.
    fn needs_features(&self) -> Option<&'static str> {
        let s = &self.settings;
        let all = [
            ("anchor", s.anchor > 0.0),
            ("balance", s.balance > 0.0),
            ("delta_features", s.delta_features == DeltaFeatures::Epoch),
        ];
        all.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// Value and $\Gamma = \partial\,\text{value}/\partial G$ (symmetric: a change $dG$ changes the value by
    /// $\sum_{ij}\Gamma_{ij}\,dG_{ij}$) from the symmetric Gram matrix, B x B row-major.
    ///
    /// `dim` is the feature dimension $d$; it enters only the constant of `reduction = "sum"`, where the identity of
    /// $\lVert FF^\top - I_d\rVert^2$ is $d \times d$.
    pub fn loss_and_gradient_from_cosines<'w, T: Real>(
        &self,
        gram: &[T],
        dim: usize,
        batch: &BatchLabels<T>,
        workspace: &'w mut Workspace<T>,
    ) -> Result<Evaluation<'w, T>> {
        if let Some(name) = self.needs_features() {
            let requirement =
                "it needs the features, of which cosines say too little; call `loss_and_gradient`";
            return Err(Error::Setting { name, value: "set".into(), requirement });
        }
        let labels = self.labels(batch)?;
        let b = labels.len();
        expect_size("Gram matrix", gram.len(), b * b, || format!("{b} x {b} for {b} labels"))?;
        expect_finite("cosine", gram, b)?;
        let confidence = self.confidence(batch)?;
        let threads = Threads::for_work(2 * b * b * b);
        let input = Input { threads, dim, labels, confidence, given: batch };
        let (value, terms) = threads.run(|| self.evaluate(input, gram, gram, None, workspace));
        Ok(Evaluation { value, terms, gradient: &workspace.gamma })
    }

    /// Value and gradient from raw features, B x `dim` row-major: centring (if set), normalisation, Gram matrix and
    /// the way back are inside.
    ///
    /// Batches of some size are shared by the threads of the rayon pool. A caller that is inside the pool (`rayon::scope`) takes part;
    /// one outside sleeps meanwhile, and waking takes about a tenth of a millisecond.
    pub fn loss_and_gradient<'w, T: Real>(
        &self,
        features: &[T],
        dim: usize,
        batch: &BatchLabels<T>,
        workspace: &'w mut Workspace<T>,
    ) -> Result<Evaluation<'w, T>> {
        let labels = self.labels(batch)?;
        let b = labels.len();
        expect_size("features", features.len(), b * dim, || format!("{b} labels times dimension {dim}"))?;
        let confidence = self.confidence(batch)?;
        if let Some(anchor) = &workspace.memory.anchor {
            let why = format!("the dimension when class means were remembered was {}", anchor.dim());
            expect_size("dimension", dim, anchor.dim(), || why.clone())?;
        }
        let threads = Threads::for_work(2 * b * b * dim);
        let input = Input { threads, dim, labels, confidence, given: batch };
        let (value, terms) = threads.run(|| {
            self.freeze(input, workspace)?;
            match self.at_once(input, features, workspace) {
                Some(evaluated) => Ok(evaluated),
                None => {
                    expect_finite("feature", features, dim)?;
                    Ok(self.step_by_step(input, features, workspace))
                }
            }
        })?;
        let (value, terms) = self.anchored(input, features, value, terms, workspace);
        let (value, terms) = self.balanced(value, terms, workspace);
        Ok(Evaluation { value, terms, gradient: &workspace.features.gradient })
    }

    /// With the normalisation inside the products; nothing if that is not possible, or not faster.
    fn at_once<T: Real>(
        &self,
        input: Input<T>,
        features: &[T],
        workspace: &mut Workspace<T>,
    ) -> Option<(f64, Terms)> {
        let Input { threads, dim, labels, .. } = input;
        let Settings { centre, rectify, .. } = self.settings;
        if centre != Centre::None || rectify || snop::prefers_features(labels.len(), dim) {
            return None;
        }
        let mut buffers = std::mem::take(&mut workspace.features);
        let evaluated = buffers.find_cosines(threads, features, labels.len()).then(|| {
            let evaluated = self.with_delta(input, &buffers.gram, None, workspace);
            buffers.pull_back(threads, features, dim, &mut workspace.gamma);
            evaluated
        });
        workspace.features = buffers;
        evaluated
    }

    /// With unit vectors in a buffer of their own. All input has been checked: nothing can fail, so a batch that is refused leaves
    /// the running class means as they were.
    fn step_by_step<T: Real>(
        &self,
        input: Input<T>,
        features: &[T],
        workspace: &mut Workspace<T>,
    ) -> (f64, Terms) {
        let Input { threads, dim, labels, .. } = input;
        let b = labels.len();
        let mut buffers = std::mem::take(&mut workspace.features);
        buffers.centre.clear();
        if self.settings.centre == Centre::ClassBalanced {
            let means = &mut workspace.memory.class_means;
            means.update(
                features,
                labels,
                self.classes(),
                self.settings.centre_momentum,
                &mut buffers.centre,
            );
        }
        let rectify = self.settings.rectify;
        let zero_features = buffers.normalise(threads, features, b, dim, rectify);
        let FeatureBuffers { unit, gram, gradient, .. } = &mut buffers;
        gram.resize(b * b, T::ZERO);
        product::gram(threads, gram, unit, b, gradient);
        let x = View::new(unit, b, dim);
        gradient.resize(b * dim, T::ZERO);
        let by_features = snop::prefers_features(b, dim);
        if by_features {
            gradient.fill(T::ZERO);
        }
        let direct = by_features.then_some(snop::Features { unit, gradient });
        let (value, terms) = self.with_delta(input, gram, direct, workspace);
        let multiply = if by_features { add_product } else { product };
        multiply(threads, gradient, T::of(2.0), View::new(&workspace.gamma, b, b), x);
        buffers.through_normalisation(threads, dim, rectify);
        workspace.features = buffers;
        (value, Terms { zero_features, ..terms })
    }

    /// The confidences that count, all of them probabilities.
    fn confidence<'a, T: Real>(&self, batch: &BatchLabels<'a, T>) -> Result<&'a [T]> {
        let b = batch.labels.len();
        for (what, values) in [("confidence", Some(batch.confidence)), ("clean probability", batch.clean)] {
            let values = values.unwrap_or(batch.confidence);
            expect_size(what, values.len(), b, || format!("{b} labels"))?;
            expect_probabilities(values)?;
        }
        match self.settings.confidence {
            Confidence::Prediction => Ok(batch.confidence),
            Confidence::Clean => {
                let (lacks, by) = ("probability that labels are right", "with_clean");
                batch.clean.ok_or(Error::Lacking { setting: "confidence = \"clean\"", lacks, by })
            }
        }
    }

    /// The labels that decide the pair sets, all of them classes of the tree.
    pub(crate) fn labels<'a, T>(&self, batch: &BatchLabels<'a, T>) -> Result<&'a [usize]> {
        let labels = match self.settings.targets {
            Targets::Given => batch.labels,
            Targets::Refurbished => batch.refurbished.ok_or(Error::NoRefurbished)?,
        };
        let b = batch.labels.len();
        expect_size("refurbished labels", labels.len(), b, || format!("{b} given labels"))?;
        let classes = self.classes();
        match labels.iter().position(|&label| label >= classes) {
            None => Ok(labels),
            Some(sample) => {
                let (label, tree) = (labels[sample], self.tree.clone());
                Err(Error::Label { sample, label, tree, classes, last: classes.saturating_sub(1) })
            }
        }
    }

    /// Value and record; leaves $\Gamma$ in the workspace. All input has been checked.
    pub(crate) fn evaluate<T: Real>(
        &self,
        input: Input<T>,
        gram: &[T],
        delta_gram: &[T],
        features: Option<snop::Features<T>>,
        workspace: &mut Workspace<T>,
    ) -> (f64, Terms) {
        let Input { threads, dim, labels, confidence, given } = input;
        let s = &self.settings;
        let b = labels.len();
        let Workspace { pairs, doubt, gamma, rows, snop: snop_buffers, dcsa: dcsa_buffers, .. } = workspace;
        doubt.clear();
        doubt.extend(confidence.iter().map(|&c| T::ONE - c));
        pairs.find(labels, &self.relations, s, given.step);
        let batch = Batch { threads, gram, b, pairs };
        rows.resize(b, Row::default());
        gamma.resize(b * b, T::ZERO);

        let state = |wanted: bool, pairs: bool| match () {
            _ if !wanted => TermState::Off,
            _ if given.warming_up && !s.during_warm_up => TermState::WarmUp,
            _ if !pairs => TermState::NoPairs,
            _ => TermState::Active,
        };
        let mut terms = Terms {
            global: 0.0,
            local: 0.0,
            dcsa: 0.0,
            anchor: 0.0,
            snop_state: state(s.snop && s.lambda > 0.0, pairs.p > 0),
            dcsa_state: state(s.dcsa && s.mu > 0.0, pairs.p > 0 && pairs.q > 0),
            unrelated_pairs: pairs.p,
            related_pairs: pairs.q,
            capped_pairs: 0,
            identical_pairs: 0,
            zero_features: 0,
            scale: 1.0,
        };
        let (p, q) = (pairs.p as f64, pairs.q as f64);
        // What each sum is divided by.
        let (per_entry, per_unrelated, per_related) = match s.reduction {
            Reduction::Mean => (p * p, p, q),
            Reduction::Sum => (1.0, 1.0, 1.0),
        };

        let snop_on = terms.snop_state == TermState::Active;
        if snop_on && s.global > 0.0 {
            let scale = s.lambda * s.global / per_entry;
            let global = snop::global(batch, scale, features, gamma, snop_buffers, rows);
            let identity = if s.reduction == Reduction::Mean { pairs.p } else { dim };
            terms.global = global.distance_to_identity(identity) / per_entry;
            terms.identical_pairs = global.identical;
        } else {
            gamma.fill(T::ZERO);
        }
        if snop_on && s.local > 0.0 {
            let by_entries = s.local_divisor == LocalDivisor::Entries;
            let divisor = if by_entries { per_entry } else { per_unrelated };
            let squared = snop::Squared::new(s, self.classes());
            let scale = s.lambda * s.local / divisor;
            terms.local = snop::local(batch, doubt, squared, scale, gamma, rows) / divisor;
        }
        if terms.dcsa_state == TermState::Active {
            let (sum, capped) =
                dcsa::cap(batch, delta_gram, s, s.mu / per_related, gamma, dcsa_buffers, rows);
            (terms.dcsa, terms.capped_pairs) = (sum / per_related, capped);
        }
        let value = s.lambda * (s.global * terms.global + s.local * terms.local) + s.mu * terms.dcsa;
        (value, terms)
    }
}

pub(crate) fn expect_size(
    what: &'static str,
    got: usize,
    need: usize,
    why: impl Fn() -> String,
) -> Result<()> {
    if got == need { Ok(()) } else { Err(Error::Size { what, got, need, why: why() }) }
}

/// All confidences in [0, 1].
fn expect_probabilities<T: Real>(confidence: &[T]) -> Result<()> {
    match confidence.iter().position(|&c| !(c >= T::ZERO && c <= T::ONE)) {
        Some(sample) => Err(Error::Confidence { sample, value: confidence[sample].wide() }),
        None => Ok(()),
    }
}

/// All values finite; `width` of them belong to one sample.
pub(crate) fn expect_finite<T: Real>(what: &'static str, values: &[T], width: usize) -> Result<()> {
    // 0 v is 0 unless v is NaN or infinite; lanes let the compiler check many values at a time.
    let mut lanes = [T::ZERO; 16];
    let whole = values.chunks_exact(16);
    let rest: T = whole.remainder().iter().map(|&v| v * T::ZERO).sum();
    whole.for_each(|chunk| (0..16).for_each(|l| lanes[l] += chunk[l] * T::ZERO));
    if lanes.into_iter().sum::<T>() + rest == T::ZERO {
        return Ok(());
    }
    match values.iter().position(|v| !v.finite()) {
        Some(at) => Err(Error::NotFinite { what, sample: at / width.max(1), value: values[at].wide() }),
        None => Ok(()),
    }
}
