//! Compares relays: `haul relay`, haproxy, nginx, Go's `io.Copy`, and tokio.
//!
//! wrk requests files from `haul files` through each relay: long ones (bulk), short ones on
//! persistent connections (messages) or with a connection each, and through relays that parse HTTP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::benchmark::Benchmark;
use crate::named::named;
use crate::net::bench::{Bench, Case, Rival};
use crate::net::nginx::{NGINX, http_relay, stream_relay};
use crate::net::programs::{HAUL, Program};
use crate::net::sample::{CORE, CPU, CPU_PER_GB, DESCRIPTORS, Figure, RATE, Sample, short};
use crate::net::server::{Server, Start};
use crate::net::site::Files;
use crate::net::{files_command, haul_command};
use crate::options::{NetOptions, count, size_in};
use crate::report::Report;
use haul_measure::{Error, Result, Watcher};

/// Options of `haul bench relay`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// The options of every benchmark of servers.
    #[command(flatten)]
    pub net: NetOptions,
    /// Parts to measure: bulk, messages, connections, http, idle
    ///
    /// bulk: CPU time per GB of responses of 16 MiB. messages: CPU time per request on 8 persistent
    /// connections. connections: CPU time per request with a connection for each. http: CPU time per
    /// request of relays that parse the heads of requests and responses, and forward the bodies.
    /// idle: descriptors that a relay holds for an idle connection.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "bulk,messages,connections,http,idle")]
    pub parts: Vec<Part>,
    /// Path of haul-bench-compare, the program that contains the relay with tokio
    ///
    /// By default it is searched for beside haul-bench and in PATH.
    #[arg(long, value_name = "PROGRAM")]
    pub compare: Option<PathBuf>,
    /// Numbers of connections in the part bulk; each is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = count(1..=64))]
    pub flows: Vec<usize>,
    /// Lengths of responses in the parts messages, connections and http, 1 B to 16MiB
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "64,16KiB,256KiB,1MiB")]
    #[arg(value_parser = size_in(1..=16 << 20, "a size from 1 B to 16MiB"))]
    pub message_bytes: Vec<u64>,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// Long responses.
        Bulk = "bulk",
        /// Responses of many lengths on persistent connections.
        Messages = "messages",
        /// A connection for each request.
        Connections = "connections",
        /// Relays that parse HTTP.
        Http = "http",
        /// The descriptors of idle connections.
        Idle = "idle",
    }
}

const BULK_BYTES: u64 = 16 << 20;
/// The number of connections of messages, and of short connections at a time.
const CONNECTIONS: usize = 8;
/// The number of files of one length.
const FILES: usize = 8;
/// The number of idle connections, and the length of the file that each receives before, long
/// enough that a relay uses a pipe.
const IDLE_CONNECTIONS: usize = 50;
const IDLE_BYTES: u64 = 1 << 20;
/// The time after which a response without another byte has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The number of equal counts in a row after which descriptors have settled, and of counts at most.
const SETTLED_POLLS: u32 = 10;
const SETTLE_POLLS_MAX: u32 = 200;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

static HAPROXY: Program = Program::new("haproxy", "haproxy", "-v");
static GO: Program = Program::go(include_str!("relay.go"));
static TOKIO: Program = Program::new("tokio", "haul-bench-compare", "--version");

static AUTO: Rival = Rival::new(&HAUL, "haul", "auto", |at| haul(at, &["--move", "auto"]));
static COPY: Rival = Rival::new(&HAUL, "haul_copy", "copy", |at| haul(at, &["--move", "copy"]));
static SPLICE: Rival =
    Rival::new(&HAUL, "haul_splice", "splice", |at| haul(at, &["--move", "splice"]));
static HAUL_HTTP: Rival = Rival::new(&HAUL, "haul_http", "--http", |at| haul(at, &["--http"]));
static HAPROXY_SPLICE: Rival =
    Rival::new(&HAPROXY, "haproxy_splice", "splice-request, -response", |at| {
        haproxy(at, "tcp", SPLICED)
    });
static HAPROXY_COPY: Rival =
    Rival::new(&HAPROXY, "haproxy_copy", "no splice, tune.bufsize 65536", |at| {
        haproxy(at, "tcp", "global\n    tune.bufsize 65536\n")
    });
static HAPROXY_HTTP: Rival =
    Rival::new(&HAPROXY, "haproxy_http", "mode http, splice", |at| haproxy(at, "http", SPLICED));
static NGINX_STREAM: Rival =
    Rival::new(&NGINX, "nginx_stream", "proxy_buffer_size 64k", |at| stream_relay(at, "64k"));
static NGINX_HTTP: Rival = Rival::new(&NGINX, "nginx_http", "proxy_pass", http_relay);
static GO_COPY: Rival = Rival::new(&GO, "go", "io.Copy", |at| {
    let mut command = Command::new(at.program);
    command.args([at.address, at.target].map(|it| it.to_string())).env("GOMAXPROCS", "1");
    Ok(command)
});
static TOKIO_COPY: Rival = Rival::new(&TOKIO, "tokio", "copy_bidirectional, 64 KiB", |at| {
    let mut command = Command::new(at.program);
    command.args(["--relay", "tokio", "--buffer-bytes", "65536"]);
    command.arg("--listen").arg(at.address.to_string()).arg("--to").arg(at.target.to_string());
    Ok(command)
});
static BACKEND: Rival = Rival::new(&HAUL, "backend", "files", |at| Ok(files_command(at)));

static TCP_RIVALS: [&Rival; 8] =
    [&AUTO, &COPY, &SPLICE, &HAPROXY_SPLICE, &HAPROXY_COPY, &NGINX_STREAM, &GO_COPY, &TOKIO_COPY];
static HTTP_RIVALS: [&Rival; 3] = [&HAUL_HTTP, &HAPROXY_HTTP, &NGINX_HTTP];

const SPLICED: &str = "    option splice-request\n    option splice-response\n";

fn haul(at: &Start<'_>, options: &[&str]) -> Result<Command> {
    let mut command = haul_command(at, "relay");
    command.arg("--to").arg(at.target.to_string()).args(["--threads", "1"]).args(options);
    Ok(command)
}

/// Returns the command of haproxy with one thread and as many pipes as connections. With the
/// default, a quarter of `maxconn`, haproxy would copy on the connections without a pipe.
fn haproxy(at: &Start<'_>, mode: &str, lines: &str) -> Result<Command> {
    let Start { address, target, .. } = at;
    let config = format!(
        "global\n    nbthread 1\n    maxconn 2000\n    maxpipes 2000\n    tune.pipesize 262144\n\
         defaults\n    mode {mode}\n    timeout connect 5s\n    timeout client 600s\n    \
         timeout server 600s\n{lines}frontend relay\n    bind {address}\n    \
         default_backend target\nbackend target\n    server target {target}\n"
    );
    let file = at.write("haproxy.cfg", &config)?;
    let mut command = Command::new(at.program);
    command.args(["-db", "-q", "-f"]).arg(file);
    Ok(command)
}

impl Benchmark for Options {
    const NAME: &'static str = "relay";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let rivals = [&TCP_RIVALS[..], &HTTP_RIVALS].concat();
        let mut net = self.net.clone();
        net.programs.extend(self.compare.clone().map(|program| (TOKIO.name, program)));
        let mut bench = Bench::new(Self::NAME, &net, &rivals, watcher)?;
        let site = bench.tools.site.clone();
        let missing = || Error::Missing("haul is the backend, and is not installed".to_owned());
        let program = net.programs.get(HAUL.name).ok_or_else(missing)?;
        let backend = bench.tools.start_on(bench.tools.cores.load, &BACKEND, program)?;
        bench.tools.target = backend.address;
        let wanted = |part: Part| self.parts.contains(&part);
        if wanted(Part::Bulk) {
            let files = &Files::create(&site, "bulk", FILES, BULK_BYTES, watcher)?;
            for connections in self.flows.iter().copied() {
                let (load, key) = (format!("{connections} flows"), format!("bulk_{connections}"));
                let (table, figures, rivals) = ("bulk", &[CPU_PER_GB], &TCP_RIVALS);
                let case = Case { table, load, key, figures, rivals };
                bench.run_files(&case, files, connections, false)?;
            }
        }
        for bytes in self.message_bytes.iter().copied() {
            let name = short(bytes);
            let files = &Files::create(&site, &name, FILES, bytes, watcher)?;
            for part in self.parts.iter().copied() {
                let (table, figures, rivals): (_, &'static [Figure], &[&'static Rival]) = match part
                {
                    Part::Messages => ("messages", &[CPU, RATE], &TCP_RIVALS),
                    Part::Connections => ("connections", &[CPU, CORE], &TCP_RIVALS),
                    Part::Http => ("relays that parse HTTP", &[CPU, RATE], &HTTP_RIVALS),
                    Part::Bulk | Part::Idle => continue,
                };
                let (load, key) = (format!("{part}, {name}"), format!("{part}_{name}"));
                let case = Case { table, load, key, figures, rivals };
                bench.run_files(&case, files, CONNECTIONS, part == Part::Connections)?;
            }
        }
        if wanted(Part::Idle) {
            let files = Files::create(&site, "idle", 1, IDLE_BYTES, watcher)?;
            let (load, key) = ("idle".to_owned(), "idle".to_owned());
            let (table, figures, rivals) = ("idle connections", &[DESCRIPTORS], &TCP_RIVALS);
            bench.run(
                &Case { table, load, key, figures, rivals },
                |tools, one| files.compare(one.server(tools)?.address),
                |tools, one| idle_descriptors(one.server(tools)?),
            )?;
        }
        bench.stop_servers();
        Ok(bench.report)
    }
}

/// Counts the descriptors that a relay holds for each idle connection.
fn idle_descriptors(server: &Server) -> Result<Sample> {
    // Fills the pool of pipes, which belong to no connection.
    drop(transfer(server)?);
    let before = settled_descriptors(server)?;
    let idle = transfer(server)?;
    let more = settled_descriptors(server)? as f64 - before as f64;
    Ok(Sample { descriptors: Some(more / idle.len() as f64), ..Sample::default() })
}

/// Opens connections, each of which receives a file and is idle afterwards.
fn transfer(server: &Server) -> Result<Vec<TcpStream>> {
    let connect = |_| -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(server.address)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.write_all(b"GET /idle/000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        let received = io::copy(&mut (&stream).take(IDLE_BYTES), &mut io::sink())?;
        let is_whole = received == IDLE_BYTES;
        is_whole.then_some(stream).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    };
    let all = (0..IDLE_CONNECTIONS).map(connect).collect::<io::Result<_>>();
    all.map_err(Error::other("transfer a file through a relay"))
}

/// Returns the number of descriptors once it does not change any more: a relay closes those of
/// ended connections, and returns pipes, after a moment.
fn settled_descriptors(server: &Server) -> Result<usize> {
    let (mut last, mut equal) = (server.descriptors()?, 0);
    for _ in 0..SETTLE_POLLS_MAX {
        thread::sleep(POLL_INTERVAL);
        let now = server.descriptors()?;
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
        if equal == SETTLED_POLLS {
            break;
        }
    }
    Ok(last)
}
