//! One door for all data: a known name, or a path of the user's own.

use crate::catalogue::{self, State};
use crate::folders::Folders;
use crate::own::OwnOptions;
use crate::{Error, Result, Splits, known, own};
use std::path::Path;

/// Opens a data set: one that is [known] by name, else the user's [own] at that path.
///
/// A name that is both known and an existing path means the known set; write `./name` for the path.
pub fn open(what: &str, folders: &Folders, options: &OwnOptions) -> Result<Splits> {
    if known::is_known(what) {
        let mut places = folders.looked_in().to_vec();
        // The catalogue also knows where packages of the system put a set.
        if let Ok(entry) = catalogue::entry(what)
            && let State::Present { folder, .. } = entry.state(folders)
        {
            places.push(folder);
        }
        return own::relabel(what, known::open(what, &places)?, options);
    }
    let path = Path::new(what);
    if path.exists() {
        return own::open(path, options);
    }
    let problem =
        format!("neither a file or folder nor a known data set; known are {}", known::names().join(", "));
    Err(Error::format(path, None, problem))
}
