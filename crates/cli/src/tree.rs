//! tmp
#[derive(clap::Args)]
pub struct Arguments {}
pub fn run(_: Arguments) -> anyhow::Result<()> {
    Ok(())
}
