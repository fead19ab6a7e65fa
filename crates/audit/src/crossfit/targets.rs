//! What each row is to be taught: probabilities of classes, of which few are above zero.

/// Rows of probabilities, by their entries.
#[derive(Debug, Clone)]
pub struct Targets {
    classes: usize,
    /// Where each row's entries begin, and the end.
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Targets {
    /// Every row is of the class that its label names.
    #[must_use]
    pub fn of_labels(labels: &[u32], classes: usize) -> Self {
        let starts = (0..=labels.len()).collect();
        Self { classes, starts, entries: labels.iter().map(|&label| (label, 1.0)).collect() }
    }

    /// Rows by their entries, class and probability.
    #[must_use]
    pub fn of_rows(rows: Vec<Vec<(u32, f32)>>, classes: usize) -> Self {
        let mut starts = Vec::with_capacity(rows.len() + 1);
        starts.push(0);
        for row in &rows {
            starts.push(starts[starts.len() - 1] + row.len());
        }
        Self { classes, starts, entries: rows.into_iter().flatten().collect() }
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The entries of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}
