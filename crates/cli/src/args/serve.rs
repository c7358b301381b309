//! Defines the arguments of `haul serve`.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use haul_s3_server::{HostAddress, Limits, Rate};

use super::disk_kind::DiskKind;
use super::files::with_burst;
use super::store::OpenArgs;
use super::values::parse_positive;
use super::{AccessLogArgs, ConfigArgs, ReplicationArgs, TlsArgs};
use crate::units::{parse_bytes, parse_time};

/// The least memory for bodies: the longest document must fit in the share of one client.
const BODY_MEMORY_MIN: u64 = 16 << 20;

/// The memory of a server that no option counts: buffers of the log and of a thousand connections,
/// the index of a small store.
const OWN_MEMORY: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Listen on this address for S3 and HTTP; port 0 selects a free port
    ///
    /// A host name is resolved once, at the start.
    ///
    /// Sockets that a service manager passes (LISTEN_FDS) are used instead: the first one for S3,
    /// the second one, if there is one, for the admin page, and the third one for websites.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", help_heading = "Server")]
    pub(crate) listen: HostAddress,
    /// Listen on this address for the admin page, metrics and health checks
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9001", help_heading = "Server")]
    pub(crate) admin: HostAddress,
    /// Create this bucket at the start, unless it exists; can be repeated
    #[arg(long = "bucket", value_name = "NAME", help_heading = "Server")]
    #[arg(conflicts_with = "read_only")]
    pub(crate) buckets: Vec<String>,
    /// Accept requests to BUCKET.DOMAIN as requests to this bucket; can be repeated
    ///
    /// Clients name this the virtual-hosted style. In requests to other hosts, the path begins with
    /// the bucket. The names BUCKET.DOMAIN must resolve to the address of the server, and with TLS
    /// its certificate must be valid for *.DOMAIN, too.
    #[arg(long = "domain", value_name = "DOMAIN", help_heading = "Server")]
    pub(crate) domains: Vec<String>,
    /// Listen on this address for the websites of buckets
    ///
    /// A bucket has a website once a client sets one with PutBucketWebsite. Everybody may read its
    /// pages, as far as requests without a signature may read the objects. The name of a bucket is
    /// the host of its website: "www.example.com"; see --website-domain for other names. With
    /// certificates, the server accepts only TLS here, unless this is a loopback address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Server")]
    pub(crate) website: Option<HostAddress>,
    /// Show the website of each bucket at BUCKET.DOMAIN, too; can be repeated
    ///
    /// The names BUCKET.DOMAIN must resolve to the address of --website.
    #[arg(long = "website-domain", value_name = "DOMAIN", help_heading = "Server")]
    pub(crate) website_domains: Vec<String>,
    /// Read the access key and secret key from FILE
    ///
    /// Two lines: the access key, then the secret key; or lines of the form access_key = ... and
    /// secret_key = ... . The file must not be readable by other users. Without this option, the
    /// environment variables HAUL_ACCESS_KEY and HAUL_SECRET_KEY are used. This key pair has all
    /// rights; --keys adds keys with fewer rights. Without any keys, every client has full access,
    /// and only loopback addresses (127.0.0.1, ::1) are accepted.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) credentials: Option<PathBuf>,
    /// Accept the keys in FILE, each with its rights; "haul keys" creates and changes them
    ///
    /// The file is read again on SIGHUP, and within a second after it changes. If it is invalid
    /// then, the keys of before remain in force, and stderr, /health and the metrics report it.
    #[arg(long, value_name = "FILE", help_heading = "Server", requires = "sealing_key")]
    keys: Option<PathBuf>,
    /// Open the key file with the key in this file
    ///
    /// The file must not be readable by other users.
    #[arg(long, value_name = "FILE", help_heading = "Server", requires = "keys")]
    sealing_key: Option<PathBuf>,
    /// Give temporary keys to the users of the OpenID Connect providers in FILE
    ///
    /// A JSON file with "providers", a list of objects with name, issuer (a URL), audience (the ID
    /// of the client for which tokens are issued), and optionally user_claim, policy_claim, and
    /// policies, a table from values of this claim to lists of policies. The policies are those of
    /// "haul keys policy". AssumeRoleWithWebIdentity exchanges a token for a temporary key. With
    /// console_url, and optionally client_secret and scopes, users also log in to the console.
    #[arg(long, value_name = "FILE", help_heading = "Server", requires = "keys")]
    pub(crate) oidc: Option<PathBuf>,
    /// Encrypt objects with the keys in FILE if the request or the bucket requires it (SSE-S3)
    ///
    /// "haul keys add-encryption-key" creates the file, and adds keys to it. The last key of the
    /// file encrypts new objects, the others decrypt earlier ones. The file must not be readable by
    /// other users. Keep a copy of it: without their key, objects cannot be read. Without this
    /// option, objects are encrypted only with keys that clients send (SSE-C).
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) encryption_key: Option<PathBuf>,
    /// Send the events of bucket notifications to the targets in FILE
    ///
    /// Tables [webhook.NAME] in TOML, with url and, optionally, token, authorization, secret, ca,
    /// client-cert, client-key, records, timeout, queue-events and queue-age; in a program that was
    /// built with NATS, also tables [nats.NAME] with url and subject. A bucket names a target as
    /// arn:haul:sqs:::NAME in PutBucketNotificationConfiguration. An event is durable with its
    /// change, and is sent until the target accepts it; SIGHUP ends the pause after a failure. The
    /// file must not be readable by other users.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) event_targets: Option<PathBuf>,
    /// Print the ready line, and the counts at the end, as one JSON object each
    ///
    /// The ready line has kind (ready), s3, admin and, with --website, website: the addresses as
    /// URLs; while the server stands by, kind is standby. The counts have kind (closed), seconds,
    /// requests (by kind and class of status), received_bytes and sent_bytes.
    #[arg(long, help_heading = "Server")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Allow plain HTTP on public addresses
    ///
    /// Without certificates, only loopback addresses are accepted, because objects and presigned
    /// URLs would be readable on the network. Use this option if a proxy or the network encrypts.
    #[arg(long, help_heading = "Server", conflicts_with = "tls_cert")]
    pub(crate) plain_http: bool,
    /// Memory for hot objects, big ones included, and for bodies [default: half of the memory beyond
    /// 64 MiB]
    ///
    /// Bodies may take a quarter of it, at least 16 MiB and at most 256 MiB, and big objects another
    /// quarter; the cache of hot objects takes what they do not use. --body-memory, --pinned-memory
    /// and --cache set these shares one by one. The memory is that of the machine, or the limit of
    /// the control group. It is taken as it is used; while less than an eighth of all memory is
    /// available, the cache shrinks.
    #[arg(long, value_name = "SIZE", help_heading = "Server", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Memory for hot objects of up to 4 MiB [default: what the others leave of --memory]
    ///
    /// GETs and HEADs are answered from it. Objects of more than 256 KiB are locked in the page cache
    /// (mlock) and sent from there without a copy; without the capability CAP_IPC_LOCK, the limit of
    /// locked memory (ulimit -l) must allow it, or they are copied. 0 disables the cache.
    #[arg(hide = true)]
    #[arg(long, value_name = "SIZE", help_heading = "Server", value_parser = parse_bytes)]
    cache: Option<u64>,
    /// Memory for bodies of requests and responses [default: a quarter of --memory, up to 256MiB]
    ///
    /// Requests wait for memory, for at most a minute. One client gets half of it at most. Needed
    /// for bodies as they are received, and for listings and objects as they are sent.
    #[arg(hide = true)]
    #[arg(long, value_name = "SIZE", help_heading = "Server", value_parser = parse_bytes)]
    body_memory: Option<u64>,
    /// Memory for big objects that are requested often [default: a quarter of --memory]
    ///
    /// The third request within 10 minutes for a big object reads it into the page cache, locks it
    /// there (mlock) and verifies its checksums. Later requests are served from there without
    /// copies. An object that was not requested for 10 seconds makes room for another one. Without
    /// the capability CAP_IPC_LOCK, the limit of locked memory (ulimit -l) must allow it. 0
    /// disables it: big objects are then always read with direct I/O.
    #[arg(hide = true)]
    #[arg(long, value_name = "SIZE", help_heading = "Server", value_parser = parse_bytes)]
    pinned_memory: Option<u64>,
    /// Time to finish requests in flight after a signal to stop
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(default_value = "30s", value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    /// Bytes read per second by the background scrub; 0 disables it
    ///
    /// Reads volumes and big objects with direct I/O and verifies their checksums, at most once a
    /// day. Corruption is reported in /health, the metrics and the admin page.
    #[arg(long, value_name = "SIZE", help_heading = "Server")]
    #[arg(default_value = "4MiB", value_parser = parse_bytes)]
    pub(crate) scrub_rate: u64,
    /// Kind of disk of each --data [default: as reported by the drive]
    ///
    /// On a rotational disk, reads and commits take turns, so that a PUT waits for few GETs. Only a
    /// drive that reports its rotation rate to the kernel counts as rotational by default: its disk
    /// has the file device/vpd_pgb1 in /sys/block. Virtual disks, RAID and LVM have none.
    #[arg(long, value_name = "KIND", help_heading = "Server")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// Interval of checks for expired objects and stale uploads; 0s disables them
    ///
    /// Each bucket with lifecycle rules is swept once a day, and at the next check after its rules
    /// were changed. The first check is one minute after the start at the latest.
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(default_value = "1h", value_parser = parse_time)]
    pub(crate) lifecycle_check: Duration,
    /// Length of a day of lifecycle rules, for tests
    ///
    /// With another length than 24 hours, ages of rules change in proportion and do not end at
    /// midnight, and buckets are swept once in this time.
    #[arg(long, value_name = "TIME", help_heading = "Server", hide = true)]
    #[arg(default_value = "24h", value_parser = parse_time)]
    pub(crate) lifecycle_day: Duration,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    /// Time to wait for another process to release the store, the logs and the addresses
    ///
    /// A server that replaces another one waits until the other one has finished its requests.
    /// [default: 60s with inherited sockets (LISTEN_FDS), otherwise 0s]
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(value_parser = parse_time)]
    pub(crate) takeover_time: Option<Duration>,
    #[command(flatten)]
    pub(crate) log: AccessLogArgs,
    /// Log changes to rotated files in DIR, one JSON object each; "-" logs to stdout
    ///
    /// Each PUT, copy, deletion (also of each key of DeleteObjects), multipart operation and change
    /// of a bucket has a line, also if it is refused or fails. The line is logged after the change
    /// is durable, and before the response is sent. Closed files are not removed.
    #[arg(long, value_name = "DIR", help_heading = "Logs")]
    pub(crate) audit_log: Option<PathBuf>,
    /// Time after which records are delivered to the target bucket of a bucket with logging
    ///
    /// A bucket has an access log of its own if a client sets one with PutBucketLogging. Its records
    /// are stored as objects once the first of them has this age or all have 1 MiB, and when the
    /// server stops. A crash loses those that are not delivered yet.
    #[arg(long, value_name = "TIME", help_heading = "Logs")]
    #[arg(default_value = "5m", value_parser = parse_time)]
    access_log_delivery: Duration,
    /// Print a warning for each request that takes the server this long; 0s disables it
    ///
    /// The time is that from the last byte of the request to the head of the response. The warning
    /// has the request ID, the access key, the path, the status and the times.
    #[arg(long, value_name = "TIME", help_heading = "Logs")]
    #[arg(default_value = "1s", value_parser = parse_time)]
    slow_request: Duration,
    #[command(flatten)]
    pub(crate) replication: ReplicationArgs,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Move all keys from this directory of --data to the others, so that its disk can be removed
    ///
    /// Objects are read and written meanwhile. The metrics show the progress: haul_member_objects
    /// of the directory decreases, and haul_moved_keys_total increases. haul_moving_slots becomes 0
    /// only at the end; the next start then leaves the directory out.
    #[arg(long, value_name = "DIR", help_heading = "Store")]
    pub(crate) retire: Vec<PathBuf>,
    /// Accept that this directory of --data is lost, with all its keys
    ///
    /// Its disk is missing, and will not come back. The other directories get its share of the
    /// keys: those that it had are then absent, and no longer answered with 503.
    #[arg(long, value_name = "DIR", help_heading = "Store")]
    pub(crate) accept_loss: Vec<PathBuf>,
    /// Restore the copy of a lost directory of --data into this empty one, which takes its place
    ///
    /// --data names it, too, and all other directories are there. Its keys are served at once; their
    /// content is fetched from the copy when it is read, and in the background. What the copy lacked
    /// is lost. The lost disk is refused if it comes back.
    #[arg(long, value_name = "DIR", help_heading = "Store", requires = "remote")]
    #[arg(conflicts_with_all = ["read_only", "standby"])]
    pub(crate) refill: Option<PathBuf>,
    /// Bytes per second that move between the directories of --data; 0 for no limit
    ///
    /// Keys move when a directory is added or retired.
    #[arg(long, value_name = "SIZE", help_heading = "Store")]
    #[arg(default_value = "64MiB", value_parser = parse_bytes)]
    pub(crate) move_rate: u64,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Limits per client and in total.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct ClientArgs {
    /// Maximum number of connections to each of --listen, --website and --admin
    ///
    /// Beyond the limit, a new connection replaces the oldest idle connection of the client with
    /// the most connections; requests in flight are never aborted.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Maximum number of connections per client [default: half of --connections]
    ///
    /// A client is an IPv4 address or an IPv6 /64 prefix. A reverse proxy counts as one client: set
    /// this to the number of connections it opens, or to --connections. Beyond the limit, a new
    /// connection replaces an idle one of the same client, or is answered with 503.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_client: Option<u32>,
    /// Maximum rate of S3 requests per client, such as 100/s or 30/min [default: unlimited]
    ///
    /// A request above the rate is answered with 503 SlowDown; clients of AWS repeat it later.
    #[arg(long, value_name = "RATE")]
    rate_per_client: Option<Rate>,
    /// Number of requests a client may send at once after a pause [default: those of a second]
    #[arg(long, value_name = "N", requires = "rate_per_client", hide_short_help = true)]
    #[arg(value_parser = parse_positive::<NonZero<u32>>)]
    burst_per_client: Option<NonZero<u32>>,
    /// Maximum time to receive a request head (request line and headers)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    head_time: Duration,
    /// Idle time between requests after which a connection is closed
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    idle_time: Duration,
}

/// How a server divides its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryShares {
    pub(crate) bodies: u64,
    pub(crate) pinned: u64,
    /// The most that the cache may take.
    pub(crate) cache: u64,
    /// The memory that the cache shares with the others; 0 if it has its own.
    pub(crate) shared: u64,
    /// The memory that is left to the system.
    pub(crate) free: u64,
}

impl ServeArgs {
    /// Divides the memory of the machine, or of the control group.
    pub(crate) fn memory_shares(&self, memory_bytes: u64) -> MemoryShares {
        let all = self.memory.unwrap_or(memory_bytes.saturating_sub(OWN_MEMORY) / 2);
        let most = Limits::default().body_memory_bytes_max;
        let bodies = self.body_memory.unwrap_or_else(|| (all / 4).clamp(BODY_MEMORY_MIN, most));
        let pinned = self.pinned_memory.unwrap_or(all / 4);
        let (cache, shared) = match self.cache {
            Some(cache) => (cache, 0),
            None => (all, all),
        };
        MemoryShares { bodies, pinned, cache, shared, free: memory_bytes / 8 }
    }

    /// Returns the key file and the file with its sealing key.
    pub(crate) fn key_file(&self) -> Option<(&Path, &Path)> {
        self.keys.as_deref().zip(self.sealing_key.as_deref())
    }

    /// Returns the limits of the server.
    ///
    /// `memory_bytes` is the memory of the machine, or of the control group.
    pub(crate) fn limits(&self, memory_bytes: u64) -> Limits {
        let defaults = Limits::default();
        let shares = self.memory_shares(memory_bytes);
        let clients = &self.clients;
        let per_client = clients.connections_per_client;
        let connections = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Limits {
            connections_max: connections(clients.connections),
            peer_connections_max: connections(
                per_client.unwrap_or_else(|| clients.connections.div_ceil(2)),
            ),
            peer_rate: clients
                .rate_per_client
                .map(|rate| with_burst(rate, clients.burst_per_client)),
            head_time_max: clients.head_time,
            idle_time_max: clients.idle_time,
            drain_time_max: self.drain_time,
            slow_request_time: Some(self.slow_request).filter(|time| !time.is_zero()),
            log_delivery_time: self.access_log_delivery,
            cache_bytes_max: shares.cache,
            shared_memory_bytes: shares.shared,
            memory_free_bytes_min: shares.free,
            body_memory_bytes_max: shares.bodies,
            peer_body_memory_bytes_max: shares.bodies / 2,
            ..defaults
        }
    }
}
