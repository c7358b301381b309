//! Defines the command line of `haul import-s3`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

use super::values::{ProgressArgs, parse_positive};

pub(super) const EXAMPLES: &str = "\
Examples:
  haul import-s3 --from http://minio:9000 --dry-run
  haul import-s3 --from http://minio:9000 --from-credentials minio-keys --to-credentials keys
  haul import-s3 --from https://s3.eu-central-1.amazonaws.com --region eu-central-1 photos
  haul import-s3 --from http://minio:9000 --to http://haul:9000 --delete photos notes
  haul import-s3 --from http://minio:9000 --json | jq -r 'select(.kind == \"failed\")'

Exit codes:
  0  everything was copied, or was there already
  1  some objects or settings failed, or have other versions at the target
  2  invalid command line
  3  cannot start: a server cannot be reached or rejects the keys, or the source lacks a bucket
  130, 143  interrupted by Ctrl-C or SIGTERM; the same command continues";

#[derive(Debug, Args)]
pub(crate) struct ImportS3Args {
    /// Buckets to copy; all by default
    #[arg(value_name = "BUCKET")]
    pub(crate) buckets: Vec<String>,
    /// Server to copy from: http://HOST:PORT or https://HOST
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// Server to copy to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9000")]
    pub(crate) to: String,
    /// Read the keys for the source from FILE, as "haul serve --credentials"
    ///
    /// By default AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are used. Without keys, requests are
    /// not signed.
    #[arg(long, value_name = "FILE")]
    pub(crate) from_credentials: Option<PathBuf>,
    /// Read the keys for the target from FILE, as "haul serve --credentials"
    ///
    /// By default HAUL_ACCESS_KEY and HAUL_SECRET_KEY are used. The key needs the right to create
    /// buckets and to change them.
    #[arg(long, value_name = "FILE")]
    pub(crate) to_credentials: Option<PathBuf>,
    /// Region in the signatures of requests
    #[arg(long, default_value = "us-east-1")]
    pub(crate) region: String,
    /// Number of objects to copy at a time
    #[arg(long, value_name = "N", default_value = "32", value_parser = parse_positive::<NonZero<usize>>)]
    pub(crate) jobs: NonZero<usize>,
    /// Delete objects of the target that the source does not have
    ///
    /// Each is looked up at the source again before it is deleted. In buckets with versioning, a
    /// delete marker is created.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Only compare, and print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object a line: what was done, and at the end a summary
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
