//! Defines the arguments of imports and exports.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::args::values::ProgressArgs;
use crate::location::Location;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Destination bucket
    pub(crate) bucket: String,
    /// Directory, or a single file
    pub(crate) path: PathBuf,
    /// Prefix of every key, used as is: with "photos/", a.jpg is stored as "photos/a.jpg"
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Follow symbolic links
    #[arg(long)]
    pub(crate) follow: bool,
    /// Skip files already stored with the same size and modification time
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Number of files stored in parallel; they share disk syncs
    #[arg(long, value_name = "N", default_value = "16", value_parser = jobs())]
    pub(crate) jobs: usize,
    /// Print the summary as one JSON object to stdout, also if some files could not be stored
    ///
    /// The keys are bucket, files, bytes, existing_files (with --skip-existing), skipped_links,
    /// skipped_special (sockets, FIFOs, devices), failed_files and seconds.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Bucket, and a prefix of the keys to export
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) from: Location,
    /// Directory to write to; created if missing
    pub(crate) dir: PathBuf,
    /// Number of objects written in parallel
    #[arg(long, value_name = "N", default_value = "8", value_parser = jobs())]
    pub(crate) jobs: usize,
    /// Print the summary as one JSON object to stdout, also if some objects could not be written
    ///
    /// The keys are bucket, prefix, objects, bytes, failed_objects and seconds.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportTarArgs {
    /// Destination bucket, and a prefix of every key, used as is
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) to: Location,
    /// Archive, not compressed; - is stdin
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Skip members already stored with the same size and modification time
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Print the summary as one JSON object to stdout, also if some members could not be stored
    ///
    /// The keys are those of "haul store import --json", and complete, which is false if the archive
    /// was not read to its end.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportTarArgs {
    /// Bucket, and a prefix of the keys to export
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) from: Location,
    /// Archive, replaced after everything was written; - is stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Print the summary as one JSON object to stdout; needs FILE
    ///
    /// The keys are those of "haul store export --json".
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

fn jobs() -> impl clap::builder::TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=256)
}
