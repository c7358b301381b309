//! A service that logs through `tracing` into a [`LineLog`]: `cargo run --example tracing -- DIR`.

use std::sync::Arc;

use haul_line_log::{Environment, LineLog, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: tracing DIR")?;
    let log = Arc::new(LineLog::open(dir, Options::default(), Environment::default())?);
    tracing_subscriber::fmt().with_writer(Arc::clone(&log)).with_ansi(false).init();

    for request in 0..1000 {
        tracing::info!(request, "answered");
    }
    // The subscriber is a static and never dropped, so the log must be closed explicitly.
    log.close()?;
    Ok(())
}
