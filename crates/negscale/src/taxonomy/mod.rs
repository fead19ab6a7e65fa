//! Class trees: which classes are related, which are not, and which are neither.
//!
//! NegScale measures how far two classes lie apart by the path through their lowest common ancestor
//! (pLCA, equation 1 of the paper). With $h(v)$ the depth of node $v$ below the root and
//! $\mathrm{lca}(a, b)$ the deepest node above (or equal to) both $a$ and $b$,
//!
//! $$D(a, b) = |h(a) - h(\mathrm{lca}(a, b))| + |h(b) - h(\mathrm{lca}(a, b))|,$$
//!
//! which is the number of edges between the two classes. It is symmetric, zero only for a class with
//! itself, and keeps the triangle inequality. Two thresholds $\eta_{\min} \le \eta_{\max}$ then sort
//! the pairs of different classes into three kinds ([`Relation`]):
//!
//! | relation  | condition                       | set of the paper             |
//! |-----------|---------------------------------|------------------------------|
//! | related   | $0 < D \le \eta_{\min}$         | $\mathcal{P}_{\mathrm{sim}}$ |
//! | neutral   | $\eta_{\min} < D \le \eta_{\max}$ | in neither                 |
//! | unrelated | $D > \eta_{\max}$               | $\mathcal{P}_{\mathrm{neg}}$ |
//!
//! A tree comes from one of six places: [built in](Taxonomy::builtin), a
//! [table of nodes](Taxonomy::from_tsv), [indented text](Taxonomy::from_indented),
//! [WordNet](Taxonomy::from_wordnet), [features of the data](Taxonomy::learnt), or
//! [nowhere at all](Taxonomy::flat). Two more are controls: a tree with its classes
//! [permuted](Taxonomy::permuted), and one in which all are [unrelated](Taxonomy::unrelated).
//!
//! ```
//! use negscale::taxonomy::{Relation, Taxonomy, Thresholds};
//!
//! let tree = Taxonomy::builtin("cifar10")?;
//! let (horse, dog, frog, car) = (7, 5, 6, 1);
//! assert_eq!(tree.distance(horse, dog), 3);
//! assert_eq!(tree.distance(car, frog), 8);
//!
//! let thresholds = Thresholds::default(); // (3, 5)
//! assert_eq!(tree.relation(horse, dog, thresholds), Relation::Related);
//! assert_eq!(tree.relation(car, frog, thresholds), Relation::Unrelated);
//! println!("{}", tree.summary(thresholds));
//! # Ok::<(), negscale::Error>(())
//! ```
//!
//! # Where this differs from the paper
//!
//! The paper shows its trees in an appendix that we could not obtain. The built-in trees are our own
//! proposals, except for CIFAR-100, whose grouping is a published one; each file in `trees/` states
//! where it comes from.

mod builtin;
mod distance;
mod flat;
mod grow;
mod indented;
mod learnt;
mod matching;
mod names;
mod permuted;
mod picture;
mod summary;
mod tsv;
mod vectors;
mod wordnet;

pub use distance::{Distances, Relation, Thresholds};
pub use learnt::{LEARNT_MAX_DISTANCE, LearntSettings, class_means};
pub use summary::Summary;
pub use vectors::ClassVectors;
pub use wordnet::{SeveralHypernyms, WordNetOptions};

/// A tree whose classes are numbered 0 to C - 1.
///
/// Classes are usually leaves, but may have classes below them (in WordNet, wolf is the parent of
/// coyote). Every leaf is a class. Node names are unique.
#[derive(Debug, Clone, PartialEq)]
pub struct Taxonomy {
    name: String,
    /// Every parent comes before its children; node 0 is the root.
    nodes: Vec<Node>,
    /// The node of each class.
    class_nodes: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    name: String,
    parent: Option<usize>,
    depth: u32,
    class: Option<usize>,
    children: Vec<usize>,
}

/// Methods that take a class index panic if it is not below [`classes`](Taxonomy::classes), as
/// indexing a slice would.
impl Taxonomy {
    /// Name of the tree: the built-in name, or what the caller called it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of classes C.
    pub fn classes(&self) -> usize {
        self.class_nodes.len()
    }

    /// Number of nodes, classes included.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Names of the classes, in the order of their indices.
    pub fn class_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.class_nodes.iter().map(|&node| self.nodes[node].name.as_str())
    }

    /// Name of one class.
    pub fn class_name(&self, class: usize) -> &str {
        &self.nodes[self.class_nodes[class]].name
    }

    /// Depth $h$ of a class: how many edges it lies below the root.
    pub fn depth_of_class(&self, class: usize) -> u32 {
        self.nodes[self.class_nodes[class]].depth
    }

    /// Names of the nodes above a class, from its parent up to the root.
    pub fn ancestors(&self, class: usize) -> impl Iterator<Item = &str> {
        let parent = |&node: &usize| self.nodes[node].parent;
        std::iter::successors(parent(&self.class_nodes[class]), parent)
            .map(|node| self.nodes[node].name.as_str())
    }
}
