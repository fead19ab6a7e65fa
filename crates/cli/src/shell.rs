//! `negscale completions` and `negscale man`: what shells and `man` want to know of the command, made from the arguments themselves.

use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::PathBuf;

/// Print a script that completes commands and options in your shell.
///
/// For bash: `negscale completions bash > ~/.local/share/bash-completion/completions/negscale`; for zsh, a file `_negscale` in a folder of
/// `$fpath`; for fish, `~/.config/fish/completions/negscale.fish`; for PowerShell, a line in your profile.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Write manual pages: one for the program and one for each command.
#[derive(clap::Args)]
pub struct Man {
    /// Folder to write them to, such as ~/.local/share/man/man1.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

/// Prints a completion script.
pub fn completions(arguments: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "negscale", &mut script);
    say_part!("{}", String::from_utf8(script).context("the script is not text")?);
    Ok(())
}

/// Writes manual pages.
pub fn man(arguments: &Man) -> Result<()> {
    let out = &arguments.out;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    // Without pages for `help`, which shows what they say.
    let command = crate::Arguments::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, out).with_context(|| format!("cannot write to {}", out.display()))?;
    say!("pages are in {}; read one with `man -l {}`", out.display(), out.join("negscale.1").display());
    Ok(())
}
