//! A service that logs through `tracing` into a [`LineLog`]: `cargo run --example tracing -- DIR`.

use std::sync::Arc;

use haul_line_log::{LineLog, Options, Outside};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("name a directory")?;
    let log = Arc::new(LineLog::open(dir, Options::default(), Outside::default())?);
    tracing_subscriber::fmt().with_writer(Arc::clone(&log)).with_ansi(false).init();

    for request in 0..1000 {
        tracing::info!(request, "answered");
    }
    // The subscriber lives as long as the process and is never dropped.
    log.close()?;
    Ok(())
}
