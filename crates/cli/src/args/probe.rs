//! The part of the table for `haul probe`.

use std::path::PathBuf;

use clap::Args;

use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// A file or directory on the storage
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Measure it, too, in some seconds: durable writes in several ways, random reads with more
    /// and more of them under way, long reads and writes
    ///
    /// In a scratch file in PATH (or its directory) without a name: nothing is left behind, however
    /// it ends. Twice its size must be free.
    #[arg(long)]
    pub(crate) measure: bool,
    /// How large the scratch file is, 16MiB to 64GiB
    ///
    /// A disk, or a host below, may answer from memory of its own what is not much larger than that.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    #[arg(requires = "measure")]
    pub(crate) size: u64,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(16 << 20..=64 << 30).contains(&bytes) {
        return Err("it must lie between 16MiB and 64GiB".to_owned());
    }
    Ok(bytes)
}
