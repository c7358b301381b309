//! `haul relay`: relays TCP and unix-socket connections to targets.

mod report;

use std::io::{self, Write};

use haul_tcp_relay::{Handle, Server};

use crate::args::RelayArgs;
use crate::descriptors;
use crate::ready;
use crate::report::{Exit, Failure, OrFail, Result, try_print_message};
use crate::signals::{Signal, handle_signals, termination_handler};

/// Relays until a signal requests a stop, then prints statistics.
pub(crate) fn run(args: &RelayArgs) -> Result {
    descriptors::raise_limit();
    let server = Server::bind(args.config()).map_err(|error| {
        Failure::new("cannot start the relay").because(error).exit(Exit::NotStarted)
    })?;
    // The handlers are installed before any client can know that the relay runs.
    catch_signals(server.handle())?;
    let addresses = server.addresses();
    let list = |addresses: &[_]| {
        let texts: Vec<_> = addresses.iter().map(|address| format!("{address}")).collect();
        texts.join(", ")
    };
    let mut ready = format!("{} to {}", list(&addresses.listen), list(&args.to));
    if let Some(admin) = &addresses.admin {
        ready += &format!(", admin on {}", ready::url(admin));
    }
    ready::announce(&ready);
    let stats = server.run().or_fail(|| "the relay failed".to_owned())?;
    let text = if args.json { format!("{}\n", report::json(&stats)) } else { report::text(&stats) };
    io::stdout().write_all(text.as_bytes()).ok();
    Ok(())
}

/// Installs signal handlers: SIGUSR1 prints statistics; SIGINT and SIGTERM stop the relay.
fn catch_signals(relay: Handle) -> Result {
    let drained = relay.clone();
    let mut end = termination_handler("open connections", move |_signal| drained.drain());
    handle_signals(
        &[Signal::Interrupt, Signal::Terminate, Signal::User],
        move |signal| match signal {
            Signal::User => try_print_message(report::text(&relay.stats()).trim_end()),
            _ => end(signal),
        },
    )
}
