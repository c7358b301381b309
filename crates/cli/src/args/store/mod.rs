//! Defines the arguments of `haul store`.

mod lifecycle;
mod transfer;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Args, Subcommand, ValueEnum};
use haul_file_store::VersionId;
use haul_line_log::{SystemClock, parse_moment};

pub(crate) use lifecycle::{
    LifecycleArgs, LifecycleCommand, LifecycleRunArgs, LifecycleSetArgs, LifecycleShowArgs,
};
pub(crate) use transfer::{ExportArgs, ExportTarArgs, ImportArgs, ImportTarArgs};

use super::values::{ProgressArgs, parse_bytes_between};
use super::{RemoteArgs, examples};
use crate::location::{Location, Object, Range};
use crate::report::{self, Exit, Failure};

/// The location of a store, and the layout of new objects.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct OpenArgs {
    /// Directory of the store; repeat the option for a store over several disks
    ///
    /// Keys are spread over all directories. An empty directory that is added gets its
    /// share of the keys in the background. If one of several directories is missing, its
    /// keys are not available, and all others are.
    #[arg(long, global = true, value_name = "DIR", default_value = "./haul-data")]
    pub(crate) data: Vec<PathBuf>,
    /// Store each object of at least SIZE in a separate file
    ///
    /// 64KiB to 16MiB. Smaller objects are merged into volumes and read back with one disk read;
    /// each of them is held in memory as a whole while it is written or read. Affects new objects
    /// only.
    #[arg(long, global = true, hide_short_help = true)]
    #[arg(value_name = "SIZE", default_value = "4MiB")]
    #[arg(value_parser = parse_bytes_between("64KiB", "16MiB"))]
    pub(crate) big_object: u64,
    /// Size of a volume, that is, a file that contains many small objects
    ///
    /// 4MiB to 2GiB, and at least four times --big-object. Affects new volumes only.
    #[arg(long, global = true, hide_short_help = true)]
    #[arg(value_name = "SIZE", default_value = "128MiB")]
    #[arg(value_parser = parse_bytes_between("4MiB", "2GiB"))]
    pub(crate) volume: u64,
}

impl OpenArgs {
    /// Returns the directories of the store, for messages.
    pub(crate) fn dirs(&self) -> String {
        let dirs: Vec<String> = self.data.iter().map(|dir| dir.display().to_string()).collect();
        dirs.join(", ")
    }

    /// Returns the only directory, for `feature`, which needs a store on one disk.
    pub(crate) fn single_dir(&self, feature: &str) -> report::Result<&Path> {
        match &*self.data {
            [only] => Ok(only),
            _ => Err(Failure::new(format!("{feature} needs one --data")).exit(Exit::Usage)),
        }
    }
}

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
    /// Files are read in inode order, which approximates their order on disk. The bucket is created
    /// if missing. Modification times are stored as rclone stores them. Empty directories, sockets,
    /// FIFOs, devices and, without --follow, symbolic links are skipped. A file is reported and
    /// skipped, and the exit code is 1, if it cannot be read, changes while it is read, or has a
    /// name that cannot be a key (not UTF-8, or longer than 1,024 bytes).
    #[command(after_long_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Write the objects of a bucket to a directory tree
    ///
    /// Keys become paths below DIR. If a PREFIX is given, its part up to the last "/" is dropped
    /// from each path. Existing files are replaced. Keys that are not safe paths (such as "../x",
    /// "/x", "x//y", or "x" beside "x/y") are reported and skipped, and the exit code is 1.
    #[command(after_long_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Store the files in a tar archive, each under its path
    ///
    /// Reads archives of GNU tar, bsdtar and other programs: V7, ustar, GNU and PAX; compressed
    /// ones through a pipe. The bucket is created if missing. Objects share disk syncs, and if
    /// several members have the same path, the last one wins. Paths lose a leading "/" and empty
    /// and "." components, so that a tree gives the same objects as with "store import". A hard
    /// link becomes a copy of its target. Directories, symbolic links and special files are
    /// skipped. A member is reported and skipped, and the exit code is 1, if it is sparse, or its
    /// path contains ".." or cannot be a key.
    ///
    /// If the archive is truncated or damaged, the members before that place are stored, and the
    /// exit code is 1.
    #[command(after_long_help = examples::IMPORT_TAR)]
    ImportTar(ImportTarArgs),
    /// Write the objects of a bucket to a tar archive
    ///
    /// Writes a PAX archive in key order. If a PREFIX is given, its part up to the last "/" is
    /// dropped from each path. "store import-tar" restores keys, contents, modification times and
    /// attributes such as the content type exactly; ETags of objects uploaded in parts become
    /// those of their content. Attributes are stored as extended attributes, and keys that are not
    /// safe paths are escaped: other programs extract "../x" as "%2E%2E/x".
    ///
    /// An object that cannot be read is reported and left out, and the exit code is 1.
    #[command(after_long_help = examples::EXPORT_TAR)]
    ExportTar(ExportTarArgs),
    /// Store one file, or stdin
    #[command(after_long_help = examples::PUT)]
    Put(PutArgs),
    /// Write one object to a file, or to stdout
    #[command(after_long_help = examples::GET)]
    Get(GetArgs),
    /// List buckets, or the objects of one
    ///
    /// Prints one key per line, with control characters escaped; --json prints keys unescaped.
    #[command(after_long_help = examples::LS)]
    Ls(LsArgs),
    /// Print size, times and metadata of an object or a bucket
    #[command(after_long_help = examples::STAT)]
    Stat(StatArgs),
    /// Delete objects
    ///
    /// In a bucket with versions, the objects are retained as versions, and get delete markers.
    /// No command removes a version that object lock protects.
    #[command(after_long_help = examples::RM)]
    Rm(RmArgs),
    /// Create a bucket
    #[command(after_long_help = examples::MB)]
    Mb {
        /// Name of the bucket: 3 to 63 characters of a-z, 0-9, "-" and "."
        bucket: String,
    },
    /// Remove an empty bucket
    ///
    /// A bucket that has versions or delete markers of objects is not empty.
    #[command(after_long_help = examples::RB)]
    Rb {
        /// Name of the bucket
        bucket: String,
    },
    /// Show, enable or suspend versioning in a bucket
    ///
    /// While versioning is enabled, objects that are replaced or deleted stay as versions. In a
    /// bucket with object lock, it cannot be suspended.
    #[command(after_long_help = examples::VERSIONING)]
    Versioning(VersioningArgs),
    /// Read and verify the whole store, and report damage
    ///
    /// Reads every stored byte and verifies its checksum. Damage is reported on stdout with bucket,
    /// key, file and offset. Missing volumes, and damaged regions whose objects are unknown, are
    /// reported, too. The exit code is 1 if anything was reported.
    #[command(after_long_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Return the space of deleted objects to the file system
    ///
    /// Rewrites volumes in which deleted and replaced objects take at least a tenth of the space,
    /// except the volume being written and damaged volumes. Big objects are in separate files,
    /// which are removed on deletion.
    #[command(after_long_help = examples::COMPACT)]
    Compact(CompactArgs),
    /// Show which parts of each volume are live, dead or not written
    ///
    /// Prints a line for each volume. Reads the index of each sealed volume, and the whole volume
    /// that was written last. Dead parts are objects that were replaced or deleted, and marks of
    /// deletions; "haul store compact" returns their space.
    #[command(after_long_help = examples::MAP)]
    Map(MapArgs),
    /// Show, replace, remove or apply the rules by which objects expire
    ///
    /// A rule deletes objects of an age, or after a date, and aborts uploads of an age that were
    /// not completed. Ages are days, rounded up to the next midnight UTC, as in S3.
    #[command(after_long_help = examples::LIFECYCLE)]
    Lifecycle(LifecycleArgs),
    /// Create a snapshot of the store in another directory
    ///
    /// The snapshot is a store of its own with exactly the objects of this one; open it with
    /// --data TO. It shares volumes and big objects with this store by hard links, so that it takes
    /// little additional space until objects are deleted or replaced. On another file system, TO
    /// becomes a complete copy. If the command fails, remove TO: it cannot be opened.
    ///
    /// The command opens the store itself, so it fails while a server has the store open.
    #[command(after_long_help = examples::SNAPSHOT)]
    Snapshot(SnapshotArgs),
    /// Create a store from the copy in a remote object store
    ///
    /// Fetches the newest state of the copy that "haul serve --remote" keeps, and creates the store
    /// in the directory --data, which must not exist or be empty. Everything fetched is verified.
    /// A store over several disks needs as many options --data, in any order. To continue the copy, start "haul serve" with the same --remote on the new store; the server
    /// that kept it before is then fenced: it refuses writes.
    #[command(after_long_help = examples::RESTORE)]
    Restore(RestoreArgs),
    /// Accept the loss of unknown objects in damaged regions
    ///
    /// While the objects of a damaged region are unknown, the store fails requests for every key
    /// whose latest version may have been in this region, and listings. Restore the file from a
    /// backup if possible. Otherwise, this command records that the loss is accepted: from then on
    /// the store answers with the versions it has, so that affected objects revert to their
    /// previous version or disappear.
    #[command(after_long_help = examples::ACCEPT_DAMAGE)]
    AcceptDamage(AcceptDamageArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Destination bucket and key
    #[arg(value_name = "BUCKET/KEY")]
    pub(crate) to: Object,
    /// File to store; - is stdin
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Print the stored object as one JSON object: bucket, key, bytes, modified and etag
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Object to read
    #[arg(value_name = "BUCKET/KEY")]
    pub(crate) from: Object,
    /// Destination file, replaced after everything was read; - is stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Read this version instead of the current object
    #[arg(long, value_name = "ID")]
    pub(crate) version_id: Option<VersionId>,
    /// Read only bytes A to B, inclusive and counted from 0; "A-" reads to the end, "-N" the last N
    #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
    pub(crate) range: Option<Range>,
    /// Print the object as one JSON object, as "haul store stat --json" does; needs FILE
    ///
    /// The key read_bytes is the number of bytes written to FILE.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Bucket, and a prefix of the keys to list [default: list the buckets]
    #[arg(value_name = "BUCKET[/PREFIX]")]
    pub(crate) place: Option<Location>,
    /// Print sizes in bytes and modification times, too
    #[arg(short, long)]
    pub(crate) long: bool,
    /// List all keys instead of grouping them at the next "/"
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// List all versions and delete markers of all keys, from the newest to the oldest of each
    #[arg(long, requires = "place")]
    pub(crate) versions: bool,
    /// Print one JSON object per line: bucket, key, bytes, modified, etag; or bucket, prefix
    ///
    /// With --versions also version, latest and delete_marker.
    #[arg(long, conflicts_with = "long")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VersioningArgs {
    /// Name of the bucket
    pub(crate) bucket: String,
    /// The new state [default: print the state]
    pub(crate) change: Option<VersioningChange>,
    /// Print the state as one JSON object: bucket, versioning (off, enabled or suspended) and
    /// object_lock
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum VersioningChange {
    Enable,
    Suspend,
}

#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// Object or bucket
    #[arg(value_name = "BUCKET[/KEY]")]
    pub(crate) place: Location,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Objects to delete; with --recursive, prefixes of keys
    #[arg(required = true, value_name = "BUCKET/KEY")]
    pub(crate) places: Vec<Location>,
    /// Delete all objects with the given prefix; a bucket name alone deletes all of its objects
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Delete without confirmation
    #[arg(short, long, requires = "recursive")]
    pub(crate) yes: bool,
    /// Print one JSON object for each argument, one per line
    ///
    /// The keys are bucket, key or, with --recursive, prefix, and deleted_objects and
    /// failed_objects; with --recursive also deleted_bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Print one JSON object: freed_bytes, removed_volumes, moved_bytes, dead_bytes and missing
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// Draw the volumes to FILE, too, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON object per line: dir, volume, bytes, live_bytes, dead_bytes
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptDamageArgs {
    /// Print one JSON object per line: one for each damage, as "haul store verify --json" does, then
    /// a summary
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Directory of the snapshot: empty, or created if missing
    pub(crate) to: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// URL of the copy, as given to "haul serve --remote"
    #[arg(long, value_name = "URL")]
    pub(crate) remote: String,
    /// Fetch only what opening the store needs
    ///
    /// Start "haul serve --remote" with the directory then: it serves at once, fetches what requests
    /// need, and everything else in the background, or not with --local-space. Other commands do not
    /// open the store before everything is there.
    #[arg(long)]
    pub(crate) on_demand: bool,
    #[command(flatten)]
    pub(crate) options: RemoteArgs,
    /// Restore the newest state that was kept at or before TIME
    ///
    /// A time such as 2026-11-21T07:23:14Z, "2026-11-21 07:23" (local time), or "2h ago". The server
    /// keeps states with --keep. Such a store cannot continue the copy, which is newer: use another
    /// --remote for it.
    #[arg(long, value_name = "TIME", value_parser = parse_past, conflicts_with = "on_demand")]
    pub(crate) at: Option<SystemTime>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_past(text: &str) -> Result<SystemTime, String> {
    parse_moment(text, &SystemClock)
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Print one JSON object per line: one for each damage found, then a summary
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
