//! `haul files`.

mod stdout_lines;

use std::path::Path;
use std::sync::Arc;

use haul_file_server::{AccessLog, Cold, Config, Error, Lines, Server};
use haul_line_log::{Keep, LineLog, Options, Outside, WhenFull};

use crate::args::{AccessLogArgs, FilesServerArgs};
use crate::descriptors::{self, Wanted};
use crate::ready;
use crate::report::{Exit, Failure, OrFail, Result, say};
use crate::signals::on_end;
use stdout_lines::StdoutLines;

/// Serves until a signal asks to stop.
pub(crate) fn run(args: &FilesServerArgs) -> Result {
    let descriptors = descriptors::raise_limit();
    let log = args.log.access_log.as_deref().map(|to| Log::open(to, &args.log)).transpose()?;
    let mut config = args.config();
    if let Some(limit) = descriptors {
        fit(&mut config, limit);
    }
    config.access_log = log
        .as_ref()
        .map(|log| AccessLog { lines: log.lines(), format: args.log.log_format.format() });
    let server = Server::bind(config).map_err(not_started)?;
    let handle = server.handle();
    // Caught before anybody can know that it runs.
    on_end("the answers under way", move |_signal| handle.drain())?;
    let addresses = server.addresses();
    let mut ready = format!("files on {}", ready::url(&addresses.listen));
    if let Some(admin) = &addresses.admin {
        ready += &format!(", admin on {}", ready::url(admin));
    }
    ready::tell(&ready);
    let served = server.run().or_fail(|| "the server failed".to_owned());
    served.and(log.map_or(Ok(()), Log::close))
}

/// Takes no more connections, and keeps no more files open, than there are descriptors for.
fn fit(config: &mut Config, limit: u64) {
    let pipes = match config.tiers.cold {
        Cold::Splice => config.tiers.carriers_max.saturating_mul(2),
        Cold::Copy => 0,
    };
    // Each thread has a listener, its queue and its wake-up; those that wait open a file or two.
    let of_threads = config.threads.saturating_mul(pipes.saturating_add(8));
    let of_disks = config.tiers.disk_threads.saturating_mul(4);
    let of_admin = if config.admin.is_some() { haul_admin_endpoint::CONNECTIONS_MAX } else { 0 };
    let wanted = Wanted {
        connections: config.limits.connections,
        open_files: config.tiers.open_files,
        reserve: of_threads.saturating_add(of_disks).saturating_add(of_admin).saturating_add(64),
    };
    let fitted = wanted.fitted(limit);
    if fitted != wanted {
        let Wanted { connections, open_files, .. } = fitted;
        say(&format!(
            "this process may open {limit} files (ulimit -Hn): it takes {connections} connections \
             at once, and keeps {open_files} files open"
        ));
    }
    config.limits.connections = fitted.connections;
    config.tiers.open_files = fitted.open_files;
}

fn not_started(error: Error) -> Failure {
    let failure = Failure::new("cannot start the server");
    match error {
        Error::Public { .. } => failure
            .exit(Exit::NotStarted)
            .advise("--public allows it; 127.0.0.1 and [::1] need no permission"),
        Error::Invalid(_) => failure.exit(Exit::Usage),
        _ => failure.exit(Exit::NotStarted),
    }
    .because(error)
}

/// Where lines of the access log go.
enum Log {
    Files(Arc<LineLog>),
    Stdout(Arc<StdoutLines>),
}

impl Log {
    fn open(to: &Path, args: &AccessLogArgs) -> Result<Self> {
        if to == Path::new("-") {
            let lines = StdoutLines::start();
            return lines
                .map(|lines| Self::Stdout(Arc::new(lines)))
                .or_fail(|| "cannot start a thread for the access log".to_owned());
        }
        let options = Options {
            // Requests do not wait for a disk that is full.
            when_full: WhenFull::DropNewest,
            keep: Keep { files_max: Some(args.log_keep), ..Keep::default() },
            file_bytes_max: Some(args.log_size),
            holder: format!("haul files, process {}", std::process::id()),
            ..Options::default()
        };
        let log = LineLog::open(to, options, Outside::default()).map_err(|error| {
            Failure::new(format!("cannot log to {}", to.display()))
                .because(error)
                .exit(Exit::NotStarted)
        })?;
        Ok(Self::Files(Arc::new(log)))
    }

    fn lines(&self) -> Arc<dyn Lines> {
        match self {
            Self::Files(log) => Arc::clone(log) as Arc<dyn Lines>,
            Self::Stdout(lines) => Arc::clone(lines) as Arc<dyn Lines>,
        }
    }

    fn close(self) -> Result {
        match self {
            Self::Files(log) => log.close().or_fail(|| "the access log is not complete".to_owned()),
            Self::Stdout(lines) => lines.close(),
        }
    }
}
