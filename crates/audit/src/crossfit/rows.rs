//! Rows of numbers.

use crate::{Error, Result};

/// Rows of numbers, all of one length.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) dim: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `dim` numbers, row after row.
    ///
    /// # Errors
    /// If the numbers are no whole rows, or one is not finite.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self> {
        let wrong = |problem| Err(Error::Samples { what: "features", problem });
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return wrong(format!("{} numbers are no rows of {dim}", values.len()));
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return wrong(format!(
                "row {}, column {} is {}: give finite numbers",
                at / dim,
                at % dim,
                values[at]
            ));
        }
        Ok(Self { values, dim })
    }

    /// Rows that are known to be whole and finite.
    pub(crate) fn whole(values: &'a [f32], dim: usize) -> Self {
        Self { values, dim }
    }

    /// Numbers of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All numbers, row after row.
    pub(crate) fn values(&self) -> &'a [f32] {
        self.values
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.dim..(row + 1) * self.dim]
    }

    pub(super) fn gather(&self, members: &[u32], into: &mut Vec<f32>) {
        into.clear();
        members.iter().for_each(|&member| into.extend_from_slice(self.row(member as usize)));
    }
}
