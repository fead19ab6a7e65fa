//! Which instructions of the CPU, and which kind of device beside it, computed the numbers of a run. A run may resume on a CPU with
//! others: its last bits then differ, so all of them are kept with its settings, and from there come into its results.

use crate::Result;
use crate::folder::write;
use anyhow::Context;
use negscale_methods::trainer::device_kind;
use std::fs;
use std::path::Path;

const KEY: &str = "instructions";

/// What computes on a device.
pub fn on(device: &str) -> String {
    match device_kind(device) {
        "cpu" => negscale_cpu::instructions(),
        kind => format!("{kind} and {}", negscale_cpu::instructions()),
    }
}

/// The instructions of a run, as its settings name them.
pub fn of(settings: &Path) -> Result<Option<String>> {
    let text = read(settings)?;
    let table: toml::Table =
        toml::from_str(&text).with_context(|| format!("{} is damaged", settings.display()))?;
    let named = table.get("provenance").and_then(|origin| origin.get(KEY)).and_then(toml::Value::as_str);
    Ok(named.map(str::to_owned))
}

/// Records those that compute on a device in this process; returns a note if a run is resumed with others.
pub fn enter(settings: &Path, device: &str, has_begun: bool) -> Result<Option<String>> {
    let (ours, theirs) = (on(device), of(settings)?);
    let before = theirs.as_deref().unwrap_or("not recorded");
    if before.rsplit(" then ").next() == Some(&ours) {
        return Ok(None);
    }
    let all = if has_begun { format!("{before} then {ours}") } else { ours.clone() };
    write(settings, replaced(&read(settings)?, &all).as_bytes())?;
    Ok(has_begun.then(|| {
        format!(
            "the run started with other CPU instructions ({before}) than this CPU's ({ours}): its results will differ in the \
             last bits from those of an uninterrupted run"
        )
    }))
}

fn read(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
}

/// The text of settings with other instructions in its table of provenance; all else, comments too, stays.
fn replaced(text: &str, instructions: &str) -> String {
    const HEAD: &str = "[provenance]";
    let line = format!("{KEY} = {}", toml::Value::from(instructions));
    let (mut lines, mut inside) = (Vec::new(), false);
    for old in text.lines() {
        let is_key = old.split('=').next().is_some_and(|key| key.trim() == KEY);
        if inside && is_key {
            continue;
        }
        lines.push(old);
        if old.trim_start().starts_with('[') {
            inside = old.trim() == HEAD;
            lines.extend(inside.then_some(line.as_str()));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str =
        "# words\nhost = \"rolr\"\n\n[provenance]\nrun = \"abc\"\ninstructions = \"abacus\"\nsamples = 3\n";

    #[test]
    fn a_run_that_goes_on_under_other_instructions_names_both_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        fs::write(&path, SETTINGS).unwrap();
        let note = enter(&path, "cpu", true).unwrap().unwrap();
        let ours = negscale_cpu::instructions();
        assert!(note.contains("abacus") && note.contains(&ours), "{note}");
        assert_eq!(of(&path).unwrap().unwrap(), format!("abacus then {ours}"));
        assert_eq!(enter(&path, "cpu", true).unwrap(), None, "said once");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# words\nhost = \"rolr\"\n"), "{text}");
        assert_eq!(
            text.replace(&format!("abacus then {ours}"), "abacus").lines().count(),
            SETTINGS.lines().count()
        );
    }

    #[test]
    fn nothing_was_made_by_the_instructions_of_a_run_that_has_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        fs::write(&path, SETTINGS).unwrap();
        assert_eq!(enter(&path, "cpu", false).unwrap(), None);
        assert_eq!(of(&path).unwrap(), Some(negscale_cpu::instructions()));
        enter(&path, "cuda:1", false).unwrap();
        assert_eq!(of(&path).unwrap(), Some(format!("cuda and {}", negscale_cpu::instructions())));
    }
}
