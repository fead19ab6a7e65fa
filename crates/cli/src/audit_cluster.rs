//! `negscale audit DATA --on slurm`: the three parts of an audit as jobs that follow one another.

use crate::cluster::{self, Cluster, Job};
use crate::settings::Choices;
use anyhow::{Context, Result};
use negscale_atomic_file::{OwnFolder, write_bytes};
use std::ffi::OsString;
use std::path::Path;

/// In the folder of the audit: the scripts and the logs of the jobs.
const JOBS: &str = "jobs";
/// Shards for each worker, so that one that begins late or runs on a slow machine has less of them.
const SHARDS: u32 = 4;
/// Elements that an array has at most where nobody changed Slurm's settings.
const LARGEST_ARRAY: u32 = 1000;

/// Submits models, shards and merge.
pub fn submit(
    choices: &Choices,
    memory: Option<u64>,
    out: Option<&Path>,
    fresh: bool,
    cluster: &Cluster,
) -> Result<()> {
    let data = choices
        .data
        .as_deref()
        .context("--on slurm needs data: an .npy or .parquet file, or a folder of them")?;
    let out = out.context(
        "--on slurm needs a folder for models, scores and results that all machines see: name it with --out",
    )?;
    let out = std::path::absolute(out)?;
    let workers = cluster.workers.unwrap_or(1);
    let shards = workers.saturating_mul(SHARDS).min(LARGEST_ARRAY);
    let text = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let mut fit = text(&["audit", "fit", data, "--out"]);
    fit.push(out.clone().into());
    fit.extend(memory.iter().flat_map(|bytes| text(&["--memory", &bytes.to_string()])));
    fit.extend(choices.seed.iter().flat_map(|seed| text(&["--seed", &seed.to_string()])));
    fit.extend(fresh.then(|| "--fresh".into()));
    fit.extend(choices.own.words());
    let part = |verb: &str| -> Vec<OsString> { vec!["audit".into(), verb.into(), out.clone().into()] };
    let jobs = [
        ("fit", fit, vec![], String::new()),
        (
            "score",
            part("score"),
            vec![format!("--array=1-{shards}%{workers}")],
            format!(" --shard \"$SLURM_ARRAY_TASK_ID/{shards}\""),
        ),
        ("merge", part("merge"), vec![], String::new()),
    ];
    // Made here, so that it is known to be the program's when the first job comes.
    drop(OwnFolder::open(&out)?);
    let place = out.join(JOBS);
    let own = OwnFolder::open(&place)?;
    let mut scripts = Vec::new();
    for (name, words, more, end) in jobs {
        let path = own.file(&format!("{name}.sh"))?;
        let log = place.join(format!("{name}-{}.log", if more.is_empty() { "%j" } else { "%A_%a" }));
        let script =
            cluster.script(Job { name: &format!("negscale-{name}"), log: &log, more, words, end })?;
        write_bytes(&path, script.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        scripts.push((name, path));
    }
    let mut before: Option<String> = None;
    for (name, script) in scripts {
        // A job whose predecessor failed is not kept waiting for ever.
        let after = before
            .iter()
            .flat_map(|job| [format!("--dependency=afterok:{job}"), "--kill-on-invalid-dep=yes".into()]);
        let job = cluster::submit(&script, &after.collect::<Vec<_>>())?;
        let what =
            if name == "score" { format!(", {shards} shards, {workers} at a time") } else { String::new() };
        eprintln!("{name}: job {job}{what}");
        before = Some(job);
    }
    eprintln!("logs: {}; results will be in {}", place.display(), out.display());
    eprintln!("run the same command again after a failure: models and shards that are done are kept");
    Ok(())
}
