//! Class trees.
/// A class tree.
pub struct Taxonomy;
