//! The part of the table below `haul store`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

use super::{OpenArgs, examples};
use crate::store::place::{Object, Place, Range};

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Store a directory tree, each file under its relative path
    ///
    /// Files are read in the order they lie on the disk, as far as inode numbers tell it. The
    /// bucket is made when it is not there. Modification times are kept as rclone keeps them.
    /// Empty directories, sockets, FIFOs and devices are left out, and so are symbolic links
    /// unless --follow is given. A file that cannot be read, changes while it is read, or whose
    /// name cannot be a key (it is not UTF-8, or longer than 1,024 bytes) is reported, the others
    /// are stored, and the exit code is 1.
    #[command(after_long_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Write the objects of a bucket into a directory tree
    ///
    /// Keys become paths below DIR; with a PREFIX, everything up to its last "/" is cut off.
    /// Files of the same names are replaced. Keys that are no safe path (such as "../x", "/x",
    /// "x//y", or "x" beside "x/y") are reported, the others are written, and the exit code is 1.
    #[command(after_long_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Store one file, or stdin
    #[command(after_long_help = examples::PUT)]
    Put(PutArgs),
    /// Read one object to a file, or to stdout
    #[command(after_long_help = examples::GET)]
    Get(GetArgs),
    /// List buckets, or the objects of one
    ///
    /// Control characters in keys are escaped, so that each line is one key; --json gives the keys
    /// as they are.
    #[command(after_long_help = examples::LS)]
    Ls(LsArgs),
    /// Tell what is known of an object or a bucket
    #[command(after_long_help = examples::STAT)]
    Stat(StatArgs),
    /// Delete objects
    #[command(after_long_help = examples::RM)]
    Rm(RmArgs),
    /// Make a bucket
    #[command(after_long_help = examples::MB)]
    Mb {
        /// The name: 3 to 63 of a-z, 0-9, "-" and "."
        bucket: String,
    },
    /// Remove an empty bucket
    #[command(after_long_help = examples::RB)]
    Rb {
        /// The name
        bucket: String,
    },
    /// Read everything back, and tell what is damaged
    ///
    /// Every stored byte is read and its checksum verified. Damage is told on stdout by bucket,
    /// key, file and offset, and the exit code is 1.
    #[command(after_long_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Give the space of deleted objects back to the file system
    ///
    /// Volumes of which a tenth or more is dead are rewritten; the one being written and those with
    /// damage are left alone. Big objects have files of their own, which go when they are deleted.
    #[command(after_long_help = examples::COMPACT)]
    Compact,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The bucket to store into
    pub(crate) bucket: String,
    /// The directory, or a single file
    pub(crate) path: PathBuf,
    /// Put this before every key, as it is: "photos/" makes "photos/a.jpg" of "a.jpg"
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Follow symbolic links
    #[arg(long)]
    pub(crate) follow: bool,
    /// Leave alone what is stored already with the same size and modification time
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// How many files are stored at once; together they share syncs of the disk
    #[arg(long, value_name = "N", default_value = "16", value_parser = jobs())]
    pub(crate) jobs: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The bucket, and perhaps what the keys begin with
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) from: Place,
    /// The directory to write below; it is made when it is not there
    pub(crate) dir: PathBuf,
    /// How many objects are written at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = jobs())]
    pub(crate) jobs: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Where to store it
    #[arg(value_name = "BUCKET/KEY")]
    pub(crate) to: Object,
    /// The file; - is stdin
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The object
    #[arg(value_name = "BUCKET/KEY")]
    pub(crate) from: Object,
    /// The file, which is replaced once everything was read; - is stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Only the bytes from A to B, both included and counted from 0; "A-" goes to the end, "-N"
    /// is the last N
    #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
    pub(crate) range: Option<Range>,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// The bucket, and perhaps what the keys begin with; without it the buckets are listed
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) place: Option<Place>,
    /// Tell sizes in bytes and times too
    #[arg(short, long)]
    pub(crate) long: bool,
    /// List every key instead of folding those with a further "/"
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// One JSON object a line: bucket, key, bytes, modified, etag; or bucket, prefix
    #[arg(long, conflicts_with = "long")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// The object or the bucket
    #[arg(value_name = "BUCKET[/KEY]")]
    pub(crate) place: Place,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The objects; with --recursive, what the keys begin with
    #[arg(required = true, value_name = "BUCKET/KEY")]
    pub(crate) places: Vec<Place>,
    /// Delete every object whose key begins with what is given; a bucket alone is all of them
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Do not ask before deleting many
    #[arg(short, long, requires = "recursive")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// One JSON object a line: each damage, and at the end what was read
    #[arg(long)]
    pub(crate) json: bool,
}

fn jobs() -> impl clap::builder::TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=256)
}
