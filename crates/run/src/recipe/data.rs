//! The data of a run: known before it is opened.

use super::IN_MEMORY;
use negscale::Taxonomy;
use negscale::taxonomy::LearntSettings;
use negscale_data::folders::Folders;
use negscale_data::own::OwnOptions;
use negscale_data::{NoiseContext, NoiseSpec, Splits};
use negscale_methods::trainer::Tree;
use negscale_methods::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The data, its noise and its class tree.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSettings {
    /// A known dataset, or a path.
    pub data: String,
    /// Folder to search first.
    pub data_dir: Option<PathBuf>,
    /// What the data itself does not say.
    pub own: OwnOptions,
    /// How many of the training samples are used, always the same ones; all if not set.
    pub samples: Option<usize>,
    /// Pixels a side that pictures are brought to.
    pub side: Option<usize>,
    /// Noise added to the training labels.
    pub noise: NoiseSpec,
    /// Its seed.
    pub noise_seed: u64,
    /// The class tree: `auto`, `learnt`, `flat`, `unrelated`, a built-in name, or a path; `permuted:SEED` or `permuted:SEED:TREE`.
    pub tree: String,
}

impl DataSettings {
    /// Folders to search, in order.
    pub fn folders(&self) -> Folders {
        Folders::of_process(self.data_dir.as_deref())
    }

    /// Where noise that is read from tables is looked for.
    pub fn noise_context(&self) -> NoiseContext {
        NoiseContext { folders: self.folders().looked_in().to_vec(), ..NoiseContext::default() }
    }

    /// The user's own files and folders that are read; known datasets are not among them.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let is_own = !negscale_data::known::is_known(&self.data);
        let noise = if let NoiseSpec::File(path) = &self.noise { Some(path.clone()) } else { None };
        let own = [&self.own.labels, &self.own.test, &self.own.test_labels, &self.own.class_names];
        let tree = permuted(&self.tree).ok().flatten().map_or(self.tree.as_str(), |(_, tree)| tree);
        let tree = Some(PathBuf::from(tree)).filter(|tree| tree.is_file());
        let data = is_own.then(|| PathBuf::from(&self.data));
        own.into_iter().cloned().chain([data, noise, tree]).flatten().collect()
    }

    /// Whether the data were handed over and have no name that could be opened ([`Layers::in_memory`](super::Layers::in_memory)).
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.data == IN_MEMORY
    }

    /// Opens the data, without noise.
    pub fn open(&self) -> Result<Splits> {
        Ok(negscale_data::open(&self.data, &Folders::to_read(self.data_dir.as_deref())?, &self.own)?)
    }

    /// The class tree for data with these classes. `auto` takes the first built-in tree that fits the names and has no class
    /// beside them, else one is learnt. A learnt tree is permuted once it is grown.
    pub fn tree_for(&self, classes: &[String]) -> Result<Tree> {
        let Some((seed, name)) = permuted(&self.tree)? else { return tree_named(&self.tree, classes) };
        Ok(match tree_named(name, classes)? {
            Tree::Learnt(settings) => Tree::Learnt(settings.with_permuted(Some(seed))),
            Tree::Given(tree) => Tree::Given(tree.permuted(seed)?),
            Tree::Grown(tree) => Tree::Grown(tree.permuted(seed)?),
        })
    }
}

/// Seed and tree of `permuted:SEED` (then the tree is `auto`) and `permuted:SEED:TREE`; none for other trees.
pub(crate) fn permuted(tree: &str) -> Result<Option<(u64, &str)>> {
    let Some(rest) = tree.strip_prefix("permuted:") else { return Ok(None) };
    let (seed, name) = rest.split_once(':').unwrap_or((rest, "auto"));
    match seed.parse() {
        Ok(seed) if !name.is_empty() => Ok(Some((seed, name))),
        _ => Err(Error::Settings {
            place: "tree".into(),
            problem: format!(
                "`{tree}`: write permuted:SEED or permuted:SEED:TREE, such as permuted:3:cifar10; SEED is a whole number"
            ),
        }),
    }
}

fn tree_named(name: &str, classes: &[String]) -> Result<Tree> {
    let tree = match name {
        "auto" => {
            let fitting = Taxonomy::builtin_names().iter().find_map(|name| {
                let tree = Taxonomy::builtin(name).ok().filter(|tree| tree.classes() == classes.len())?;
                tree.for_classes(classes).ok()
            });
            return Ok(fitting.map_or_else(|| Tree::Learnt(LearntSettings::default()), Tree::Given));
        }
        "learnt" => return Ok(Tree::Learnt(LearntSettings::default())),
        "flat" => Taxonomy::flat(classes)?,
        "unrelated" => Taxonomy::unrelated(classes)?,
        _ if Taxonomy::builtin_names().contains(&name) => Taxonomy::builtin(name)?.for_classes(classes)?,
        _ => read_tree(Path::new(name))?.for_classes(classes)?,
    };
    Ok(Tree::Given(tree))
}

fn read_tree(path: &Path) -> Result<Taxonomy> {
    if !path.exists() {
        let known = ["auto", "flat", "learnt", "unrelated"]
            .into_iter()
            .chain(Taxonomy::builtin_names().iter().copied());
        return Err(Error::unknown("class tree or file", &path.to_string_lossy(), known));
    }
    let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // A table has tabs inside its lines; indentation has them only in front.
    let is_table = text.lines().any(|line| !line.starts_with('#') && line.trim().contains('\t'));
    Ok(if is_table {
        Taxonomy::from_tsv(&stem, &text)?
    } else {
        Taxonomy::from_indented(&stem, &text, &[""; 0])?
    })
}
