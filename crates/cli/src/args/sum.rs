//! Defines the arguments of `haul sum`.

use std::path::PathBuf;

use clap::Args;

use super::disk_kind::DiskKind;
use super::hash::SumHash;
use super::values::ProgressArgs;

#[derive(Debug, Args)]
pub(crate) struct SumArgs {
    /// Files, and directories with all files below them; "-" is stdin
    ///
    /// Without a path and without --check, stdin is hashed. Symbolic links are followed only if
    /// named on the command line. With --check: directories in which every file must be listed.
    pub(crate) paths: Vec<PathBuf>,
    /// Hash function [default: blake3; with --check, that of the list]
    ///
    /// With --check, applies to lines that do not name their hash function. By default the hash
    /// function is taken from the name of the list (SHA256SUMS, files.md5, disc.sfv). If the name
    /// does not contain one, all hash functions with digests of the length in the list are tried on
    /// the first files of the list.
    #[arg(long, value_name = "NAME")]
    pub(crate) hash: Option<SumHash>,
    /// Verify files against this list of checksums; "-" is stdin
    ///
    /// Reads lists of b3sum, sha256sum, sha1sum, xxhsum and similar tools, of the BSD tools and
    /// openssl, of cksfv (SFV), and of hashdeep.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
    /// Read paths from this file, one per line; "-" is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "check", help_heading = "Input")]
    pub(crate) files_from: Option<PathBuf>,
    /// Paths of --files-from end with NUL instead of newline
    #[arg(short = '0', long, requires = "files_from", help_heading = "Input")]
    pub(crate) null: bool,
    /// Print lines of the form "SHA256 (name) = checksum"
    #[arg(long, conflicts_with = "check", help_heading = "Output")]
    pub(crate) tag: bool,
    /// End each line with NUL, and do not escape names
    #[arg(short, long, conflicts_with = "check", help_heading = "Output")]
    pub(crate) zero: bool,
    /// Print one JSON object for each file, one per line
    ///
    /// The keys are path, hash, sum and bytes; with --check: path, and result, which is ok, changed,
    /// missing, unreadable or added.
    #[arg(long, conflicts_with_all = ["tag", "zero"], help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
    /// Do not print OK for verified files
    #[arg(long, requires = "check", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print nothing; report the result as exit code only
    #[arg(long, requires = "check", help_heading = "Output")]
    pub(crate) status: bool,
    /// Ignore files that are in the list but do not exist
    #[arg(long, requires = "check", help_heading = "Checking")]
    pub(crate) ignore_missing: bool,
    /// Fail if a line of the list is malformed
    #[arg(long, requires = "check", help_heading = "Checking")]
    pub(crate) strict: bool,
    /// Restore the page cache: evict pages that were not cached before
    #[arg(long, help_heading = "Reading")]
    pub(crate) spare_cache: bool,
    /// Cache digests in a file, and do not read unchanged files again
    ///
    /// The cache is the file DIGESTS, or haul/digests-HASH below $XDG_CACHE_HOME or ~/.cache, and is
    /// that of "haul dups". A file is unchanged if its device, inode, length, mtime and ctime are
    /// unchanged. A check of a list reads all files, because damage of the disk changes no times.
    #[arg(long, value_name = "DIGESTS", num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with = "check", help_heading = "Reading")]
    pub(crate) cache: Option<Option<PathBuf>>,
    /// Kind of disk [default: as reported by the kernel; measured if reported as rotational]
    #[arg(long, value_name = "KIND", help_heading = "Reading")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// Number of reading threads per disk [default: depends on the disk]
    #[arg(long, value_name = "N", help_heading = "Reading")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

impl SumArgs {
    /// Returns the hash function for printed checksums.
    pub(crate) fn hash(&self) -> SumHash {
        self.hash.unwrap_or(SumHash::Blake3)
    }
}
