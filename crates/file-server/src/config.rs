//! The choices a server leaves to its owner.

use std::path::PathBuf;
use std::time::Duration;

use haul_reactor::Address;

use crate::access_log::AccessLog;
use crate::error::{Error, Result};

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// The directory whose files are served.
    pub dir: PathBuf,
    /// Where clients connect. `127.0.0.1:8080`.
    pub listen: Address,
    /// Where metrics and health are told, if anywhere; give it no address of others. None.
    pub admin: Option<Address>,
    /// Addresses that others can reach are allowed. No.
    pub is_public: bool,
    /// On an address of this machine itself, requests are answered that name localhost or an
    /// address as their host, and these: a page from elsewhere could have its own name lead here.
    /// None.
    pub hosts: Vec<String>,
    /// How many threads serve, each with a listener of its own. As many as there are cores.
    pub threads: usize,
    /// What they are called. `files`.
    pub thread_name: String,
    /// What is told about files.
    pub content: Content,
    /// What is kept in memory, and what is read past it.
    pub tiers: Tiers,
    /// What a client may do.
    pub limits: Limits,
    /// A line for each request. None.
    pub access_log: Option<AccessLog>,
}

/// What is told about files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Directories without an index are listed. No.
    pub listings: bool,
    /// Names that begin with a dot are served; otherwise only `/.well-known` is. No.
    pub dotfiles: bool,
    /// Beside `a`, the files `a.br`, `a.zst` and `a.gz` are encoded forms of it. Yes.
    pub precompressed: bool,
    /// What is said about how long an answer stays right. Nothing.
    pub cache_control: Option<String>,
}

impl Default for Content {
    fn default() -> Self {
        Self { listings: false, dotfiles: false, precompressed: true, cache_control: None }
    }
}

/// What is kept in memory, and what is read past it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// The application's cache. 256 MiB; 0 for none.
    pub cache_bytes: u64,
    /// The longest file in it. 64 KiB.
    pub cache_object_bytes_max: u64,
    /// How many other files are kept open. 1,024.
    pub open_files: usize,
    /// How long it is believed that a file is what it was. 1 s; 0 has each request look.
    pub valid: Duration,
    /// Shorter files are always read by way of the page cache. 1 MiB.
    pub direct_bytes_min: u64,
    /// What is asked for this often lately is let into the page cache. 3.
    pub promote_asked: u32,
    /// Longer files never are. An eighth of the memory.
    pub promote_bytes_max: Option<u64>,
    /// How many threads read what is not in memory. 4.
    pub disk_threads: usize,
    /// How many look-ups and small reads may wait for them; a request beyond that is answered with
    /// 503. 4,096.
    pub disk_queue_max: usize,
    /// How what is not in memory gets to the client. By copying.
    pub cold: Cold,
    /// How many buffers of 2 MiB, or pipes of 1 MiB, there may be for each thread that serves; a
    /// download from the disk takes one or two, a slow one one. 64.
    pub carriers_max: usize,
}

impl Default for Tiers {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            cache_object_bytes_max: 64 << 10,
            open_files: 1024,
            valid: Duration::from_secs(1),
            direct_bytes_min: 1 << 20,
            promote_asked: 3,
            promote_bytes_max: None,
            disk_threads: 4,
            disk_queue_max: 4096,
            cold: Cold::default(),
            carriers_max: 64,
        }
    }
}

/// How what is not in memory gets from the disk to the client; past the page cache, either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cold {
    /// Read into a buffer in huge pages, and copied to the socket once.
    #[default]
    Copy,
    /// Read into a pipe and spliced to the socket: no copy, but memory in small pages, each of
    /// which is allocated, handed to the disk, sent and freed by itself. On the machines we
    /// measured that takes a quarter more processor time than the copy, and up to twice as much.
    Splice,
}

/// What a client may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all threads together. 10,000.
    pub connections: usize,
    /// Requests of one connection. 100,000.
    pub requests: u32,
    /// How long the head of a request may take to come. 10 s.
    pub head_time: Duration,
    /// How long a connection may say nothing between requests. 60 s.
    pub idle_time: Duration,
    /// How often it is looked whether a client takes what it asked for. 30 s.
    pub send_time: Duration,
    /// The least it must take in that time, for each second of it. 1 KiB.
    pub send_rate_min: u64,
    /// How long answers may take to be finished once the server is told to stop. 30 s.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 10_000,
            requests: 100_000,
            head_time: seconds(10),
            idle_time: seconds(60),
            send_time: seconds(30),
            send_rate_min: 1 << 10,
            drain_time: seconds(30),
        }
    }
}

impl Config {
    /// A server of the files in `dir`, with the defaults told at each field.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            listen: Address::Tcp(([127, 0, 0, 1], 8080).into()),
            admin: None,
            is_public: false,
            hosts: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            thread_name: "files".to_owned(),
            content: Content::default(),
            tiers: Tiers::default(),
            limits: Limits::default(),
            access_log: None,
        }
    }

    /// Refuses what cannot work, and what would show files to others without being asked to.
    pub(crate) fn check(&self) -> Result<()> {
        for address in [Some(&self.listen), self.admin.as_ref()].into_iter().flatten() {
            if !self.is_public && !is_ours(address) {
                return Err(Error::Public { address: address.to_string() });
            }
        }
        let cache_control = self.content.cache_control.as_deref().unwrap_or_default();
        let is_text = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
        let tiers = &self.tiers;
        let right = [
            (cache_control.bytes().all(is_text), "what Cache-Control says must be plain text"),
            ((1..=1024).contains(&self.threads), "threads must lie between 1 and 1,024"),
            (tiers.cache_object_bytes_max <= 16 << 20, "an object of the cache is 16 MiB at most"),
            ((1..=1024).contains(&tiers.disk_threads), "disk threads must lie between 1 and 1,024"),
            (tiers.disk_queue_max >= 1, "the disk queue needs room for one"),
            (tiers.promote_asked >= 1, "nothing is promoted before it was asked for once"),
            (self.limits.connections >= 1, "a server needs at least one connection"),
            (self.limits.requests >= 1, "a connection needs at least one request"),
        ];
        match right.into_iter().find(|(is_right, _)| !is_right) {
            Some((_, why)) => Err(Error::Invalid(why)),
            None => Ok(()),
        }
    }
}

/// Whether only this machine can reach it.
fn is_ours(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_let_in_only_when_that_is_said() {
        let with = |listen: &str, admin: Option<&str>, is_public| {
            let mut config = Config::new(".");
            config.listen = listen.parse().unwrap();
            config.admin = admin.map(|admin| admin.parse().unwrap());
            config.is_public = is_public;
            config.check().is_ok()
        };
        for listen in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:0", "[::ffff:127.0.0.1]:0", "unix:/x"]
        {
            assert!(with(listen, None, false), "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            assert!(!with(listen, None, false) && with(listen, None, true), "{listen}");
            assert!(!with("127.0.0.1:0", Some(listen), false), "admin {listen}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        type Change = fn(&mut Config);
        let wrong: &[(&str, Change)] = &[
            ("Cache-Control", |c| c.content.cache_control = Some("a\r\nX: y".to_owned())),
            ("threads", |c| c.threads = 0),
            ("disk threads", |c| c.tiers.disk_threads = 0),
            ("disk queue", |c| c.tiers.disk_queue_max = 0),
            ("16 MiB", |c| c.tiers.cache_object_bytes_max = 1 << 30),
            ("promoted", |c| c.tiers.promote_asked = 0),
            ("one connection", |c| c.limits.connections = 0),
            ("one request", |c| c.limits.requests = 0),
        ];
        for (name, change) in wrong {
            let mut config = Config::new(".");
            config.check().unwrap();
            change(&mut config);
            let refused = config.check();
            assert!(matches!(refused, Err(Error::Invalid(why)) if why.contains(name)), "{name}");
        }
    }
}
