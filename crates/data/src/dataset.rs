//! What every format becomes.

use crate::draw::{Draw, Purpose};
pub use crate::items::{FeatureStore, ImageStore, Items};
use crate::readable::Failure;
use crate::views::ChannelSums;
use crate::{Annotators, Error, Result, Reviewed, Sources};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// Items with labels of unknown quality.
#[derive(Clone)]
pub struct Dataset {
    name: String,
    classes: Vec<String>,
    items: Items,
    given: Vec<u32>,
    truth: Option<Vec<u32>>,
    /// Where labels come from, where that is known.
    sources: Option<Arc<Sources>>,
    /// Labels by several annotators, where there are several.
    annotators: Option<Arc<Annotators>>,
    /// What a review changed in its labels, where there was one.
    review: Option<Reviewed>,
    /// Over the pixels of its pictures, once somebody has looked at them all.
    channel_sums: Arc<OnceLock<ChannelSums>>,
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Dataset `{}`, {} items, {} classes", self.name, self.len(), self.classes.len())
    }
}

impl Dataset {
    /// A dataset, if items, labels and classes fit together.
    pub fn new(
        name: impl Into<String>,
        classes: Vec<String>,
        items: Items,
        given: Vec<u32>,
        truth: Option<Vec<u32>>,
    ) -> Result<Self> {
        let channel_sums = Arc::default();
        let (sources, annotators, review) = (None, None, None);
        let name = name.into();
        let dataset = Self { name, classes, items, given, truth, sources, annotators, review, channel_sums };
        dataset.check("label", &dataset.given)?;
        if let Some(truth) = &dataset.truth {
            dataset.check("true label", truth)?;
        }
        Ok(dataset)
    }

    /// Items that nobody has labelled, to be predicted: one class, which means nothing.
    pub fn unlabelled(name: impl Into<String>, items: Items) -> Self {
        let given = vec![0; items.len()];
        let classes = vec!["unlabelled".into()];
        Self {
            name: name.into(),
            classes,
            items,
            given,
            truth: None,
            sources: None,
            annotators: None,
            review: None,
            channel_sums: Arc::default(),
        }
    }

    /// With the sources of its labels, and the labels by several annotators that the given ones were made from.
    ///
    /// # Errors
    /// If they are of another number of items.
    pub fn with_provenance(self, sources: Option<Sources>, annotators: Option<Annotators>) -> Result<Self> {
        let lengths = [
            ("sources", sources.as_ref().map(|sources| sources.of_items().len())),
            (
                "labels by an annotator",
                annotators.as_ref().and_then(|all| all.columns().first().map(Vec::len)),
            ),
        ];
        for (what, length) in lengths {
            if let Some(length) = length.filter(|length| *length != self.len()) {
                let problem = format!("{length} {what} for {} items: every item needs one", self.len());
                return Err(Error::Labels { dataset: self.name, problem });
            }
        }
        Ok(Self { sources: sources.map(Arc::new), annotators: annotators.map(Arc::new), ..self })
    }

    /// With what a review changed in its labels.
    pub(crate) fn with_review(self, review: Reviewed) -> Self {
        Self { review: Some(review), ..self }
    }

    fn check(&self, what: &str, labels: &[u32]) -> Result<()> {
        let problem = if labels.len() != self.items.len() {
            format!("{} {what}s for {} items: every item needs one", labels.len(), self.items.len())
        } else if let Some(at) = labels.iter().position(|&l| l as usize >= self.classes.len()) {
            let last = self.classes.len().saturating_sub(1);
            format!(
                "{what} {} of item {at} is not a class: there are {}, numbered 0 to {last}",
                labels[at],
                self.classes.len()
            )
        } else {
            return Ok(());
        };
        Err(Error::Labels { dataset: self.name.clone(), problem })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The items.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Labels as given.
    pub fn given(&self) -> &[u32] {
        &self.given
    }

    /// True labels, where they are known.
    pub fn truth(&self) -> Option<&[u32]> {
        self.truth.as_deref()
    }

    /// Where labels come from, where a column says so.
    pub fn sources(&self) -> Option<&Sources> {
        self.sources.as_deref()
    }

    /// Labels by several annotators, of which the given ones are the majority votes.
    pub fn annotators(&self) -> Option<&Annotators> {
        self.annotators.as_deref()
    }

    /// What a review changed in its labels, as they were read; samples of them say the same.
    pub fn review(&self) -> Option<&Reviewed> {
        self.review.as_ref()
    }

    /// The same items with other given labels; those given before become the truth unless a truth is known.
    pub fn with_noise(&self, labels: Vec<u32>) -> Result<Self> {
        let truth = self.truth.clone().unwrap_or_else(|| self.given.clone());
        self.relabelled(labels, Some(truth))
    }

    /// The same items with other labels.
    pub(crate) fn relabelled(&self, given: Vec<u32>, truth: Option<Vec<u32>>) -> Result<Self> {
        let same = Self::new(self.name.clone(), self.classes.clone(), self.items.clone(), given, truth)?;
        Ok(Self {
            channel_sums: self.channel_sums.clone(),
            sources: self.sources.clone(),
            annotators: self.annotators.clone(),
            review: self.review,
            ..same
        })
    }

    /// Sums over the pixels of its pictures, by channel. They are found once: [`Splits::check_readable`] and
    /// [`Splits::without_unreadable`] do so where they decode pictures anyway.
    pub fn channel_sums(&self) -> Result<&ChannelSums> {
        let Items::Images(store) = &self.items else {
            let problem = "it holds feature vectors, which have no channels".into();
            return Err(Error::Labels { dataset: self.name.clone(), problem });
        };
        if let Some(sums) = self.channel_sums.get() {
            return Ok(sums);
        }
        let sums = ChannelSums::measure(store.as_ref())?;
        Ok(self.channel_sums.get_or_init(|| sums))
    }

    pub(crate) fn remember_channel_sums(&self, sums: ChannelSums) {
        // Whoever was first found the same.
        let _ = self.channel_sums.set(sums);
    }

    /// The chosen items, in the order chosen.
    pub fn subset(&self, chosen: &[usize]) -> Result<Self> {
        if let Some(&outside) = chosen.iter().find(|&&i| i >= self.len()) {
            let problem = format!("no item {outside}: there are {}", self.len());
            return Err(Error::Labels { dataset: self.name.clone(), problem });
        }
        let pick = |labels: &[u32]| chosen.iter().map(|&i| labels[i]).collect();
        let truth = self.truth.as_deref().map(pick);
        let items = self.items.subset(chosen);
        let some = Self::new(self.name.clone(), self.classes.clone(), items, pick(&self.given), truth)?;
        Ok(Self {
            sources: self.sources.as_ref().map(|sources| Arc::new(sources.pick(chosen))),
            annotators: self.annotators.as_ref().map(|annotators| Arc::new(annotators.pick(chosen))),
            review: self.review,
            ..some
        })
    }

    /// So many of the items, chosen at random but always the same ones, in their own order.
    pub fn sample(&self, count: usize) -> Result<Self> {
        if count == 0 || count > self.len() {
            let problem = format!("{count} items were requested: it must be from 1 to {}", self.len());
            return Err(Error::Labels { dataset: self.name.clone(), problem });
        }
        let order = Draw::new(0, Purpose::Sample, 0, 0).permutation(self.len());
        let mut chosen: Vec<usize> = order.into_iter().take(count).map(|i| i as usize).collect();
        chosen.sort_unstable();
        self.subset(&chosen)
    }

    /// sha256 over class names, given labels and every item's bytes, in hexadecimal: two datasets with the same
    /// fingerprint train the same.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update((self.classes.len() as u64).to_le_bytes());
        for class in &self.classes {
            hash.update((class.len() as u64).to_le_bytes());
            hash.update(class);
        }
        self.given.iter().for_each(|label| hash.update(label.to_le_bytes()));
        match &self.items {
            Items::Images(store) => {
                for i in 0..store.len() {
                    let bytes = store.bytes(i)?;
                    hash.update((bytes.len() as u64).to_le_bytes());
                    hash.update(&bytes);
                }
            }
            Items::Features(store) => {
                let mut row = vec![0.0; store.dim()];
                for i in 0..store.len() {
                    store.read(i, &mut row)?;
                    row.iter().for_each(|x| hash.update(x.to_le_bytes()));
                    if let Some(text) = store.text(i) {
                        hash.update((text.len() as u64).to_le_bytes());
                        hash.update(text);
                    }
                }
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A dataset with what it is judged by.
#[derive(Debug, Clone)]
pub struct Splits {
    /// To learn from.
    pub train: Dataset,
    /// To be judged by, with labels that are believed; absent where the user has none.
    pub test: Option<Dataset>,
    /// A second test set, such as ILSVRC12's validation images for mini-WebVision.
    pub second_test: Option<Dataset>,
    /// What a person should know of how the data was read: files passed over, for instance. A sentence each.
    pub notes: Vec<String>,
    /// Items that cannot be read and were left out, as was asked for.
    pub left_out: Vec<Failure>,
}

impl Splits {
    /// Data with its test split, and nothing to say about it.
    pub fn new(train: Dataset, test: Option<Dataset>) -> Self {
        Self { train, test, second_test: None, notes: Vec::new(), left_out: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors that say their own number.
    struct Numbers(usize);

    impl FeatureStore for Numbers {
        fn len(&self) -> usize {
            self.0
        }
        fn dim(&self) -> usize {
            1
        }
        fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
            out[0] = index as f32;
            Ok(())
        }
    }

    #[test]
    fn a_sample_is_always_the_same_in_order_and_with_its_labels() {
        let labels: Vec<u32> = (0..1000).map(|i| i % 7).collect();
        let names = (0..7).map(|c| c.to_string()).collect();
        let items = Items::Features(Arc::new(Numbers(1000)));
        let all = Dataset::new("numbers", names, items, labels, None).unwrap();
        let read = |set: &Dataset| -> Vec<usize> {
            let Items::Features(store) = set.items() else { panic!("features") };
            let one = |i| {
                let mut out = [0.0];
                store.read(i, &mut out).unwrap();
                out[0] as usize
            };
            (0..set.len()).map(one).collect()
        };
        let some = all.sample(100).unwrap();
        let numbers = read(&some);
        assert_eq!(numbers, read(&all.sample(100).unwrap()));
        assert!(numbers.is_sorted() && numbers.len() == 100 && numbers.last() > Some(&500), "{numbers:?}");
        assert!(numbers.iter().zip(some.given()).all(|(&i, &label)| label == i as u32 % 7));
        assert_eq!(read(&all.sample(1000).unwrap()), (0..1000).collect::<Vec<_>>());
        for wrong in [0, 1001] {
            let error = all.sample(wrong).err().unwrap().to_string();
            assert!(error.contains(&wrong.to_string()) && error.contains("1000"), "{error}");
        }
    }
}
