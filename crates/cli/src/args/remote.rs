//! Defines the arguments that name a copy in a remote object store.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::parse_time_between;
use crate::units::{parse_bytes, parse_time};

/// The place of a copy.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Read options of the remote store from FILE
    ///
    /// Lines of the form name = value, such as aws_endpoint, aws_access_key_id and
    /// aws_secret_access_key, with the names of the environment variables in any case. The file must
    /// not be readable by other users. Environment variables that begin with AWS_, AZURE_ or GOOGLE_
    /// are used, too; the file has precedence.
    #[arg(long, value_name = "FILE", help_heading = "Replication")]
    pub(crate) remote_options: Option<PathBuf>,
}

/// The copy of a store that a server keeps.
#[derive(Debug, Args)]
pub(crate) struct ReplicationArgs {
    /// Copy the store continuously to a remote object store
    ///
    /// The URL is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. The bucket must
    /// exist, and its server must support conditional writes (If-Match), as AWS S3, MinIO, Ceph and
    /// haul serve do. The prefix belongs to this store alone. "haul store restore" creates a store
    /// from the copy. Each of several directories of --data has a copy of its own below the prefix;
    /// --refill restores one of them.
    #[arg(long, value_name = "URL", help_heading = "Replication")]
    pub(crate) remote: Option<String>,
    /// Acknowledge a write once it is durable here, or once it is in the copy
    #[arg(long, value_enum, default_value_t = Acknowledge::Local, requires = "remote")]
    #[arg(help_heading = "Replication")]
    pub(crate) ack: Acknowledge,
    /// Longest time until a write is copied
    ///
    /// If this machine is lost, acknowledged writes of about this time are lost with --ack local.
    /// Copying small writes costs one request each time.
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(default_value = "1s", value_parser = parse_time)]
    pub(crate) ship_every: Duration,
    /// Time that a write waits for the copy with --ack remote before it fails with 503
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(default_value = "30s", value_parser = parse_time)]
    pub(crate) ack_time: Duration,
    /// Disk space for volumes and big objects; what is cold stays only in the copy
    ///
    /// When they exceed SIZE, the files that were read least recently are compared with the copy and
    /// then removed from this disk. Reads fetch the blocks that they need. A cache of an eighth of
    /// SIZE is added. At least 64MiB; unlimited by default.
    #[arg(long, value_name = "SIZE", help_heading = "Replication", requires = "remote")]
    #[arg(value_parser = parse_local_space)]
    pub(crate) local_space: Option<u64>,
    /// Keep earlier states of the copy for TIME, for "haul store restore --at"
    ///
    /// Objects of the copy that only such states need are deleted later, so the copy takes more
    /// space. 0s keeps the newest state only, and deletes earlier ones.
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(default_value = "0s", value_parser = parse_time)]
    pub(crate) keep: Duration,
    /// Shortest time between two states that are kept; --keep may be 10,000 times as long
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(default_value = "5min", value_parser = parse_time)]
    pub(crate) keep_every: Duration,
    /// Promise a standby to renew the copy within TIME, so that it may take over otherwise
    ///
    /// A server whose lease ran out refuses writes with 503 until it is renewed. The lease is
    /// renewed three times within TIME, with one request each, also while nothing is written:
    /// without this option, an idle store costs no requests. 100ms to 1h, for example 3s.
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(value_parser = parse_time_between("100ms", "1h"))]
    pub(crate) lease: Option<Duration>,
    /// Follow the copy, and take it over when the lease of its server has run out
    ///
    /// The directory --data must be empty, or that of an earlier standby. The server fetches new
    /// parts of the copy as they appear, and responds to requests with 503 and its state. When the
    /// server that keeps the copy did not renew its lease (--lease), or on SIGUSR1, it takes the copy
    /// over and serves. If the directory has a store already, it serves at once, if no other server
    /// has taken its copy over.
    #[arg(long, help_heading = "Replication", requires = "remote")]
    pub(crate) standby: bool,
    /// Interval at which a standby or a read-only server looks for changes of the copy, with one
    /// request each [default: 500ms; 5s with --read-only]
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(value_parser = parse_time)]
    poll_every: Option<Duration>,
    /// Time after which objects are deleted that the newest state of the copy does not need
    ///
    /// Servers with --read-only must notice a newer state within TIME: it must be longer than their
    /// --poll-every.
    #[arg(long, value_name = "TIME", help_heading = "Replication", requires = "remote")]
    #[arg(default_value = "1min", value_parser = parse_time, hide_short_help = true)]
    pub(crate) delete_after: Duration,
    /// Serve reads from the copy, which another server keeps
    ///
    /// Any number of machines can serve the same copy. The directory --data must be empty, or that
    /// of an earlier read-only server: it gets the index, the newest volumes, and a cache of
    /// --local-space (1GiB by default) for the blocks that are read. PUT, POST and DELETE are refused
    /// with AccessDenied. Reads see the store as it was up to --ship-every and --poll-every ago.
    #[arg(long, help_heading = "Replication", requires = "remote")]
    #[arg(conflicts_with_all = [
        "ack", "ship_every", "ack_time", "keep", "keep_every", "lease", "standby", "delete_after",
    ])]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) options: RemoteArgs,
}

impl ReplicationArgs {
    /// Returns the first option that only a store in one directory can have.
    pub(crate) fn single_option(&self) -> Option<&'static str> {
        let options = [
            ("--lease", self.lease.is_some()),
            ("--local-space", self.local_space.is_some()),
            ("--standby", self.standby),
            ("--read-only", self.read_only),
        ];
        options.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Returns the interval at which a standby or a read-only server looks for changes of the copy.
    pub(crate) fn poll_interval(&self) -> Duration {
        let default =
            if self.read_only { Duration::from_secs(5) } else { Duration::from_millis(500) };
        self.poll_every.unwrap_or(default)
    }
}

/// The least space of the local part of a store: several volumes of a small store.
const LOCAL_SPACE_MIN: u64 = 64 << 20;

fn parse_local_space(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        LOCAL_SPACE_MIN.. => parse_bytes(text),
        _ => Err("must be at least 64MiB".to_owned()),
    }
}

/// The place at which a write must be durable before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Acknowledge {
    /// On the disk of this machine; the copy follows within --ship-every
    Local,
    /// Also in the copy; concurrent writes share its requests
    Remote,
}
