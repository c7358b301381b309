//! `haul relay`.

mod report;

use std::io::{self, Write};

use haul_tcp_relay::{Handle, Server};

use crate::args::RelayArgs;
use crate::descriptors;
use crate::ready;
use crate::report::{Exit, Failure, OrFail, Result, say_if_room};
use crate::signals::{Signal, ending, on_each};

/// Relays until a signal asks to stop, and tells what was done.
pub(crate) fn run(args: &RelayArgs) -> Result {
    descriptors::raise_limit();
    let server = Server::bind(args.config()).map_err(|error| {
        Failure::new("cannot start the relay").because(error).exit(Exit::NotStarted)
    })?;
    // Caught before anybody can know that it runs.
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
    ready::tell(&ready);
    let stats = server.run().or_fail(|| "the relay failed".to_owned())?;
    let told = if args.json { format!("{}\n", report::json(&stats)) } else { report::text(&stats) };
    io::stdout().write_all(told.as_bytes()).ok();
    Ok(())
}

/// SIGUSR1 has it told what was done so far; the others end the relay.
fn catch_signals(relay: Handle) -> Result {
    let drained = relay.clone();
    let mut end = ending("the connections there are", move |_signal| drained.drain());
    on_each(&[Signal::Interrupt, Signal::Terminate, Signal::User], move |signal| match signal {
        Signal::User => say_if_room(report::text(&relay.stats()).trim_end()),
        _ => end(signal),
    })
}
