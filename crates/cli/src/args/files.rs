//! Defines the arguments of `haul files`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use haul_file_server::{
    Address, Cold, Config, Content, HostAddress, Limits, LogFormat, Rate, Tiers,
};

use crate::args::values::{parse_bytes_between, parse_bytes_from, parse_positive};
use crate::args::{ConfigArgs, TlsArgs};
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct FilesServerArgs {
    /// Directory to serve
    #[arg(required = false, required_unless_present = "print_config")]
    pub(crate) dir: PathBuf,
    /// Listen on this address: 127.0.0.1:8080, localhost:8080 or unix:/run/files; port 0 selects a
    /// free port [default: 127.0.0.1:8080]
    ///
    /// An IPv6 address stands in brackets, before its port. The first address of a host name is used; it is resolved once, at the start. A socket that a
    /// service manager passes (LISTEN_FDS) is used instead.
    #[arg(long, value_name = "ADDRESS", help_heading = "Server")]
    pub(crate) listen: Option<HostAddress>,
    /// Listen on this address for /metrics, /health and /ready [default: none]
    #[arg(long, value_name = "ADDRESS", help_heading = "Server")]
    pub(crate) admin: Option<Address>,
    /// Allow plain HTTP on public addresses, and requests for any host
    ///
    /// Without certificates, only loopback addresses (127.0.0.1, ::1) and unix sockets are
    /// accepted. Every client that can connect can read all files below DIR that this process can
    /// read, also with TLS.
    #[arg(long, help_heading = "Server")]
    pub(crate) plain_http: bool,
    /// Accept requests for this host name; repeatable
    ///
    /// On a loopback address, only requests for localhost and IP addresses are answered, which
    /// protects against DNS rebinding: a web page could otherwise read files through the browser of
    /// a user of this machine. Behind a proxy that forwards the original Host, name that host.
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) host: Vec<String>,
    /// Number of serving threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Server")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// Time to finish responses in progress after a signal to stop
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(default_value = "30s", value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    /// Print the ready line, and the statistics at the end, as one JSON object each
    ///
    /// The ready line has kind (ready), files and admin: the addresses as URLs. The statistics have
    /// kind (closed), seconds, responses (by status), sent_bytes and connections.
    #[arg(long, help_heading = "Server")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    tiers: TierArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    pub(crate) log: AccessLogArgs,
    /// Time from which on a request is listed as slow in the console (--admin); 0s disables the list
    ///
    /// The time is that from the head of the request to the head of the response.
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Logs")]
    #[arg(hide_short_help = true, value_parser = parse_time)]
    slow_request: Duration,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Options of the served content.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
struct ContentArgs {
    /// List directories without index.html, as HTML or JSON
    #[arg(long)]
    listing: bool,
    /// Serve hidden files and directories too, whose names begin with a dot
    ///
    /// Without this option, /.well-known is the only such name that is served.
    #[arg(long)]
    dotfiles: bool,
    /// Serve NAME.br, NAME.zst and NAME.gz only under their own names, not as encodings of NAME
    #[arg(long)]
    no_precompressed: bool,
    /// Value of the Cache-Control header of responses, such as "public, max-age=3600"
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
}

/// Options of the cache in memory and of disk reads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory and disk")]
struct TierArgs {
    /// Size of the memory cache for small files; 0 disables it [default: an eighth of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    cache: Option<u64>,
    /// Largest file stored in the memory cache
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    #[arg(value_parser = parse_bytes_between("0", "16MiB"))]
    cache_object_max: u64,
    /// Maximum number of files kept open that are not in the memory cache
    #[arg(long, value_name = "N", default_value_t = 1024, hide_short_help = true)]
    open_files: usize,
    /// Time for which a file's metadata is cached; 0s checks it at each request
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    valid: Duration,
    /// Read uncached files of at least SIZE with direct I/O
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_bytes)]
    direct_min: u64,
    /// Read a part of a large file through the page cache after N recent requests
    ///
    /// Concerns files of at least --direct-min, of which each part of 2 MiB is counted separately.
    /// Before the Nth request for a part, it is read with direct I/O and not cached. Files that are
    /// longer than an eighth of the memory always are.
    #[arg(long, value_name = "N", default_value_t = 3, hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    promote_after: u32,
    /// Number of threads that read from disk
    #[arg(long, value_name = "N", default_value_t = 4, hide_short_help = true)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    disk_threads: usize,
    /// Method of sending files that are read with direct I/O
    #[arg(long, value_name = "METHOD", default_value = "copy", hide_short_help = true)]
    cold: ColdArg,
}

/// Method of sending uncached files.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ColdArg {
    /// Read with direct I/O into large buffers, and copy to the socket
    Copy,
    /// Read with direct I/O into pipes, and splice to the socket
    Splice,
}

impl From<ColdArg> for Cold {
    fn from(arg: ColdArg) -> Self {
        match arg {
            ColdArg::Copy => Self::Copy,
            ColdArg::Splice => Self::Splice,
        }
    }
}

/// Limits for clients.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Maximum number of open connections
    ///
    /// Beyond the limit, a new connection replaces the oldest one that waits for a request, of the
    /// client with the most connections, or waits until one is closed.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    connections: usize,
    /// Maximum number of connections of one client; 0 means no limit [default: half of
    /// --connections]
    ///
    /// A client is an IPv4 address or an IPv6 /64 prefix. A reverse proxy counts as one client.
    /// Beyond the limit, a new connection replaces the oldest one of the client that waits for a
    /// request, or is answered with 503.
    #[arg(long, value_name = "N")]
    connections_per_client: Option<usize>,
    /// Maximum rate of requests of one client, such as 100/s or 30/min [default: unlimited]
    ///
    /// A request above the rate is answered with 429.
    #[arg(long, value_name = "RATE")]
    rate_per_client: Option<Rate>,
    /// Number of requests a client may send at once after a pause [default: those of a second]
    #[arg(long, value_name = "N", requires = "rate_per_client")]
    #[arg(hide_short_help = true, value_parser = parse_positive::<NonZero<u32>>)]
    burst_per_client: Option<NonZero<u32>>,
    /// Maximum time to receive a request head (request line and headers)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    head_time: Duration,
    /// Idle time between requests after which a connection is closed
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    idle_time: Duration,
    /// Minimum bytes per second a client must receive, measured over 30 s, or its connection is closed
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_bytes)]
    #[arg(hide_short_help = true)]
    send_rate_min: u64,
}

/// Options of the access log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct AccessLogArgs {
    /// Log requests to rotated files in DIR, as "haul log" does; "-" logs to stdout
    ///
    /// The last field depends on the server. "haul serve" logs the identifier of the request
    /// (request_id in JSON), which the response has as x-amz-request-id. "haul files" logs the
    /// source of the bytes (tier in JSON): memory, resident (page cache), read (disk, through the
    /// page cache), direct (disk, direct I/O) or uncached (disk, then dropped from the page cache,
    /// because direct I/O was not possible). "haul relay --http" logs the target that received the
    /// request (upstream in JSON). If the disk is too slow or full, lines are dropped and
    /// counted in the log; requests are not delayed. SIGHUP begins a new file.
    #[arg(long, value_name = "DIR")]
    pub(crate) access_log: Option<PathBuf>,
    /// Format of a line of the access log
    #[arg(long, value_name = "FORMAT", default_value = "common")]
    pub(crate) log_format: FormatArg,
    /// Size of a file of the access log at which a new file is begun
    #[arg(long, value_name = "SIZE", default_value = "64MiB", hide_short_help = true)]
    #[arg(value_parser = parse_bytes_from("4KiB"))]
    pub(crate) log_size: u64,
    /// Number of closed files of the access log to keep; older ones are removed
    #[arg(long, value_name = "N", default_value_t = 10, hide_short_help = true)]
    pub(crate) log_keep: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Host, time, request, status and bytes
    Common,
    /// Common, then referer and user agent
    Combined,
    /// A JSON object with the fields of the combined format and the duration; null if missing
    Json,
}

impl FormatArg {
    pub(crate) fn format(self) -> LogFormat {
        match self {
            Self::Common => LogFormat::Common,
            Self::Combined => LogFormat::Combined,
            Self::Json => LogFormat::Json,
        }
    }
}

/// Returns the rate with another burst, if one is given.
pub(super) fn with_burst(rate: Rate, burst: Option<NonZero<u32>>) -> Rate {
    Rate { burst: burst.unwrap_or(rate.burst), ..rate }
}

impl FilesServerArgs {
    /// Returns the configuration of the server, without its log and the address of `--listen`.
    pub(crate) fn config(&self) -> Config {
        let (content, tiers, limits) = (&self.content, &self.tiers, &self.limits);
        let default = Config::new(&self.dir);
        Config {
            admin: self.admin.clone(),
            is_public: self.plain_http,
            hosts: self.host.clone(),
            threads: self.threads.unwrap_or(default.threads),
            content: Content {
                listings: content.listing,
                dotfiles: content.dotfiles,
                precompressed: !content.no_precompressed,
                cache_control: content.cache_control.clone(),
            },
            tiers: Tiers {
                cache_bytes: tiers.cache,
                cache_object_bytes_max: tiers.cache_object_max,
                open_files: tiers.open_files,
                valid: tiers.valid,
                direct_bytes_min: tiers.direct_min,
                promote_asked: tiers.promote_after,
                disk_threads: tiers.disk_threads,
                cold: tiers.cold.into(),
                ..default.tiers
            },
            limits: Limits {
                connections: limits.connections,
                peer_connections: limits.connections_per_client,
                peer_rate: limits
                    .rate_per_client
                    .map(|rate| with_burst(rate, limits.burst_per_client)),
                head_time: limits.head_time,
                idle_time: limits.idle_time,
                send_rate_min: limits.send_rate_min,
                drain_time: self.drain_time,
                ..default.limits
            },
            slow_request_time: Some(self.slow_request).filter(|time| !time.is_zero()),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command};

    #[test]
    fn defaults_of_the_file_server_are_those_of_its_library() {
        let cli = Cli::try_parse_from(["haul", "files", "d"]).unwrap();
        let Command::Files(args) = cli.command else { panic!("not files") };
        let (ours, library) = (args.config(), haul_file_server::Config::new("d"));
        assert_eq!((ours.dir, ours.listen, ours.admin), (library.dir, library.listen, None));
        assert_eq!((ours.content, ours.tiers), (library.content, library.tiers));
        assert_eq!((ours.limits, ours.threads), (library.limits, library.threads));
        assert_eq!(ours.slow_request_time, library.slow_request_time);
        assert!(!ours.is_public);
    }
}
