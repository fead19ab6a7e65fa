//! `negscale doctor`: what this machine has for the program, for bug reports.

use crate::program::{Program, program};
use crate::source::Place;
use anyhow::{Result, bail};
use negscale_data::catalogue::{self, State};
use negscale_methods::trainer::{check_device, describe_device, devices};
use negscale_run::folder::{hardware, version};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Say what the program finds on this machine: instructions, memory, devices and whether they compute what the CPU does, data, Slurm, Ray.
///
/// Please add its output to bug reports. Exits with 2 if a device does not work.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Check this device, and nothing else.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

/// A device that computes what the CPU does.
struct Works {
    /// How far apart a small network's weights are, relative to their length.
    far: f64,
    /// What it calls itself.
    title: Option<String>,
    /// Cards of its kind.
    cards: usize,
}

/// What became of a device's check.
type Health = Result<Works, String>;

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { place, json, device } = arguments;
    if let Some(name) = device {
        let health = check(&name);
        match json {
            true => say!("{}", state(&name, &health)),
            false => say!("{}", line(&name, &health)),
        }
        return verdict(&[(name, health)]);
    }
    let folders = place.to_read()?;
    let memory = memory();
    let looked_in: Vec<(String, bool)> =
        folders.looked_in().iter().map(|folder| (folder.display().to_string(), folder.is_dir())).collect();
    let found: Vec<&str> = catalogue::list(&folders)
        .rows
        .iter()
        .filter(|row| matches!(row.state, State::Present { .. } | State::Embedded))
        .map(|row| row.entry.name)
        .collect();
    let devices = examine_all()?;
    let slurm = said("sbatch", &["--version"]);
    let ray = said("python3", &["-c", "import ray; print('ray', ray.__version__)"]);
    if json {
        let devices: Vec<Value> = devices.iter().map(|(name, health)| state(name, health)).collect();
        let data = json!({ "folders": looked_in, "found": found });
        let (total, free) = memory.unzip();
        say!(
            "{}",
            json!({ "version": version(), "hardware": hardware(), "memory": total, "memory_free": free, "devices": devices,
                    "data": data, "slurm": slurm, "ray": ray })
        );
    } else {
        say!("program  negscale {}", version());
        say!("CPU      {}", hardware());
        if let Some((total, free)) = memory {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            say!("memory   {:.1} GiB, {:.1} GiB of it free", gib(total), gib(free));
        }
        for (name, health) in &devices {
            say!("device   {}", line(name, health));
        }
        for (folder, is_there) in &looked_in {
            say!("data     {folder}{}", if *is_there { "" } else { " (not there)" });
        }
        say!("         found: {}", found.join(", "));
        say!("cluster  {}", slurm.as_deref().unwrap_or("no Slurm"));
        say!("         {}", ray.as_deref().unwrap_or("no Ray for python3"));
    }
    verdict(&devices)
}

/// Checks the first device of every kind, and all further cards.
fn examine_all() -> Result<Vec<(String, Health)>> {
    let mut all = Vec::new();
    for kind in devices() {
        let health = examine(kind)?;
        let cards = health.as_ref().map_or(0, |works| works.cards);
        all.push((kind.to_owned(), health));
        for number in 1..cards {
            let name = format!("{kind}:{number}");
            let health = examine(&name)?;
            all.push((name, health));
        }
    }
    Ok(all)
}

fn check(name: &str) -> Health {
    let checked = check_device(name).and_then(|far| Ok((far, describe_device(name)?)));
    let (far, description) = checked.map_err(|error| error.to_string())?;
    let (title, cards) = description.unzip();
    Ok(Works { far, title, cards: cards.unwrap_or(0) })
}

/// Checks a device in a process of its own: a driver that crashes takes its process along.
fn examine(name: &str) -> Result<Health> {
    if name == "cpu" {
        return Ok(check(name));
    }
    let Program { path, words } = program()?;
    let mut command = Command::new(path);
    let output = command.args(words).args(["doctor", "--device", name, "--json"]).output()?;
    let found: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    Ok(match found {
        Some(found) => match found["apart_from_cpu"].as_f64() {
            Some(far) => Ok(Works {
                far,
                title: found["title"].as_str().map(str::to_owned),
                cards: found["cards"].as_u64().unwrap_or(0) as usize,
            }),
            None => Err(found["problem"].as_str().unwrap_or_default().into()),
        },
        None => Err(format!(
            "device `{name}`: its driver crashed ({}); update it, try another kind of device, or use cpu",
            output.status
        )),
    })
}

fn state(name: &str, health: &Health) -> Value {
    match health {
        Ok(Works { far, title: None, .. }) => json!({ "name": name, "works": true, "apart_from_cpu": far }),
        Ok(Works { far, title, cards }) => {
            json!({ "name": name, "title": title, "works": true, "apart_from_cpu": far, "cards": cards })
        }
        Err(problem) => json!({ "name": name, "works": false, "problem": problem }),
    }
}

fn line(name: &str, health: &Health) -> String {
    match health {
        Ok(Works { far: 0.0, .. }) => format!("{name}: works"),
        Ok(Works { far, title, .. }) => {
            let title = title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
            format!("{name}{title}: works; a small network's weights are {far:.0e} from those of the CPU")
        }
        Err(problem) => problem.clone(),
    }
}

fn verdict(devices: &[(String, Health)]) -> Result<()> {
    match devices.iter().find(|(_, health)| health.is_err()) {
        Some((name, _)) => bail!("device {name} does not work"),
        None => Ok(()),
    }
}

/// Bytes of memory, and how many are free.
fn memory() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let read = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Some((read("MemTotal:")?, read("MemAvailable:")?))
}

/// The first line that a program prints, if it is there and content.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}
