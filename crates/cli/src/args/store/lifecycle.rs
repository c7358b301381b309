//! Defines the arguments of `haul store lifecycle`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::examples;

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct LifecycleArgs {
    #[command(subcommand)]
    pub(crate) command: LifecycleCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LifecycleCommand {
    /// Print the rules of a bucket
    #[command(after_long_help = examples::LIFECYCLE_SHOW)]
    Show(LifecycleShowArgs),
    /// Replace the rules of a bucket by those of a file
    ///
    /// The file has the XML of the S3 API, or the JSON of "aws s3api
    /// put-bucket-lifecycle-configuration". Rules for transitions and tags are refused.
    /// The rules take effect when "haul serve" or "haul store lifecycle run" applies them.
    #[command(after_long_help = examples::LIFECYCLE_SET)]
    Set(LifecycleSetArgs),
    /// Remove the rules of a bucket
    #[command(after_long_help = examples::LIFECYCLE_REMOVE)]
    Remove {
        /// Name of the bucket
        bucket: String,
    },
    /// Delete expired objects and versions and abort stale uploads now
    ///
    /// "haul serve" does the same in the background, once a day for each bucket.
    #[command(after_long_help = examples::LIFECYCLE_RUN)]
    Run(LifecycleRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LifecycleShowArgs {
    /// Name of the bucket
    pub(crate) bucket: String,
    /// Print the JSON of the AWS command line, which "set" reads
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the XML of the S3 API, which "set" reads
    #[arg(long, conflicts_with = "json")]
    pub(crate) xml: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LifecycleSetArgs {
    /// Name of the bucket
    pub(crate) bucket: String,
    /// File with the rules; - is stdin
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LifecycleRunArgs {
    /// Name of the bucket [default: all buckets with rules]
    pub(crate) bucket: Option<String>,
    /// Print what would be deleted and aborted, and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object per line: with --dry-run one for each object, version and upload,
    /// then one for each bucket
    #[arg(long)]
    pub(crate) json: bool,
}
