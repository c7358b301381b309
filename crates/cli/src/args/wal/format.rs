//! Defines the options that select how records are printed.

use clap::Args;

/// The format in which records are printed.
#[derive(Debug, Args)]
pub(crate) struct RecordFormat {
    /// Number of bytes of each payload to print
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with_all = ["json", "raw"])]
    pub(crate) payload_bytes: usize,
    /// Print one JSON object per line, with the payload in hexadecimal digits
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the payloads, unchanged and without separators
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
}
