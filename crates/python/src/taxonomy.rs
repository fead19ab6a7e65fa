//! Class trees.

use crate::arrays::{classes, describe, features};
use crate::calls::detached;
use crate::errors::{input_error, raise};
use negscale::Taxonomy as Tree;
use negscale::taxonomy::{
    LearntSettings, Relation, SeveralHypernyms, Thresholds, WordNetOptions, class_means,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A class tree: which classes are related, which are not, and which are neither.
///
/// ``Taxonomy(source)`` opens a tree of that name that comes with the package (``Taxonomy.builtin_names()``), or a file. The number of
/// edges between two classes is their distance; ``eta_min`` and ``eta_max`` say from which distances on classes are related and
/// unrelated.
///
/// >>> import negscale
/// >>> tree = negscale.Taxonomy("cifar10")
/// >>> tree
/// Taxonomy('cifar10', 10 classes)
/// >>> tree.distance("horse", "dog"), tree.distance("automobile", "frog")
/// (3, 8)
/// >>> tree.distances()[tree.index("horse"), tree.index("dog")]
/// np.int64(3)
#[pyclass(frozen, module = "negscale", name = "Taxonomy", from_py_object)]
#[derive(Clone)]
pub(crate) struct Taxonomy {
    pub(crate) tree: Tree,
}

/// A tree as people hand it over: a `Taxonomy`, or what `Taxonomy(...)` opens.
pub(crate) fn tree_of(given: &Bound<'_, PyAny>) -> PyResult<Tree> {
    if let Ok(taxonomy) = given.cast::<Taxonomy>() {
        return Ok(taxonomy.get().tree.clone());
    }
    let Ok(path) = given.extract::<PathBuf>() else {
        let problem = "give a negscale.Taxonomy, the name of a built-in tree, or a path";
        return Err(input_error(format!("a class tree cannot be {}; {problem}", describe(given))));
    };
    let name = path
        .to_str()
        .ok_or_else(|| input_error(format!("{}: the path is not UTF-8; rename it", path.display())))?;
    negscale_run::load_tree(name, None).map_err(raise)
}

/// Text as it is, or the text of a file; and what the tree is called then.
fn text_of(source: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<(String, String)> {
    if let Ok(text) = source.cast::<PyString>()
        && text.to_str().is_ok_and(|text| text.contains('\n'))
    {
        return Ok((name.unwrap_or_else(|| "tree".into()), text.to_string()));
    }
    let path: PathBuf = source.extract().map_err(|_| {
        input_error(format!(
            "a tree is read from a path or from text of several lines; got {}",
            describe(source)
        ))
    })?;
    let text = fs::read_to_string(&path).map_err(|error| raise(file_error(&path, error)))?;
    let stem = path.file_stem().map_or_else(|| "tree".into(), |stem| stem.to_string_lossy().into_owned());
    Ok((name.unwrap_or(stem), text))
}

fn file_error(path: &Path, error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot read {}", path.display()))
}

pub(crate) fn code(relation: Relation) -> i8 {
    match relation {
        Relation::Same => 2,
        Relation::Related => 1,
        Relation::Neutral => 0,
        Relation::Unrelated => -1,
    }
}

impl Taxonomy {
    fn class(&self, given: &Bound<'_, PyAny>) -> PyResult<usize> {
        let classes = self.tree.classes();
        if let Ok(name) = given.cast::<PyString>() {
            return self.index(name.to_str()?);
        }
        let index: isize = given.extract()?;
        usize::try_from(index).ok().filter(|index| *index < classes).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "class {index}: the class tree `{}` has {classes} classes, so they run from 0 to {}",
                self.tree.name(),
                classes.saturating_sub(1)
            ))
        })
    }
}

#[pymethods]
impl Taxonomy {
    #[new]
    #[pyo3(signature = (source, name=None))]
    fn new(source: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Self> {
        let is_text =
            source.cast::<PyString>().is_ok_and(|text| text.to_str().is_ok_and(|text| text.contains('\n')));
        match (is_text, name) {
            (true, name) => Self::from_tsv(source, name),
            (false, None) => Ok(Self { tree: tree_of(source)? }),
            (false, Some(_)) => {
                Err(input_error("a tree by name or from a file has its name already; leave `name` out"))
            }
        }
    }

    /// A tree that comes with the package.
    ///
    /// >>> negscale.Taxonomy.builtin("fashion-mnist").class_names[:3]
    /// ['T-shirt/top', 'Trouser', 'Pullover']
    #[staticmethod]
    fn builtin(name: &str) -> PyResult<Self> {
        Ok(Self { tree: Tree::builtin(name).map_err(raise)? })
    }

    /// The names that ``builtin`` knows.
    ///
    /// >>> "cifar100" in negscale.Taxonomy.builtin_names()
    /// True
    #[staticmethod]
    fn builtin_names() -> Vec<&'static str> {
        Tree::builtin_names().to_vec()
    }

    /// Reads a table of nodes: columns node, parent, depth, class_index, separated by tabs; ``source`` is a path, or the text itself.
    ///
    /// The depth may be left empty, and so is the class index of nodes that are no classes.
    ///
    /// >>> table = "pet\n" "furry\tpet\n" "cat\tfurry\t\t0\n" "dog\tfurry\t\t1\n" "goldfish\tpet\t\t2\n"
    /// >>> negscale.Taxonomy.from_tsv(table.replace("pet\n", "pet\t\n", 1)).class_names
    /// ['cat', 'dog', 'goldfish']
    #[staticmethod]
    #[pyo3(signature = (source, name=None))]
    fn from_tsv(source: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Self> {
        let (name, text) = text_of(source, name)?;
        Ok(Self { tree: Tree::from_tsv(&name, &text).map_err(raise)? })
    }

    /// Reads indented text, one node a line; ``source`` is a path, or the text itself.
    ///
    /// ``name: a, b`` is short for a node with the leaves a and b. With ``class_names`` these are the classes, in that order; without,
    /// the leaves are, in the order in which they appear.
    ///
    /// >>> tree = negscale.Taxonomy.from_indented("animal\n  pet: cat, dog\n  wild: wolf, bear\n")
    /// >>> tree.class_names
    /// ['cat', 'dog', 'wolf', 'bear']
    #[staticmethod]
    #[pyo3(signature = (source, class_names=None, name=None))]
    fn from_indented(
        source: &Bound<'_, PyAny>,
        class_names: Option<Vec<String>>,
        name: Option<String>,
    ) -> PyResult<Self> {
        let (name, text) = text_of(source, name)?;
        let class_names = class_names.unwrap_or_default();
        Ok(Self { tree: Tree::from_indented(&name, &text, &class_names).map_err(raise)? })
    }

    /// The part of WordNet that spans these noun synsets, one per class; ``data_noun`` is the file ``data.noun`` of WordNet 3.0.
    ///
    /// Ids are written ``n02084071``, ``02084071-n`` or ``02084071``. Where WordNet names several parents, the one with the longest way to
    /// the root is taken, or with ``first_hypernym`` the one listed first. Nodes with a single child are left out unless
    /// ``contract_unary`` is false.
    #[staticmethod]
    #[pyo3(signature = (data_noun, synsets, class_names=None, *, first_hypernym=false, contract_unary=true, name="wordnet"))]
    fn from_wordnet(
        py: Python<'_>,
        data_noun: PathBuf,
        synsets: Vec<String>,
        class_names: Option<Vec<String>>,
        first_hypernym: bool,
        contract_unary: bool,
        name: &str,
    ) -> PyResult<Self> {
        let which = if first_hypernym { SeveralHypernyms::FirstListed } else { SeveralHypernyms::default() };
        let options = WordNetOptions::default()
            .with_several_hypernyms(which)
            .with_contract_unary(contract_unary)
            .with_class_names(class_names.unwrap_or_default());
        let synsets: Vec<&str> = synsets.iter().map(String::as_str).collect();
        let read = || -> anyhow::Result<Tree> {
            let nouns = File::open(&data_noun).map_err(|error| file_error(&data_noun, error))?;
            Ok(Tree::from_wordnet(name, BufReader::new(nouns), &synsets, &options)?)
        };
        Ok(Self { tree: detached(py, read)?.map_err(raise)? })
    }

    /// A tree learnt from features, one row per sample, and labels, which may be wrong: classes whose mean features point the same way
    /// become related.
    ///
    /// ``related_share`` of the pairs of classes at most become related, ``relatives`` per class on average at most, and
    /// ``unrelated_share`` at least become unrelated, as far as that is possible.
    ///
    /// >>> import numpy as np
    /// >>> rng = np.random.default_rng(0)
    /// >>> labels = rng.integers(0, 4, 400)
    /// >>> centres = np.array([[9, 1, 0], [9, -1, 0], [-9, 0, 1], [-9, 0, -1]])
    /// >>> tree = negscale.Taxonomy.learnt(centres[labels] + rng.normal(size=(400, 3)), labels)
    /// >>> tree.distance(0, 1) < tree.distance(0, 2)
    /// True
    #[staticmethod]
    #[pyo3(signature = (features, labels, class_names=None, *, related_share=None, relatives=None, unrelated_share=None))]
    fn learnt(
        py: Python<'_>,
        features: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
        class_names: Option<Vec<String>>,
        related_share: Option<f64>,
        relatives: Option<f64>,
        unrelated_share: Option<f64>,
    ) -> PyResult<Self> {
        let (rows, dim) = self::features("features", features)?;
        let labels = classes("labels", labels)?;
        let count = labels.iter().max().map_or(0, |last| last + 1);
        let names = class_names.unwrap_or_else(|| (0..count).map(|class| class.to_string()).collect());
        let usual = LearntSettings::default();
        let settings = LearntSettings::default()
            .with_related_share(related_share.unwrap_or(usual.related_share))
            .with_relatives(relatives.unwrap_or(usual.relatives))
            .with_unrelated_share(unrelated_share.unwrap_or(usual.unrelated_share));
        let learn = || {
            let means = class_means(&names, &rows, dim, &labels)?;
            Tree::learnt(&names, &means, &settings)
        };
        Ok(Self { tree: detached(py, learn)?.map_err(raise)? })
    }

    /// The tree that claims nothing: all classes are equally far apart.
    ///
    /// >>> negscale.Taxonomy.flat(["cat", "dog", "car"]).distances().tolist()
    /// [[0, 4, 4], [4, 0, 4], [4, 4, 0]]
    #[staticmethod]
    fn flat(class_names: Vec<String>) -> PyResult<Self> {
        Ok(Self { tree: Tree::flat(&class_names).map_err(raise)? })
    }

    /// Name of the tree.
    #[getter]
    fn name(&self) -> &str {
        self.tree.name()
    }

    /// Names of the classes, in the order of their indices.
    #[getter]
    fn class_names(&self) -> Vec<&str> {
        self.tree.class_names().collect()
    }

    /// Index of the class of that name.
    ///
    /// >>> negscale.Taxonomy("cifar10").index("cat")
    /// 3
    fn index(&self, name: &str) -> PyResult<usize> {
        let found = self.tree.class_names().position(|other| other == name);
        found.ok_or_else(|| {
            let hint = negscale_records::did_you_mean(name, self.tree.class_names());
            let known: Vec<&str> = self.tree.class_names().take(20).collect();
            let more = if self.tree.classes() > known.len() { ", ..." } else { "" };
            let known = known.join(", ");
            input_error(format!(
                "the class tree `{}` has no class `{name}`; {hint}its classes are {known}{more}",
                self.tree.name()
            ))
        })
    }

    /// Names of the nodes above a class, given by index or name, from its parent up to the root.
    ///
    /// >>> negscale.Taxonomy("cifar10").ancestors("cat")[-1]
    /// 'entity'
    fn ancestors(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<&str>> {
        Ok(self.tree.ancestors(self.class(class_)?).collect())
    }

    /// Number of edges between two classes, given by index or name.
    fn distance(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.tree.distance(self.class(a)?, self.class(b)?))
    }

    /// The distances of all pairs of classes, C x C.
    ///
    /// >>> int(negscale.Taxonomy("cifar10").distances().max())
    /// 9
    fn distances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let (classes, distances) = (self.tree.classes(), self.tree.distances());
        PyArray1::from_iter(py, distances.as_slice().iter().map(|d| i64::from(*d)))
            .reshape([classes, classes])
    }

    /// How all pairs of classes stand to each other, C x C: 1 related, -1 unrelated, 0 neither, 2 the same class.
    ///
    /// >>> relations = negscale.Taxonomy("cifar10").relations(eta_min=3, eta_max=5)
    /// >>> int((relations == 1).sum()) // 2, int((relations == -1).sum()) // 2
    /// (8, 24)
    #[pyo3(signature = (eta_min=3, eta_max=5))]
    fn relations<'py>(
        &self,
        py: Python<'py>,
        eta_min: u32,
        eta_max: u32,
    ) -> PyResult<Bound<'py, PyArray2<i8>>> {
        let thresholds = Thresholds::new(eta_min, eta_max).map_err(raise)?;
        let (classes, distances) = (self.tree.classes(), self.tree.distances());
        let codes = distances.as_slice().iter().map(|d| code(thresholds.relation(*d)));
        PyArray1::from_iter(py, codes).reshape([classes, classes])
    }

    /// The same tree with the classes numbered and spelt as here; upper case, spaces, ``_`` and ``-`` may differ.
    ///
    /// >>> negscale.Taxonomy("cifar10").for_classes(["Dog", "Cat"]).class_names
    /// ['Dog', 'Cat']
    fn for_classes(&self, class_names: Vec<String>) -> PyResult<Self> {
        Ok(Self { tree: self.tree.for_classes(&class_names).map_err(raise)? })
    }

    /// The same tree with its classes permuted at random, a control: it has as many related classes, but others.
    ///
    /// >>> negscale.Taxonomy("cifar10").permuted(3).distances().sum() == negscale.Taxonomy("cifar10").distances().sum()
    /// np.True_
    fn permuted(&self, seed: u64) -> PyResult<Self> {
        Ok(Self { tree: self.tree.permuted(seed).map_err(raise)? })
    }

    /// What the thresholds make of the tree, in words: how many pairs of classes are related, which classes are left out.
    ///
    /// >>> print(negscale.Taxonomy("cifar10").summary().splitlines()[0])
    /// class tree cifar10: 10 classes, 45 pairs of different classes
    #[pyo3(signature = (eta_min=3, eta_max=5))]
    fn summary(&self, eta_min: u32, eta_max: u32) -> PyResult<String> {
        Ok(self.tree.summary(Thresholds::new(eta_min, eta_max).map_err(raise)?).to_string())
    }

    /// The tree as a table that ``from_tsv`` reads.
    fn to_tsv(&self) -> String {
        self.tree.to_tsv()
    }

    /// A drawing of the tree, as SVG.
    fn to_svg(&self) -> String {
        self.tree.to_svg()
    }

    /// The tree as a ``networkx.DiGraph``, with edges from parents to children; nodes that are classes have an attribute ``class_index``.
    fn to_networkx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let graph = py.import("networkx")?.call_method0("DiGraph")?;
        graph.getattr("graph")?.set_item("name", self.tree.name())?;
        for line in self.tree.to_tsv().lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [node, parent, _, class] = cells[..] else { continue };
            graph.call_method1("add_node", (node,))?;
            if let Ok(class) = class.parse::<usize>() {
                graph.getattr("nodes")?.get_item(node)?.set_item("class_index", class)?;
            }
            if !parent.is_empty() {
                graph.call_method1("add_edge", (parent, node))?;
            }
        }
        Ok(graph)
    }

    fn __len__(&self) -> usize {
        self.tree.classes()
    }

    fn __repr__(&self) -> String {
        let classes = self.tree.classes();
        format!("Taxonomy('{}', {classes} class{})", self.tree.name(), if classes == 1 { "" } else { "es" })
    }

    fn _repr_svg_(&self) -> String {
        self.tree.to_svg()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().tree == self.tree)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.tree.to_tsv().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String, String)) {
        let tree = &slf.get().tree;
        (slf.get_type().into_any(), (tree.to_tsv(), tree.name().to_owned()))
    }
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Taxonomy>()
}
