//! `negscale review`: looking through the labels that an audit doubts, in a browser.

use crate::train::Signals;
use anyhow::{Context, Result, bail};
use negscale_atomic_file::{FolderGuard, MARKER, OwnFolder};
use negscale_review::content::Content;
use negscale_review::export::export;
use negscale_review::record::{self, Record};
use negscale_review::samples::Samples;
use negscale_review::server::{App, serve};
use negscale_review::session::{Decisions, Session};
use negscale_review::{RECORD, evidence};
use negscale_run::audit::parts;
use negscale_run::recipe::Layers;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Look through doubted labels in the browser, and decide.
///
/// RUN is the output folder of an audit. A page is served on this machine only, at an address that is printed; every decision is on the disk,
/// in RUN/review.jsonl, before the next sample is shown. Ctrl-C ends it; start it again to go on.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Output folder of `negscale audit`.
    #[arg(value_name = "RUN", required = true)]
    folder: Option<PathBuf>,
    /// Port to serve the page at [default: one that is free].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
    /// Who decides. Everybody goes through all rows and does not see what others decided; how far two agree is told. Several may work at the
    /// same time, each with a command of their own.
    #[arg(long, value_name = "NAME", default_value = "reviewer", value_parser = reviewer)]
    reviewer: String,
    /// Share of labels without a flag among those shown, which says what the flags miss: from 0 to 0.5. Above 0, scores and reasons are
    /// shown when they are asked for.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    blind: f64,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Write what was decided: RUN/review/corrected.csv to train on, corrected.parquet and label-studio.json.
    Export(Export),
}

/// What `negscale review export` takes.
#[derive(clap::Args)]
pub struct Export {
    /// Output folder of `negscale audit`.
    #[arg(value_name = "RUN")]
    folder: PathBuf,
    /// Decisions of this reviewer only [default: the last word of anybody].
    #[arg(long, value_name = "NAME")]
    reviewer: Option<String>,
}

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  negscale review runs/A                      in the browser
  negscale review runs/A --reviewer ann       one of several
  negscale review export runs/A               then: negscale train --data D --labels runs/A/review/corrected.csv";

/// Of a name so many characters.
const LONGEST_NAME: usize = 100;

fn reviewer(text: &str) -> Result<String, String> {
    let is_sound = !text.trim().is_empty()
        && text.chars().count() <= LONGEST_NAME
        && !text.chars().any(char::is_control);
    is_sound
        .then(|| text.to_owned())
        .ok_or_else(|| format!("a name of 1 to {LONGEST_NAME} characters is needed"))
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let Arguments { part, folder, port, no_open, reviewer, blind } = arguments;
    if let Some(Part::Export(export)) = part {
        return write(export);
    }
    let folder = folder.context("name the output folder of an audit, as in `negscale review runs/A`")?;
    let audit = Audited::open(&folder)?;
    let held = hold(&folder)?;
    let mut samples = Samples::read(&folder.join("audit.csv"), &audit.classes, blind)?;
    if samples.list.is_empty() {
        bail!("{}: the audit flagged no label, so there is nothing to look through", folder.display());
    }
    audit.content.check(&samples)?;
    evidence::add(&mut samples, &folder)?;
    if samples.left_out > 0 {
        eprintln!("note: the {} least suspicious flagged labels are left out", samples.left_out);
    }
    let (record, lines) = Record::open(&folder.join(RECORD), &audit.fingerprint)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| {
        format!("cannot serve at port {port} of this machine; choose another --port, or leave it out")
    })?;
    let port = listener.local_addr()?.port();
    let session = Session::new(samples, record, lines);
    let signals = Signals::listen()?;
    let app = App::new(session, audit.content, &audit.name, &reviewer, port)?;
    say!("{}", app.address());
    eprintln!("Open this address in a browser of this machine; Ctrl-C ends the review, and nothing is lost.");
    if let (false, Some(address)) = (no_open, app.address_once()) {
        browse(&address);
    }
    serve(listener, app, || signals.stop().is_asked())?;
    drop(held);
    Ok(())
}

fn write(Export { folder, reviewer }: Export) -> Result<()> {
    let audit = Audited::open(&folder)?;
    let samples = Samples::read(&folder.join("audit.csv"), &audit.classes, 0.0)?;
    let decisions = Decisions::of(record::lines(&folder.join(RECORD), &audit.fingerprint)?);
    let done = export(&folder, &samples, &decisions, reviewer.as_deref())?;
    say!(
        "{} labels changed, {} kept, {} dropped, {} unsure",
        done.changed,
        done.kept,
        done.dropped,
        done.unsure
    );
    if done.disputed > 0 {
        eprintln!("note: on {} rows reviewers differ; the last word counts", done.disputed);
    }
    if done.dropped > 0 {
        eprintln!(
            "note: dropped rows have no label; `negscale train --labels` leaves them out, and so must other programs"
        );
    }
    say!("corrected  {}", done.corrected.display());
    say!("parquet    {}", done.parquet.display());
    say!("tasks      {}", done.tasks.display());
    Ok(())
}

/// What an audit was of.
struct Audited {
    name: String,
    classes: Vec<String>,
    fingerprint: String,
    content: Content,
}

impl Audited {
    /// Of rows that are read one by one.
    fn in_parts(folder: &Path) -> Result<Self> {
        let missing = ["audit.csv", "corrected.csv"].into_iter().find(|name| !folder.join(name).is_file());
        if let Some(name) = missing {
            bail!(
                "{} is an audit in parts that is not finished: it has no {name}; merge its shards: negscale audit merge {}",
                folder.display(),
                folder.display()
            );
        }
        let parts::Reopened { fingerprint, rows } = parts::reopen(folder)?;
        Ok(Self {
            name: rows.name().to_owned(),
            classes: rows.classes().to_vec(),
            fingerprint: format!("{fingerprint} none {}", rows.rows()),
            content: Content::of_stream(rows),
        })
    }

    fn open(folder: &Path) -> Result<Self> {
        let settings = folder.join("settings.toml");
        if parts::is_in_parts(folder) && !settings.exists() {
            return Self::in_parts(folder);
        }
        if !settings.is_file()
            || !folder.join("audit.csv").is_file()
            || !folder.join("corrected.csv").is_file()
        {
            bail!(
                "{} is not the folder of a finished audit of data that can be opened again: it has no settings.toml, audit.csv or corrected.csv; \
                 run `negscale audit` first",
                folder.display()
            );
        }
        let text = std::fs::read_to_string(&settings)
            .with_context(|| format!("cannot read {}", settings.display()))?;
        let table: toml::Table =
            toml::from_str(&text).with_context(|| format!("{} is damaged", settings.display()))?;
        let origin = table.get("provenance").and_then(toml::Value::as_table);
        let origin =
            origin.with_context(|| format!("{} does not say where it comes from", settings.display()))?;
        let text = |name: &str| origin.get(name).and_then(toml::Value::as_str).unwrap_or("none");
        let rows = origin.get("samples").and_then(toml::Value::as_integer);
        // Rows, and their labels as given.
        let fingerprint =
            [text("data_fingerprint"), text("noise_hash"), &rows.unwrap_or_default().to_string()].join(" ");
        let data = Layers::new().with_file(&settings)?.data()?;
        let path = Path::new(&data.data);
        let splits = data.open().with_context(|| match path.is_relative() && !path.exists() {
            true => format!(
                "the settings of {} name the data `{}` as seen from where they were audited: start the review there",
                folder.display(),
                data.data
            ),
            false => format!("cannot open the data of {}", folder.display()),
        })?;
        let train = match data.samples {
            Some(count) => splits.train.sample(count)?,
            None => splits.train,
        };
        if rows.is_some_and(|rows| rows != train.len() as i64) {
            bail!(
                "the data of {} have {} rows now, and had {} when they were audited: audit them again",
                folder.display(),
                train.len(),
                rows.unwrap_or_default()
            );
        }
        Ok(Self {
            name: train.name().to_owned(),
            classes: train.classes().to_vec(),
            fingerprint,
            content: Content::new(train, path.is_file().then_some(path).filter(|_| data.samples.is_none())),
        })
    }
}

/// Keeps audits from starting over there meanwhile. The record is not put on the folder's list: what people decided is never removed
/// by a program, not even by an audit that starts over.
fn hold(folder: &Path) -> Result<FolderGuard> {
    if !folder.join(MARKER).is_file() {
        bail!("{} was not made by `negscale audit`: it has no {MARKER}", folder.display());
    }
    OwnFolder::guard(folder).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => anyhow::anyhow!("{error}: an audit goes on there; wait for its end"),
        _ => error.into(),
    })
}

/// Opens the user's browser, if there is one.
fn browse(address: &str) {
    let command = if cfg!(target_os = "macos") {
        Some(("open", vec![address]))
    } else if cfg!(windows) {
        Some(("rundll32", vec!["url.dll,FileProtocolHandler", address]))
    } else {
        let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        has_screen.then(|| ("xdg-open", vec![address]))
    };
    let Some((program, words)) = command else { return };
    let quiet = || Stdio::null();
    // Without one the address stands there to be opened by hand.
    drop(Command::new(program).args(words).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn());
}
