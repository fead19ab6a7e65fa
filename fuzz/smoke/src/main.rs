//! Runs the fuzz targets of `fuzz/fuzz_targets` on a stable compiler: damaged copies of good files, for some seconds each.
//!
//! No coverage guides it, so it finds what is shallow; cargo-fuzz finds the rest. Inputs are a function of their number alone: a
//! failure comes back when the target is run again.
//!
//!     fuzz-smoke --list             the names of the targets
//!     fuzz-smoke NAME [SECONDS]     one target, 5 seconds unless told
//!     fuzz-smoke --seeds NAME DIR   its good inputs as files, for fuzz/campaign

mod damage;
mod made;
mod seeds;

use std::io::Write;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Target {
    name: &'static str,
    init: fn(),
    run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[path = $path]
        // A target stops at what should not happen, and each is a crate of its own elsewhere.
        #[allow(missing_docs, unused_attributes, clippy::duplicate_mod, clippy::expect_used)]
        mod $name;)+

        const TARGETS: &[Target] = &[$(Target { name: stringify!($name), init: $name::init, run: $name::run }),+];
    };
}

targets![
    animal = "../../fuzz_targets/animal.rs",
    audit_list = "../../fuzz_targets/audit_list.rs",
    audit_model = "../../fuzz_targets/audit_model.rs",
    cifar = "../../fuzz_targets/cifar.rs",
    idx = "../../fuzz_targets/idx.rs",
    labels = "../../fuzz_targets/labels.rs",
    ledger = "../../fuzz_targets/ledger.rs",
    metadata_csv = "../../fuzz_targets/metadata_csv.rs",
    metadata_jsonl = "../../fuzz_targets/metadata_jsonl.rs",
    noise = "../../fuzz_targets/noise.rs",
    npy = "../../fuzz_targets/npy.rs",
    npz = "../../fuzz_targets/npz.rs",
    parquet = "../../fuzz_targets/parquet.rs",
    picture = "../../fuzz_targets/picture.rs",
    predictions = "../../fuzz_targets/predictions.rs",
    recipe = "../../fuzz_targets/recipe.rs",
    review_record = "../../fuzz_targets/review_record.rs",
    review_requests = "../../fuzz_targets/review_requests.rs",
    run_folder = "../../fuzz_targets/run_folder.rs",
    safetensors = "../../fuzz_targets/safetensors.rs",
    shards = "../../fuzz_targets/shards.rs",
    strips = "../../fuzz_targets/strips.rs",
    table = "../../fuzz_targets/table.rs",
    tree_indented = "../../fuzz_targets/tree_indented.rs",
    tree_tsv = "../../fuzz_targets/tree_tsv.rs",
    tree_wordnet = "../../fuzz_targets/tree_wordnet.rs",
    webvision = "../../fuzz_targets/webvision.rs",
    weights = "../../fuzz_targets/weights.rs",
];

/// An input that takes longer than this is a finding.
const SLOW: Duration = Duration::from_secs(10);

/// Keeps an input in the folder in which cargo-fuzz keeps its own, and says where.
fn keep(target: &str, number: u64, input: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../artifacts").join(target);
    let path = folder.join(format!("smoke-{number}"));
    match std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input)) {
        Ok(()) => format!("kept as fuzz/artifacts/{target}/smoke-{number}"),
        Err(error) => format!("not kept: {error}"),
    }
}

fn smoke(target: &Target, seconds: u64) -> Result<u64, String> {
    let seeds = seeds::of(target.name);
    if seeds.is_empty() || seeds.iter().any(Vec::is_empty) {
        return Err("it has no seeds, or an empty one: look at seeds.rs".into());
    }
    (target.init)();
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = target.name;
    // An input that never comes back is named by this thread, which ends the process.
    std::thread::spawn(move || {
        let mut last = u64::MAX;
        loop {
            std::thread::sleep(SLOW);
            let now = NUMBER.load(Ordering::Relaxed);
            if now == last {
                let seeds = seeds::of(name);
                let kept = keep(name, now, &damage::input(&seeds, now));
                eprintln!("{name}: input {now} takes more than {} seconds; {kept}", SLOW.as_secs());
                std::process::exit(1);
            }
            last = now;
        }
    });
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut number = 0;
    while Instant::now() < end {
        NUMBER.store(number, Ordering::Relaxed);
        let input = damage::input(&seeds, number);
        if catch_unwind(|| (target.run)(&input)).is_err() {
            return Err(format!("input {number} panics; {}", keep(name, number, &input)));
        }
        number += 1;
    }
    Ok(number)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout();
    if words.iter().any(|word| word == "--list") {
        for target in TARGETS {
            // Nobody may be listening any more.
            let _ = writeln!(out, "{}", target.name);
        }
        return ExitCode::SUCCESS;
    }
    if let [flag, name, folder] = &words[..]
        && flag == "--seeds"
    {
        for (number, seed) in seeds::of(name).iter().enumerate() {
            if let Err(error) = std::fs::write(Path::new(folder).join(format!("seed-{number}")), seed) {
                eprintln!("{folder}: {error}");
                return ExitCode::from(2);
            }
        }
        return ExitCode::SUCCESS;
    }
    let asked = words.first().and_then(|name| TARGETS.iter().find(|target| target.name == name));
    let seconds = words.get(1).map_or(Some(5), |seconds| seconds.parse().ok());
    let (Some(target), Some(seconds)) = (asked, seconds) else {
        eprintln!("usage: fuzz-smoke --list, fuzz-smoke NAME [SECONDS], or fuzz-smoke --seeds NAME FOLDER");
        return ExitCode::from(2);
    };
    match smoke(target, seconds) {
        Ok(inputs) => {
            let _ = writeln!(out, "{}: {inputs} inputs in {seconds} s", target.name);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{}: {problem}", target.name);
            ExitCode::from(1)
        }
    }
}
