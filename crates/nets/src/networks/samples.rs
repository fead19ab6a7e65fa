//! What a network is run on.

use burn::tensor::{Int, Tensor};

/// A batch of samples.
#[derive(Debug, Clone)]
pub enum Samples {
    /// Images with their channels last, `[batch, rows, columns, channels]`: as the loader gives them and the kernels read them.
    Images(Tensor<4>),
    /// Rows, `[batch, values]`.
    Rows(Tensor<2>),
}

/// Images with their channels first, `[batch, channels, rows, columns]`, as PyTorch and burn have them.
impl From<Tensor<4>> for Samples {
    fn from(images: Tensor<4>) -> Self {
        Self::Images(images.permute([0, 2, 3, 1]))
    }
}

impl From<Tensor<2>> for Samples {
    fn from(rows: Tensor<2>) -> Self {
        Self::Rows(rows)
    }
}

impl Samples {
    /// Several batches as one, the first one's samples first: those of its kind, images or rows.
    ///
    /// # Panics
    /// If there are none.
    pub fn join(batches: Vec<Samples>) -> Self {
        let (mut images, mut rows) = (Vec::new(), Vec::new());
        for batch in batches {
            match batch {
                Self::Images(batch) => images.push(batch),
                Self::Rows(batch) => rows.push(batch),
            }
        }
        if images.is_empty() {
            Self::Rows(Tensor::cat(rows, 0))
        } else {
            Self::Images(Tensor::cat(images, 0))
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Images(images) => images.dims()[0],
            Self::Rows(rows) => rows.dims()[0],
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the samples, in this order.
    ///
    /// # Panics
    /// If there is no such sample.
    pub fn select(&self, places: Tensor<1, Int>) -> Self {
        match self {
            Self::Images(images) => Self::Images(images.clone().select(0, places)),
            Self::Rows(rows) => Self::Rows(rows.clone().select(0, places)),
        }
    }
}
