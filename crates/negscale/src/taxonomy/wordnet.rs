//! Trees from WordNet (Miller 1995), whose noun synsets point to their hypernyms.
//!
//! The file `data.noun` holds one synset per line:
//!
//! ```text
//! offset  lex_filenum  n  w_cnt  word lex_id ...  p_cnt  symbol offset pos source/target ...  | gloss
//! ```
//!
//! with `w_cnt` words (two hexadecimal digits) and `p_cnt` pointers (decimal); the pointers `@` and
//! `@i` lead to a hypernym and to the kind an instance belongs to. The licence lines at the top start
//! with two blanks.
//!
//! WordNet is no tree: 2.7 % of its noun synsets have several hypernyms. One of them is chosen per
//! synset (see [`SeveralHypernyms`]), so that every node has one parent.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use super::Taxonomy;
use super::grow::{Twig, grow};
use crate::{Error, Result};

/// Which parent a synset gets when WordNet names several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SeveralHypernyms {
    /// The one whose longest way to the root is the longest; of equals, the one listed first. This is
    /// the choice of Bertinetto et al. (2020), "Making better mistakes".
    #[default]
    LongestPath,
    /// The one listed first.
    FirstListed,
}

/// How WordNet becomes a tree.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WordNetOptions {
    /// Which parent to take where there are several.
    pub several_hypernyms: SeveralHypernyms,
    /// Remove nodes with a single child that are no classes. WordNet has long chains of such nodes,
    /// in which the number of edges says more about the lexicographers than about the classes.
    pub contract_unary: bool,
    /// Names of the classes, in the order of the synsets; if empty, the first word of each synset.
    pub class_names: Vec<String>,
}

impl Default for WordNetOptions {
    fn default() -> Self {
        Self {
            several_hypernyms: SeveralHypernyms::LongestPath,
            contract_unary: true,
            class_names: Vec::new(),
        }
    }
}

impl WordNetOptions {
    /// The same with another choice among [several hypernyms](Self::several_hypernyms).
    #[must_use]
    pub fn with_several_hypernyms(self, several_hypernyms: SeveralHypernyms) -> Self {
        Self { several_hypernyms, ..self }
    }

    /// The same with chains of single children [contracted](Self::contract_unary) or not.
    #[must_use]
    pub fn with_contract_unary(self, contract_unary: bool) -> Self {
        Self { contract_unary, ..self }
    }

    /// The same with these [names of the classes](Self::class_names).
    #[must_use]
    pub fn with_class_names(self, class_names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { class_names: class_names.into_iter().map(Into::into).collect(), ..self }
    }
}

impl Taxonomy {
    /// The part of WordNet that spans the given noun synsets, one per class.
    ///
    /// `data_noun` is the file `data.noun` of WordNet 3.0. Ids may be written `n02084071`, `02084071-n`
    /// or `02084071`. Inner nodes are called by the first word of their synset, with the id added where
    /// two would bear the same name.
    pub fn from_wordnet(
        name: &str,
        data_noun: impl BufRead,
        synsets: &[impl AsRef<str>],
        options: &WordNetOptions,
    ) -> Result<Self> {
        let ids: Vec<&str> = synsets.iter().map(|id| id.as_ref().trim()).collect();
        let fail = |position: usize, problem: String| Error::Synset {
            tree: name.to_owned(),
            id: ids[position].to_owned(),
            position,
            problem,
        };
        if !options.class_names.is_empty() && options.class_names.len() != ids.len() {
            return Err(Error::Size {
                what: "class names for WordNet",
                got: options.class_names.len(),
                need: ids.len(),
                why: "one for each synset, or none at all".to_owned(),
            });
        }
        let mut class_of = HashMap::new();
        for (class, id) in ids.iter().enumerate() {
            let offset = offset_of(id).ok_or_else(|| {
                fail(class, "not the id of a noun; write n02084071, 02084071-n or 02084071".to_owned())
            })?;
            if let Some(first) = class_of.insert(offset, class) {
                let problem =
                    format!("the same synset as class {first} (`{}`); list each synset once", ids[first]);
                return Err(fail(class, problem));
            }
        }
        let wordnet = read(data_noun)?;
        let mut by_class: Vec<(usize, u32)> =
            class_of.iter().map(|(&offset, &class)| (class, offset)).collect();
        by_class.sort_unstable();
        if let Some(&(class, _)) = by_class.iter().find(|(_, offset)| !wordnet.contains_key(offset)) {
            let problem = "not in this WordNet file; ids change between versions of WordNet, so check \
                that both are of version 3.0";
            return Err(fail(class, problem.to_owned()));
        }
        let mut span = Span { parent: HashMap::new(), order: Vec::new() };
        span.trace(&wordnet, by_class.iter().map(|&(_, offset)| offset), options.several_hypernyms)?;
        if options.contract_unary {
            span.contract(&class_of);
        }
        grow(name, span.twigs(&wordnet, &class_of, &options.class_names))
    }
}

/// The number in a synset id.
fn offset_of(id: &str) -> Option<u32> {
    let digits = id.strip_prefix('n').or_else(|| id.strip_suffix("-n")).unwrap_or(id);
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

struct Synset {
    word: String,
    hypernyms: Vec<u32>,
    line: usize,
}

fn read(mut file: impl BufRead) -> Result<HashMap<u32, Synset>> {
    let mut synsets = HashMap::new();
    let mut buffer = Vec::new();
    for line in 1.. {
        let fail = |problem: String| Error::WordNet { line, problem };
        buffer.clear();
        if file.read_until(b'\n', &mut buffer).map_err(|e| fail(format!("cannot be read, {e}")))? == 0 {
            break;
        }
        let text = std::str::from_utf8(&buffer).map_err(|_| fail("not text in UTF-8".to_owned()))?;
        if text.starts_with("  ") || text.trim().is_empty() {
            continue;
        }
        let (offset, word, hypernyms) = parse(text).map_err(fail)?;
        if let Some(first) = synsets.insert(offset, Synset { word, hypernyms, line }) {
            return Err(fail(format!("synset {offset:08} stands in line {} already", first.line)));
        }
    }
    Ok(synsets)
}

/// Offset, first word and hypernyms of a line.
fn parse(line: &str) -> Result<(u32, String, Vec<u32>), String> {
    let mut fields = line.split_ascii_whitespace();
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("ends before the {what}"));
    let number = |what: &str, text: &str, radix: u32| {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric());
        let number = u32::from_str_radix(text, radix).ok().filter(|_| plain);
        number.ok_or_else(|| format!("the {what} is `{text}`, not a number"))
    };
    let offset = number("offset", next("offset")?, 10)?;
    next("file number")?;
    let kind = next("kind of synset")?;
    if kind != "n" {
        return Err(format!("synset {offset:08} is of kind `{kind}`, not a noun (`n`)"));
    }
    let words = number("number of words", next("number of words")?, 16)?;
    if words == 0 {
        return Err(format!("synset {offset:08} has no word"));
    }
    // WordNet writes blanks inside a word as underscores.
    let word = next("first word")?.replace('_', " ");
    next("number of the first word")?;
    for _ in 1..words {
        next("last word")?;
        next("number of the last word")?;
    }
    let mut hypernyms = Vec::new();
    for _ in 0..number("number of pointers", next("number of pointers")?, 10)? {
        let (symbol, target) = (next("last pointer")?, next("target of the last pointer")?);
        let part_of_speech = next("part of speech of the last pointer")?;
        next("source of the last pointer")?;
        if matches!(symbol, "@" | "@i") && part_of_speech == "n" {
            hypernyms.push(number("target of a pointer", target, 10)?);
        }
    }
    Ok((offset, word, hypernyms))
}

/// The synsets between the classes and the root.
struct Span {
    parent: HashMap<u32, Option<u32>>,
    /// Parents before children; classes in the order of their list.
    order: Vec<u32>,
}

impl Span {
    /// Chooses a parent for every synset above the classes.
    fn trace(
        &mut self,
        wordnet: &HashMap<u32, Synset>,
        classes: impl Iterator<Item = u32> + Clone,
        several: SeveralHypernyms,
    ) -> Result<()> {
        let depth = longest_depths(wordnet, classes.clone())?;
        for class in classes {
            let mut path = Vec::new();
            let mut at = Some(class);
            while let Some(synset) = at
                && !self.parent.contains_key(&synset)
            {
                // All that lie above a class are in the file and have a depth, or there would have been an error above.
                let hypernyms = &wordnet[&synset].hypernyms;
                let parent = match several {
                    SeveralHypernyms::FirstListed => hypernyms.first(),
                    // Reversed because of equals max_by_key takes the last.
                    SeveralHypernyms::LongestPath => hypernyms.iter().rev().max_by_key(|h| depth[h]),
                };
                at = parent.copied();
                self.parent.insert(synset, at);
                path.push(synset);
            }
            self.order.extend(path.iter().rev());
        }
        Ok(())
    }

    /// Removes nodes with one child that are no classes, the root included.
    fn contract(&mut self, class_of: &HashMap<u32, usize>) {
        let mut children: HashMap<u32, usize> = HashMap::new();
        for parent in self.parent.values().flatten() {
            *children.entry(*parent).or_default() += 1;
        }
        let goes = |synset: &u32| !class_of.contains_key(synset) && children.get(synset) == Some(&1);
        // Parents come first, so a parent that goes already knows the nearest ancestor that stays.
        for synset in &self.order {
            if let Some(Some(parent)) = self.parent.get(synset).copied()
                && goes(&parent)
            {
                let above = self.parent[&parent];
                self.parent.insert(*synset, above);
            }
        }
        self.order.retain(|synset| !goes(synset));
    }

    fn twigs(
        &self,
        wordnet: &HashMap<u32, Synset>,
        class_of: &HashMap<u32, usize>,
        class_names: &[String],
    ) -> Vec<Twig> {
        let wish = |synset: &u32| match class_of.get(synset).and_then(|&class| class_names.get(class)) {
            Some(name) => name.clone(),
            None => wordnet[synset].word.clone(),
        };
        let mut bearers: HashMap<String, (usize, usize)> = HashMap::new();
        for synset in &self.order {
            let (all, classes) = bearers.entry(wish(synset)).or_default();
            *all += 1;
            *classes += usize::from(class_of.contains_key(synset));
        }
        // Names that were given are kept as they are: if two are equal, that is the caller's to repair.
        let given = !class_names.is_empty();
        let place: HashMap<u32, usize> =
            self.order.iter().enumerate().map(|(i, &synset)| (synset, i)).collect();
        let mut taken = HashSet::new();
        let twigs = self.order.iter().map(|synset| {
            let class = class_of.get(synset).copied();
            let mut name = wish(synset);
            let (all, classes) = bearers[&name];
            let keeps_plain_name = all == 1 || class.is_some() && (given || classes == 1);
            if !keeps_plain_name || taken.contains(&name) && class.is_none() {
                name = format!("{name} (n{synset:08})");
            }
            taken.insert(name.clone());
            let parent = self.parent[synset];
            Twig::new(name, parent.map(|parent| place[&parent]), class)
        });
        twigs.collect()
    }
}

/// For every synset above the classes, the number of edges of its longest way up to a root.
fn longest_depths(
    wordnet: &HashMap<u32, Synset>,
    classes: impl Iterator<Item = u32>,
) -> Result<HashMap<u32, u32>> {
    let mut depth: HashMap<u32, u32> = HashMap::new();
    let mut open = HashSet::new();
    for class in classes {
        // Depth first with a stack of our own: a synset is settled once all its hypernyms are.
        let mut stack = vec![(class, 0)];
        while let Some((at, looked_at)) = stack.pop() {
            if depth.contains_key(&at) {
                continue;
            }
            let Some(synset) = wordnet.get(&at) else {
                // The classes themselves are there: some synset below names this one.
                let below = stack.last().map_or(class, |&(below, _)| below);
                return Err(Error::WordNet {
                    line: wordnet[&below].line,
                    problem: format!(
                        "points to the hypernym {at:08}, which is not in the file; is the file cut off?"
                    ),
                });
            };
            open.insert(at);
            if let Some(&hypernym) = synset.hypernyms.get(looked_at) {
                stack.push((at, looked_at + 1));
                if open.contains(&hypernym) {
                    return Err(Error::WordNet {
                        line: synset.line,
                        problem: format!(
                            "a circle: `{}` ({at:08}) has the hypernym {hypernym:08}, which lies below it",
                            synset.word
                        ),
                    });
                }
                stack.push((hypernym, 0));
            } else {
                open.remove(&at);
                let above = synset.hypernyms.iter().map(|h| depth[h]).max();
                depth.insert(at, above.map_or(0, |above| above + 1));
            }
        }
    }
    Ok(depth)
}
