//! The part of the table for `haul files`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haul_file_server::{Address, Cold, Config, Content, Limits, LogFormat, Tiers};

use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct FilesServerArgs {
    /// The directory whose files are served
    pub(crate) dir: PathBuf,
    /// The address: 127.0.0.1:8080, `[::1]:8080` or unix:/run/files; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", help_heading = "Server")]
    pub(crate) listen: Address,
    /// An address for /metrics and /health; without it there is none
    #[arg(long, value_name = "ADDRESS", help_heading = "Server")]
    pub(crate) admin: Option<Address>,
    /// Allow addresses that others can reach
    ///
    /// Whoever can connect gets every file below DIR that this program may read. Without this, only
    /// addresses of this machine itself (127.0.0.1, `[::1]`) and unix sockets are accepted.
    #[arg(long, help_heading = "Server")]
    pub(crate) public: bool,
    /// A host name that requests may be for; it can be given several times
    ///
    /// Unless it is --public, the server answers only to localhost and to addresses: a page from
    /// elsewhere could have its own name lead to this machine, and so read files with a browser
    /// here. Behind a proxy that passes on the name it was asked by, name it.
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) host: Vec<String>,
    /// How many threads serve; as many as there are cores unless told
    #[arg(long, value_name = "N", help_heading = "Server")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// How long answers may take to be finished once the server is told to stop
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(default_value = "30s", value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    tiers: TierArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    pub(crate) log: AccessLogArgs,
}

/// What is told about files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
struct ContentArgs {
    /// List directories that have no index.html, as pages or as JSON
    #[arg(long)]
    listing: bool,
    /// Serve names that begin with a dot; otherwise only /.well-known is
    #[arg(long)]
    dotfiles: bool,
    /// Take NAME.br, NAME.zst and NAME.gz for files like others, not for encoded forms of NAME
    #[arg(long)]
    no_precompressed: bool,
    /// What to say about how long an answer stays right, such as "public, max-age=3600"
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
}

/// What is kept in memory, and what is read past it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory and disk")]
struct TierArgs {
    /// The memory for small files that are asked for often; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    cache: u64,
    /// The longest file in it
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = parse_bytes)]
    cache_object_max: u64,
    /// How many other files are kept open
    #[arg(long, value_name = "N", default_value_t = 1024, hide_short_help = true)]
    open_files: usize,
    /// How long it is believed that a file is what it was; 0s has each request look
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    valid: Duration,
    /// From which length on a file that is not in memory is read past the page cache
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_bytes)]
    direct_min: u64,
    /// What was asked for this often lately is let into the page cache all the same
    #[arg(long, value_name = "N", default_value_t = 3, hide_short_help = true)]
    promote_after: u32,
    /// The longest file that is; an eighth of the memory unless told
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, hide_short_help = true)]
    promote_max: Option<u64>,
    /// How many threads read what is not in memory
    #[arg(long, value_name = "N", default_value_t = 4, hide_short_help = true)]
    disk_threads: usize,
    /// How many look-ups and small reads may wait for them; a request beyond that is answered with 503
    #[arg(long, value_name = "N", default_value_t = 4096, hide_short_help = true)]
    disk_queue: usize,
    /// How what is not in memory gets to the client
    #[arg(long, value_name = "WAY", default_value = "copy", hide_short_help = true)]
    cold: ColdArg,
    /// How many buffers of 2 MiB, or pipes of 1 MiB, each serving thread may have; a download from
    /// disk takes one or two
    #[arg(long, value_name = "N", default_value_t = 64, hide_short_help = true)]
    carriers: usize,
}

/// How what is not in memory gets to the client.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ColdArg {
    /// Read past the page cache into large buffers, and copied to the socket
    Copy,
    /// Read past the page cache into pipes, and spliced to the socket
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

/// What a client may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// How many connections there may be; more wait
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    connections: usize,
    /// How many requests a connection may make
    #[arg(long, value_name = "N", default_value_t = 100_000, hide_short_help = true)]
    requests: u32,
    /// How long the head of a request may take to come
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    head_time: Duration,
    /// How long a connection may say nothing between requests
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    idle_time: Duration,
    /// How often it is looked whether a client takes what it asked for
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    send_time: Duration,
    /// The least it must take in that time, for each second of it
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_bytes)]
    #[arg(hide_short_help = true)]
    send_rate_min: u64,
}

/// What is told about requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access log")]
pub(crate) struct AccessLogArgs {
    /// Write a line for each request into rotated files in DIR, as "haul log" does, or with - to
    /// stdout
    ///
    /// After the fields of the format stands where the bytes came from: memory, resident (the page
    /// cache), read (a disk, by way of the page cache), direct (a disk, past it) or uncached. A disk
    /// that is too slow, or full, costs lines, not requests; the log says how many.
    #[arg(long, value_name = "DIR")]
    pub(crate) access_log: Option<PathBuf>,
    /// What a line tells
    #[arg(long, value_name = "FORMAT", default_value = "common")]
    pub(crate) log_format: FormatArg,
    /// How long a file of the log gets before the next one is begun
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    #[arg(hide_short_help = true)]
    pub(crate) log_size: u64,
    /// How many closed files of the log are kept
    #[arg(long, value_name = "N", default_value_t = 10, hide_short_help = true)]
    pub(crate) log_keep: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Host, time, request, status and bytes
    Common,
    /// The same, then referer and user agent
    Combined,
}

impl FormatArg {
    pub(crate) fn format(self) -> LogFormat {
        match self {
            Self::Common => LogFormat::Common,
            Self::Combined => LogFormat::Combined,
        }
    }
}

impl FilesServerArgs {
    /// The configuration of the library, without its log.
    pub(crate) fn config(&self) -> Config {
        let (content, tiers, limits) = (&self.content, &self.tiers, &self.limits);
        let default = Config::new(&self.dir);
        Config {
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            is_public: self.public,
            hosts: self.host.clone(),
            threads: self.threads.map_or(default.threads, NonZero::get),
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
                promote_bytes_max: tiers.promote_max,
                disk_threads: tiers.disk_threads,
                disk_queue_max: tiers.disk_queue,
                cold: tiers.cold.into(),
                carriers_max: tiers.carriers,
            },
            limits: Limits {
                connections: limits.connections,
                requests: limits.requests,
                head_time: limits.head_time,
                idle_time: limits.idle_time,
                send_time: limits.send_time,
                send_rate_min: limits.send_rate_min,
                drain_time: self.drain_time,
            },
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
        assert!(!ours.is_public);
    }
}
