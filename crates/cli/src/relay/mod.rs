//! `haul relay`: relays TCP and unix-socket connections to targets.

mod report;

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use haul_tcp_relay::{AccessLog, Address, Config, Error, Handle, Lines, Listener, Server};
use haul_tls::Alpn;
use serde_json::json;

use crate::args::RelayArgs;
use crate::descriptors;
use crate::handover::AdminTakeover;
use crate::inherited;
use crate::listen;
use crate::logs::{ServerLog, SharedLines, access_options};
use crate::ready;
use crate::reload::{Reload, handle_signals};
use crate::report::{Exit, Failure, OrFail, Result, try_print_message};
use crate::signals::{Signal, termination_handler};
use crate::tls::Certificates;

/// Relays until a signal requests a stop, then prints statistics.
pub(crate) fn run(args: &RelayArgs) -> Result {
    descriptors::raise_limit();
    let certificates = Certificates::load(&args.tls)?;
    let mut config = args.config();
    let alpn = if config.http.is_some() { Alpn::Http1 } else { Alpn::None };
    let acceptor = |certificates: &Certificates| certificates.acceptor(alpn);
    config.tls = certificates.as_ref().map(acceptor).transpose()?;
    let lines = Arc::new(SharedLines::default());
    config.access_log = args.log.access_log.is_some().then(|| AccessLog {
        lines: Arc::clone(&lines) as Arc<dyn Lines>,
        format: args.log.log_format.format(),
    });
    let inherited = inherited::listeners(config.tcp)?;
    // The process that served the sockets before may still finish its responses, and log them.
    let may_overlap = !inherited.is_empty();
    let server = bind(config, args, inherited)?;
    // The log is opened only after the addresses are bound, so that a failed start creates no log
    // directory.
    let options = access_options(&args.log, "haul relay");
    let open = |to| ServerLog::open("access log", to, &options, &lines, may_overlap);
    let log = args.log.access_log.as_deref().map(open).transpose()?;
    let logs = log.iter().filter_map(ServerLog::files).collect();
    let reload = Reload { certificates, keys: None, logs, events: None };
    // The handlers are installed before any client can know that the relay runs.
    catch_signals(server.handle(), reload)?;
    let addresses = server.addresses();
    let handle = server.handle();
    let takeover = AdminTakeover::start_if_taken(
        args.admin.as_ref(),
        addresses.admin.as_ref(),
        move |address| handle.bind_admin(address),
    )?;
    announce(args, &addresses.listen, addresses.admin.as_ref());
    let ended = server.run().or_fail(|| "the relay failed".to_owned());
    drop(takeover);
    let logged = log.map_or(Ok(()), ServerLog::close);
    let stats = ended?;
    if args.json {
        ready::print_of_kind("closed", report::json(&stats));
    } else {
        io::stdout().write_all(report::text(&stats).as_bytes()).ok();
    }
    logged
}

/// Prints the addresses and the targets.
fn announce(args: &RelayArgs, listen: &[Address], admin: Option<&Address>) {
    let admin = admin.map(ready::url);
    let mut text = format!("{} to {}", list(listen), list(&args.to));
    if let Some(admin) = &admin {
        text += &format!(", admin on {admin}");
    }
    let json = json!({ "listen": texts(listen), "to": texts(&args.to), "admin": admin });
    ready::announce(args.json.then_some(json), &text);
}

/// Returns the addresses, separated by commas.
fn list(addresses: &[impl Display]) -> String {
    texts(addresses).join(", ")
}

fn texts(addresses: &[impl Display]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// Listens on the inherited sockets, if there are any, or on the addresses of `--listen`.
fn bind(config: Config, args: &RelayArgs, inherited: Vec<Listener>) -> Result<Server> {
    let server = match (inherited.is_empty(), args.listen.is_empty()) {
        (true, true) => {
            let failure = Failure::new("no address to listen on is given");
            return Err(failure.advise("use --listen ADDRESS").exit(Exit::Usage));
        }
        (true, false) => {
            let listen = args.listen.iter().map(listen::resolve).collect::<Result<_>>()?;
            Server::bind(Config { listen, ..config })
        }
        (false, is_not_given) => {
            inherited::report_ignored_listen(!is_not_given);
            Server::with_listeners(config, inherited)
        }
    };
    server.map_err(|error| {
        let failure = Failure::new("cannot start the relay").exit(Exit::NotStarted);
        let failure = match error {
            Error::PlainHttp { .. } => {
                failure.advise("use --tls-cert and --tls-key, or --plain-http")
            }
            Error::Invalid(_) => failure.exit(Exit::Usage),
            _ => failure,
        };
        failure.because(error)
    })
}

/// Installs signal handlers: SIGUSR1 prints statistics; SIGINT and SIGTERM stop the relay; SIGHUP
/// reloads the certificates and begins a new file of the log, if there are any.
fn catch_signals(relay: Handle, reload: Reload) -> Result {
    let drained = relay.clone();
    let mut end = termination_handler("open connections", move |_signal| drained.drain());
    let act = move |signal| match signal {
        Signal::User => try_print_message(report::text(&relay.stats()).trim_end()),
        _ => end(signal),
    };
    handle_signals(&[Signal::Interrupt, Signal::Terminate, Signal::User], act, reload)
}
