//! Defines the arguments of `haul probe`.

use std::path::PathBuf;

use clap::Args;

use super::values::parse_bytes_between;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// File or directory on the disk to examine
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Measure sync latency, random reads at increasing queue depths, and sequential rates
    ///
    /// Takes a few seconds. Uses an unnamed scratch file in PATH or its directory, which is freed
    /// however the program ends, and requires free space of twice its size.
    #[arg(long)]
    pub(crate) measure: bool,
    /// Size of the scratch file, 16MiB to 64GiB
    ///
    /// Disks and hypervisors may serve a file from memory if it is not much larger than their
    /// caches.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", requires = "measure")]
    #[arg(value_parser = parse_bytes_between("16MiB", "64GiB"))]
    pub(crate) size: u64,
    /// Draw the measured rates and latencies to FILE, as SVG
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
