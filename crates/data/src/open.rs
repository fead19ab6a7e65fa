//! One door for all data: a known name, or a path of the user's own.

use crate::catalogue::{self, State};
use crate::folders::Folders;
use crate::own::OwnOptions;
use crate::{Error, Result, Splits, known, own};
use negscale_records::did_you_mean;
use std::path::Path;

/// Opens a dataset: one that is [known] by name, else the user's [own] at that path.
///
/// A name that is both known and an existing path means the known set; write `./name` for the path.
pub fn open(what: &str, folders: &Folders, options: &OwnOptions) -> Result<Splits> {
    if known::is_known(what) {
        let mut places = folders.looked_in().to_vec();
        // The catalogue also knows where packages of the system put a set; not all known names are in it.
        if let Some(entry) = catalogue::ENTRIES.iter().find(|entry| entry.name == what)
            && let State::Present { folder, .. } = entry.state(folders)
        {
            places.push(folder);
        }
        let splits = known::open(what, &places)?;
        let splits = if options.skip_unreadable { splits.without_unreadable()? } else { splits };
        return own::relabel(what, splits, options);
    }
    let path = Path::new(what);
    if path.exists() {
        return own::open(path, options);
    }
    let problem = format!(
        "there is no such file or folder, and no known dataset of that name; {}known datasets are {}",
        did_you_mean(what, known::names()),
        known::names().join(", ")
    );
    Err(Error::format(path, None, problem))
}
