//! A thousand tasks of an async program share one log, a few syncs, and no thread that waits.
//!
//! ```sh
//! cargo run --release -p haul-append-log --example awaited -- DIR
//! ```

use std::error::Error;
use std::sync::Arc;

use haul_append_log::{Log, Options, Position, Room};
use haul_disk::OsDisk;
use tokio::task::JoinSet;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example that talks")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: awaited DIR")?;
    let disk = Arc::new(OsDisk::open_or_create(dir)?);
    let mut count = 0_u64;
    let mut replay = |_at: Position, _payload: &[u8]| count += 1;
    let (log, _recovered) = Log::open(disk, Options::default(), &mut replay)?;
    println!("{count} records of earlier runs");

    let log = Arc::new(log);
    let mut tasks = JoinSet::new();
    for number in 0..1000 {
        let log = Arc::clone(&log);
        tasks.spawn(async move {
            let payload = format!("task {number}");
            // Pending while too much is in flight, then until the record is on the medium.
            let ticket = log.append_async(&[payload.as_bytes()], Room::Ordinary).await?;
            ticket.await
        });
    }
    while let Some(appended) = tasks.join_next().await {
        appended??;
    }
    println!("1000 records in {} syncs", log.stats().syncs);
    Ok(())
}
