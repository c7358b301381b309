//! `haul serve`: serves a store over S3.

mod backend;
mod providers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{KernelFiles, keep_little_free_memory};
use haul_s3_server::{
    AccessLog, AuditLog, Config, Error, Inherited, Listener, Listening, Logs, ServedStore, Server,
};
use haul_tls::Alpn;
use serde_json::json;
use tokio::runtime;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::descriptors;
use crate::event_targets;
use crate::handover::Predecessor;
use crate::inherited;
use crate::listen;
use crate::logs::{Log, access_options, audit_options};
use crate::open_store;
use crate::ready;
use crate::reload::{Reload, handle_signals};
use crate::remote::{Copy, standby};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::secrets::live_keys::LiveKeys;
use crate::secrets::{credentials, encryption_keys};
use crate::signals::{Signal, exit_after, termination_handler};
use crate::tls::Certificates;

use backend::{Backend, Opening};

/// The number of descriptors reserved for everything except connections, such as the files of the
/// store.
const RESERVE: usize = 256;

/// The time to wait for the previous server if sockets are inherited.
const TAKEOVER_TIME: Duration = Duration::from_secs(60);

/// The memory that is assumed if the system does not tell.
const MEMORY_BYTES_UNKNOWN: u64 = 1 << 30;

/// With less memory, the allocator returns what is freed to the system sooner.
const MEMORY_BYTES_AMPLE: u64 = 1 << 30;

/// The least time to close the store after requests have ended. A disk that does not answer must not
/// keep the process from ending.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// Returns the length of the memory. With little of it, freed memory is returned to the kernel.
fn find_memory() -> u64 {
    let memory_bytes = KernelFiles::default().machine().memory_bytes();
    let memory_bytes = memory_bytes.unwrap_or(MEMORY_BYTES_UNKNOWN);
    if memory_bytes < MEMORY_BYTES_AMPLE {
        keep_little_free_memory();
    }
    memory_bytes
}

/// Serves until a signal requests a stop.
///
/// The keys, the configuration, both addresses, the options of the store and the logs are
/// checked before the store is opened, so that a failed start does not create a store.
pub(crate) fn run(args: &ServeArgs) -> Result {
    let memory_bytes = find_memory();
    open_store::check(&args.open)?;
    if let Some(option) = args.replication.single_option() {
        args.open.single_dir(option)?;
    }
    let copy = Copy::of(&args.replication)?;
    let certificates = Certificates::load(&args.tls)?;
    let keys = args.key_file().map(|(keys, seal)| LiveKeys::load(keys, seal)).transpose()?;
    let encryption = args.encryption_key.as_deref().map(encryption_keys::load).transpose()?;
    let events = event_targets::for_server(args)?;
    let acceptor = |certificates: &Certificates| certificates.acceptor(Alpn::Http1);
    let mut config = Config {
        listen: listen::resolve_tcp(&args.listen)?,
        admin: listen::resolve_tcp(&args.admin)?,
        website: args.website.as_ref().map(listen::resolve_tcp).transpose()?,
        website_domains: args.website_domains.clone(),
        credentials: credentials::load(args.credentials.as_deref())?,
        keys: keys.as_ref().map(LiveKeys::ring),
        key_file: keys.as_ref().map(LiveKeys::file),
        providers: args.oidc.as_deref().map(providers::load).transpose()?,
        encryption: encryption.map(Arc::new),
        events: events.clone(),
        tls: certificates.as_ref().map(acceptor).transpose()?,
        is_plain_http_allowed: args.plain_http,
        is_read_only: args.replication.read_only,
        domains: args.domains.clone(),
        limits: args.limits(memory_bytes),
    };
    let notice = descriptors::raise_limit().and_then(|limit| fit(&mut config, limit));
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_fail(|| "cannot start the threads of the server".to_owned())
        .map_err(|failure| failure.exit(Exit::NotStarted))?;
    let inherited = inherited::listeners(config.limits.tcp_options())?;
    check_website(args, &inherited)?;
    let default_time = if inherited.is_empty() { Duration::ZERO } else { TAKEOVER_TIME };
    let predecessor = Predecessor::new(args.takeover_time.unwrap_or(default_time));
    let mut listening = bind(&config, &inherited, &predecessor)?;
    // The reason why a server cannot start is printed first.
    notice.iter().for_each(|notice| print_message(notice));
    let takeover = match standby::run(copy.as_ref(), args, &mut listening, &runtime)? {
        standby::End::Stopped => return Ok(()),
        standby::End::TakenOver(takeover) => Some(takeover),
        standby::End::IsStore => None,
    };
    let [access, audit] = open_logs(args, &predecessor)?;
    let format = args.log.log_format.format();
    let audit_log = audit.as_ref().map(|log| AuditLog::new(log.lines()));
    let observer = audit_log.as_ref().map(AuditLog::lifecycle_observer);
    let listening = listening.with_logs(Logs {
        access: access.as_ref().map(|log| AccessLog { lines: log.lines(), format }),
        audit: audit_log,
    });
    let logs: Vec<Log> = access.into_iter().chain(audit).collect();
    let log_files = logs.iter().filter_map(Log::files).collect();
    let reload = Reload { certificates, keys, logs: log_files, events: events.clone() };
    let holder = format!("haul serve on {}", listening.addresses().listen_url());
    let observer = observer.unwrap_or_default();
    let predecessor = &predecessor;
    let opening =
        Opening { holder, takeover, observer, events: events.clone(), predecessor, memory_bytes };
    let mut backend = Backend::open(args, copy, opening)?;
    let served = runtime.block_on(serve(listening, backend.served(), reload, args));
    // Dropping the runtime waits for store calls in progress.
    drop(runtime);
    backend.stop_copying();
    // Before the store: a process that waits for the store then finds the logs closed.
    let logged = logs.into_iter().map(Log::close).fold(Ok(()), Result::and);
    served.and(backend.close()).and(logged)
}

/// Opens the access log and the audit log.
fn open_logs(args: &ServeArgs, predecessor: &Predecessor) -> Result<[Option<Log>; 2]> {
    let holder = "haul serve";
    let access = args.log.access_log.as_deref();
    let open = |to| Log::open("access log", to, &access_options(&args.log, holder), predecessor);
    let access = access.map(open).transpose()?;
    let open = |to| Log::open("audit log", to, &audit_options(&args.log, holder), predecessor);
    Ok([access, args.audit_log.as_deref().map(open).transpose()?])
}

/// Fails if domains of websites are given and no address that serves websites.
fn check_website(args: &ServeArgs, inherited: &[Listener]) -> Result {
    let has_address = args.website.is_some() || inherited.len() > 2;
    if args.website_domains.is_empty() || has_address {
        return Ok(());
    }
    let failure = Failure::new("--website-domain has no effect without --website");
    Err(failure.advise("add --website ADDRESS, which serves the websites").exit(Exit::Usage))
}

/// Takes the addresses, or the inherited sockets in their place.
fn bind(config: &Config, inherited: &[Listener], predecessor: &Predecessor) -> Result<Listening> {
    if inherited.len() > 3 {
        let failure =
            Failure::new(format!("{} sockets are inherited (LISTEN_FDS)", inherited.len()));
        let failure = failure.advise("pass one each for S3, the admin page and websites");
        return Err(failure.exit(Exit::NotStarted));
    }
    let is_in_use = |error: &Error| match error {
        Error::Bind { source, .. } => source.kind() == io::ErrorKind::AddrInUse,
        _ => false,
    };
    let socket = |index: usize| inherited.get(index).map(Listener::another).transpose();
    let bind = || {
        let start = |source| Error::Start { source };
        let (listen, admin) = (socket(0).map_err(start)?, socket(1).map_err(start)?);
        let website = socket(2).map_err(start)?;
        Listening::with_inherited(config.clone(), Inherited { listen, admin, website })
    };
    predecessor.retry(is_in_use, bind).map_err(not_started)
}

/// Reduces the limit of connections to the available descriptors. Three descriptors are counted per
/// S3 connection: its socket, a file of the store, and the socket of an admin connection, and a
/// fourth one for that of a connection to a website, because each address has the same limit of
/// connections. Returns a notice if the limit was reduced.
fn fit(config: &mut Config, descriptors: u64) -> Option<String> {
    let each = if config.website.is_some() { 4 } else { 3 };
    let limits = &mut config.limits;
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let most = (descriptors.saturating_sub(RESERVE) / each).max(1);
    if most >= limits.connections_max {
        return None;
    }
    limits.connections_max = most;
    limits.peer_connections_max = limits.peer_connections_max.min(most.div_ceil(2));
    Some(format!(
        "limit of {descriptors} open files (ulimit -Hn): accepting at most {most} connections"
    ))
}

fn not_started(error: Error) -> Failure {
    let failure = Failure::new("cannot start the server").exit(Exit::NotStarted);
    let failure = match error {
        Error::PlainHttp { .. } => failure.advise("use --tls-cert and --tls-key, or --plain-http"),
        _ => failure,
    };
    failure.because(error)
}

async fn serve(
    listening: Listening,
    store: Arc<ServedStore>,
    reload: Reload,
    args: &ServeArgs,
) -> Result {
    let is_json = args.json;
    // The handlers are installed before any client can know that the server runs.
    let (sender, stop) = oneshot::channel();
    let end_by = args.drain_time + CLOSE_TIME.max(args.drain_time);
    let stop_server = move |_signal| {
        exit_after(end_by);
        // If the server has failed, the receiver is gone, and the error is ignored.
        sender.send(()).unwrap_or_default();
    };
    let end = termination_handler("requests in flight", stop_server);
    handle_signals(&Signal::ENDS, end, reload)?;
    let server = Server::serving(listening, store).map_err(not_started)?;
    let addresses = server.addresses();
    let (listen, admin) = (addresses.listen_url(), addresses.admin_url());
    let mut text = format!("S3 on {listen}, admin on {admin}");
    let mut ready = json!({ "s3": listen, "admin": admin });
    if let Some(website) = addresses.website_url() {
        text += &format!(", websites on {website}");
        ready["website"] = website.into();
    }
    ready::announce(is_json.then_some(ready), &text);
    let stop = async { stop.await.unwrap_or_default() };
    let counts = server.counts();
    let served = server.run(stop).await.or_fail(|| "the server failed".to_owned());
    if is_json {
        ready::print_of_kind("closed", counts.json());
    }
    served
}
