//! `haul files`: serves a directory over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_file_server::{
    AccessLog, Cold, Config, Error, Lines, Listener, Server, Stats, TcpOptions,
};
use haul_tls::Alpn;
use serde_json::{Map, Value, json};

use crate::args::FilesServerArgs;
use crate::descriptors::{self, DescriptorBudget};
use crate::handover::AdminTakeover;
use crate::inherited;
use crate::listen;
use crate::logs::{ServerLog, SharedLines, access_options};
use crate::ready;
use crate::reload::{Reload, handle_signals};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::signals::{Signal, termination_handler};
use crate::tls::Certificates;

/// Serves until a signal requests a stop.
pub(crate) fn run(args: &FilesServerArgs) -> Result {
    let started = Instant::now();
    let mut config = args.config();
    let notice = descriptors::raise_limit().and_then(|limit| fit(&mut config, limit));
    let lines = Arc::new(SharedLines::default());
    config.access_log = args.log.access_log.is_some().then(|| AccessLog {
        lines: Arc::clone(&lines) as Arc<dyn Lines>,
        format: args.log.log_format.format(),
    });
    let certificates = Certificates::load(&args.tls)?;
    let acceptor = |certificates: &Certificates| certificates.acceptor(Alpn::Http1);
    config.tls = certificates.as_ref().map(acceptor).transpose()?;
    let inherited = inherited::listeners(TcpOptions::default())?;
    // The process that served the socket before may still finish its responses, and log them.
    let may_overlap = !inherited.is_empty();
    let server = bind(config, args, inherited)?;
    // The reason why a server cannot start is printed first.
    notice.iter().for_each(|notice| print_message(notice));
    // The log is opened only after the addresses are bound, so that a failed start creates no log
    // directory.
    let options = access_options(&args.log, "haul files");
    let open = |to| ServerLog::open("access log", to, &options, &lines, may_overlap);
    let log = args.log.access_log.as_deref().map(open).transpose()?;
    let handle = server.handle();
    // The handlers are installed before any client can know that the server runs.
    let end = termination_handler("responses in progress", move |_signal| handle.drain());
    let addresses = server.addresses();
    let handle = server.handle();
    let takeover = AdminTakeover::start_if_taken(
        args.admin.as_ref(),
        addresses.admin.as_ref(),
        move |address| handle.bind_admin(address),
    )?;
    let url = match &certificates {
        None => ready::url(&addresses.listen),
        Some(_) => ready::https_url(&addresses.listen),
    };
    let logs = log.iter().filter_map(ServerLog::files).collect();
    let reload = Reload { certificates, keys: None, logs, events: None };
    handle_signals(&Signal::ENDS, end, reload)?;
    let admin = addresses.admin.as_ref().map(ready::url);
    let mut ready = format!("files on {url}");
    if let Some(admin) = &admin {
        ready += &format!(", admin on {admin}");
    }
    ready::announce(args.json.then(|| json!({ "files": url, "admin": admin })), &ready);
    let handle = server.handle();
    let served = server.run().or_fail(|| "the server failed".to_owned());
    drop(takeover);
    if args.json {
        ready::print_of_kind("closed", closed(&handle.stats(), started.elapsed()));
    }
    served.and(log.map_or(Ok(()), ServerLog::close))
}

/// Returns the statistics of a server at its end as JSON.
fn closed(stats: &Stats, time: Duration) -> Value {
    let responses: Map<_, _> = stats
        .statuses
        .iter()
        .map(|(status, count)| (status.to_string(), (*count).into()))
        .collect();
    json!({
        "seconds": time.as_secs_f64(),
        "responses": responses,
        "sent_bytes": stats.tiers.iter().map(|(_, _, bytes)| bytes).sum::<u64>(),
        "connections": stats.connections,
    })
}

/// Listens on the inherited socket, if there is one, or on the address of the configuration.
fn bind(config: Config, args: &FilesServerArgs, mut inherited: Vec<Listener>) -> Result<Server> {
    let server = match (inherited.pop(), inherited.len()) {
        (None, _) => {
            let listen = args.listen.as_ref().map_or(Ok(config.listen), listen::resolve)?;
            Server::bind(Config { listen, ..config })
        }
        (Some(only), 0) => {
            inherited::report_ignored_listen(args.listen.is_some());
            Server::with_listener(config, only)
        }
        (Some(_last), more) => {
            let count = more + 1;
            let failure = Failure::new(format!("{count} sockets are inherited (LISTEN_FDS)"));
            return Err(failure.advise("pass one socket").exit(Exit::NotStarted));
        }
    };
    server.map_err(not_started)
}

/// Reduces the limits of connections and open files so that they fit into `limit` descriptors.
/// Returns a notice if a limit was reduced.
fn fit(config: &mut Config, limit: u64) -> Option<String> {
    let pipes = match config.tiers.cold {
        Cold::Splice => config.tiers.buffers_max.saturating_mul(2),
        Cold::Copy => 0,
    };
    // Each serving thread has a listener, an epoll queue and an eventfd, rounded up to 8
    // descriptors. Each disk thread opens one or two files, rounded up to 4 descriptors.
    let thread_files = config.threads.saturating_mul(pipes.saturating_add(8));
    let disk_files = config.tiers.disk_threads.saturating_mul(4);
    let admin_files = if config.admin.is_some() { haul_admin_endpoint::CONNECTIONS_MAX } else { 0 };
    let wanted = DescriptorBudget {
        connections: config.limits.connections,
        open_files: config.tiers.open_files,
        reserve: thread_files
            .saturating_add(disk_files)
            .saturating_add(admin_files)
            .saturating_add(64),
    };
    let fitted = wanted.limited_to(limit);
    let DescriptorBudget { connections, open_files, .. } = fitted;
    config.limits.connections = connections;
    config.tiers.open_files = open_files;
    (fitted != wanted).then(|| {
        format!(
            "limit of {limit} open files (ulimit -Hn): accepting at most {connections} \
             connections, keeping {open_files} files open"
        )
    })
}

fn not_started(error: Error) -> Failure {
    let failure = Failure::new("cannot start the server");
    match error {
        Error::Public { .. } => {
            failure.exit(Exit::NotStarted).advise("use --tls-cert and --tls-key, or --plain-http")
        }
        Error::Invalid(_) => failure.exit(Exit::Usage),
        _ => failure.exit(Exit::NotStarted),
    }
    .because(error)
}
