//! Rows in files of some hundred each.

use super::encoders::Any;
use super::source::in_colour;
use super::{Loaded, Source};
use crate::error::bail;
use crate::{Result, Stop};
use anyhow::Context;
use negscale_data::readable::Failure;
use negscale_encoders::Picture;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::path::PathBuf;

/// Items of a shard.
pub const SHARD: usize = 512;
/// Items that a thread reads before they are encoded: large pictures are not to fill the memory.
const EACH: usize = 8;
/// Bytes of a shard's key, which come before its rows.
const KEY: usize = 32;

/// Where a shard is, by its name.
type Place<'a> = &'a dyn Fn(&str) -> Result<PathBuf>;

/// All rows of a source, in shards.
pub struct Shards<'a> {
    source: &'a Source<'a>,
    encoder: &'a Loaded,
    together: usize,
}

impl<'a> Shards<'a> {
    /// Of these items by this encoder, so many at a time (0: as many as suit the threads).
    #[must_use]
    pub fn new(source: &'a Source<'a>, encoder: &'a Loaded, together: usize) -> Self {
        let together = if together == 0 { EACH * rayon::current_num_threads() } else { together };
        Self { source, encoder, together }
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let items = self.source.len();
        (0..items).step_by(SHARD).map(move |first| first..(first + SHARD).min(items))
    }

    /// Makes every shard that is missing, and gives how many rows were there. Items that cannot be read leave out their shard; they are all
    /// named in the error at the end.
    ///
    /// # Errors
    /// As for [`embed`](super::embed()).
    pub fn fill(&self, place: Place, progress: &mut dyn FnMut(usize), stop: &Stop) -> Result<usize> {
        let (mut resumed, mut failures) = (0, Vec::new());
        let mut rows = Vec::new();
        for range in self.ranges() {
            stop.check()?;
            let path = place(&name(&range))?;
            let length = range.len() * self.encoder.width();
            match self.key(&range) {
                Err(failed) => failures.extend(failed),
                Ok(key) if has(&path, &key, length)? => resumed += range.len(),
                Ok(key) => {
                    rows.resize(length, 0.0f32);
                    let found = self.encode(range.clone(), &mut rows, stop)?;
                    if found.is_empty() {
                        let written = negscale_atomic_file::write_atomic(&path, |file| {
                            file.write_all(&key)?;
                            rows.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))
                        });
                        written.with_context(|| format!("cannot write {}", path.display()))?;
                    }
                    failures.extend(found);
                }
            }
            progress(range.end);
        }
        match failures.is_empty() {
            true => Ok(resumed),
            false => Err(negscale_data::Error::Unreadable { failures, items: self.source.len() }.into()),
        }
    }

    /// Hands on the bytes of all rows, shard by shard; all must be there.
    ///
    /// # Errors
    /// A shard that cannot be read, or those of `take`.
    pub fn each(&self, place: Place, take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>) -> Result<()> {
        for range in self.ranges() {
            let path = place(&name(&range))?;
            let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if bytes.len() != KEY + range.len() * self.encoder.width() * 4 {
                bail!("{} is damaged; remove it and run the same command again", path.display());
            }
            take(&bytes[KEY..])?;
        }
        Ok(())
    }

    /// All rows, without any file.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill).
    pub fn in_memory(&self, progress: &mut dyn FnMut(usize), stop: &Stop) -> Result<Vec<f32>> {
        let width = self.encoder.width();
        let mut rows = vec![0.0; self.source.len() * width];
        let mut failures = Vec::new();
        for range in self.ranges() {
            failures.extend(self.encode(
                range.clone(),
                &mut rows[range.start * width..range.end * width],
                stop,
            )?);
            progress(range.end);
        }
        match failures.is_empty() {
            true => Ok(rows),
            false => Err(negscale_data::Error::Unreadable { failures, items: self.source.len() }.into()),
        }
    }

    /// What a shard is made of, in one hash; or the items that cannot be read.
    fn key(&self, range: &Range<usize>) -> Result<[u8; KEY], Vec<Failure>> {
        let digests: Vec<_> = range.clone().into_par_iter().map(|item| self.source.digest(item)).collect();
        let mut hash = Sha256::new();
        for word in [&self.encoder.stamp, negscale_cpu::name()] {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word);
        }
        let mut failures = Vec::new();
        for (item, digest) in range.clone().zip(digests) {
            match (digest, self.source) {
                (Ok(digest), _) => hash.update(digest),
                (Err(error), Source::Pictures(store)) => failures.push(Failure::new(*store, item, &error)),
                // Texts are in memory.
                (Err(_), Source::Texts(_)) => {}
            }
        }
        if failures.is_empty() { Ok(hash.finalize().into()) } else { Err(failures) }
    }

    /// The rows of some items; or those that cannot be read.
    fn encode(&self, range: Range<usize>, rows: &mut [f32], stop: &Stop) -> Result<Vec<Failure>> {
        let width = self.encoder.width();
        let mut failures = Vec::new();
        for (first, rows) in range.step_by(self.together).zip(rows.chunks_mut(self.together * width)) {
            stop.check()?;
            let these = first..first + rows.len() / width;
            let told = |error: negscale_encoders::Error| match error {
                negscale_encoders::Error::Item { item, problem } => {
                    anyhow::anyhow!("item {} cannot be encoded: {problem}", first + item)
                }
                other => other.into(),
            };
            match (self.source, &self.encoder.encoder) {
                (Source::Pictures(store), Any::Pictures(encoder)) => {
                    let read: Vec<_> =
                        these.clone().into_par_iter().map(|item| store.load(item).map(in_colour)).collect();
                    let mut pictures = Vec::with_capacity(read.len());
                    for (item, read) in these.zip(&read) {
                        match read {
                            Ok((pixels, [width, height])) => {
                                pictures.push(Picture { pixels, width: *width, height: *height });
                            }
                            Err(error) => failures.push(Failure::new(*store, item, error)),
                        }
                    }
                    if failures.is_empty() {
                        encoder.encode(&pictures, rows).map_err(told)?;
                    }
                }
                (Source::Texts(texts), Any::Texts(encoder)) => {
                    let texts: Vec<&str> = texts[these].iter().map(String::as_str).collect();
                    encoder.encode(&texts, rows).map_err(told)?;
                }
                (Source::Pictures(_), Any::Texts(_)) => {
                    bail!("{} reads texts, not pictures", self.encoder.name())
                }
                (Source::Texts(_), Any::Pictures(_)) => {
                    bail!("{} reads pictures, not texts", self.encoder.name())
                }
            }
        }
        Ok(failures)
    }
}

fn name(range: &Range<usize>) -> String {
    format!("embeddings/{:08}.rows", range.start)
}

/// Whether a shard with this key and so many numbers is there.
fn has(path: &std::path::Path, key: &[u8; KEY], numbers: usize) -> Result<bool> {
    let reading = || format!("cannot read {}", path.display());
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot create {}", folder.display()))?;
            }
            return Ok(false);
        }
        Err(error) => return Err(anyhow::Error::new(error).context(reading()).into()),
    };
    if file.metadata().with_context(reading)?.len() != (KEY + numbers * 4) as u64 {
        return Ok(false);
    }
    let mut there = [0; KEY];
    file.read_exact(&mut there).with_context(reading)?;
    Ok(&there == key)
}
