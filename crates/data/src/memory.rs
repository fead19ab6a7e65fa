//! Data that is in memory already.

use crate::{Dataset, Error, FeatureStore, Items, Result};
use std::sync::Arc;

/// Feature vectors in memory, row after row.
struct MemoryFeatures {
    values: Vec<f32>,
    dim: usize,
}

impl FeatureStore for MemoryFeatures {
    fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        out.copy_from_slice(&self.values[index * self.dim..(index + 1) * self.dim]);
        Ok(())
    }
}

impl Dataset {
    /// Embeddings or other feature vectors with labels: `features` holds rows of `dim` numbers, `labels` a class number for each row.
    ///
    /// ```
    /// use negscale_data::Dataset;
    ///
    /// let classes = ["cat", "dog"].map(str::to_owned).to_vec();
    /// let data = Dataset::from_features("pets", classes, vec![0.1, 0.2, 0.9, 0.8], 2, vec![0, 1])?;
    /// assert_eq!(data.len(), 2);
    /// # Ok::<(), negscale_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the sizes do not fit, a number is not finite, or a label names no class.
    pub fn from_features(
        name: impl Into<String>,
        classes: Vec<String>,
        features: Vec<f32>,
        dim: usize,
        labels: Vec<u32>,
    ) -> Result<Self> {
        let name = name.into();
        let problem = if dim == 0 || !features.len().is_multiple_of(dim) {
            format!("{} numbers are no rows of {dim}", features.len())
        } else if let Some(at) = features.iter().position(|value| !value.is_finite()) {
            format!("row {} holds {}: features must be finite numbers", at / dim, features[at])
        } else {
            let items = Items::Features(Arc::new(MemoryFeatures { values: features, dim }));
            return Self::new(name, classes, items, labels, None);
        };
        Err(Error::Labels { dataset: name, problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_and_what_does_not_fit_is_refused() {
        let classes = || vec!["a".to_owned(), "b".to_owned()];
        let data = Dataset::from_features("x", classes(), vec![1.0, 2.0, 3.0, 4.0], 2, vec![0, 1]).unwrap();
        let Items::Features(store) = data.items() else { panic!("features were given") };
        let mut row = [0.0; 2];
        store.read(1, &mut row).unwrap();
        assert_eq!(row, [3.0, 4.0]);
        let told = |features: Vec<f32>, dim: usize, labels: Vec<u32>| {
            Dataset::from_features("x", classes(), features, dim, labels).unwrap_err().to_string()
        };
        assert!(told(vec![1.0; 3], 2, vec![0]).contains("3 numbers are no rows of 2"));
        assert!(told(vec![1.0; 3], 0, vec![0]).contains("no rows of 0"));
        assert!(told(vec![1.0, f32::NAN], 1, vec![0, 0]).contains("row 1 holds NaN"));
        assert!(told(vec![1.0, 2.0], 1, vec![0]).contains("1 labels for 2 items"));
        assert!(told(vec![1.0, 2.0], 1, vec![0, 2]).contains("is not a class"));
    }
}
