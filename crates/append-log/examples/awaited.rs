//! Appends records from a thousand async tasks to one log. No task blocks a thread while it waits
//! until its record is durable, and many records share each sync.
//!
//! ```sh
//! cargo run --release -p haul-append-log --example awaited -- DIR
//! ```

use std::error::Error;
use std::sync::Arc;

use haul_append_log::{Log, Options, Position, SpacePriority};
use tokio::task::JoinSet;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example that talks")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: awaited DIR")?;
    let mut count = 0_u64;
    let mut replay = |_at: Position, _payload: &[u8]| count += 1;
    let (log, _recovered) = Log::open_dir(dir, Options::default(), &mut replay)?;
    println!("{count} records of earlier runs");

    let log = Arc::new(log);
    let mut tasks = JoinSet::new();
    for number in 0..1000 {
        let log = Arc::clone(&log);
        tasks.spawn(async move {
            let payload = format!("task {number}");
            log.append(&[payload.as_bytes()], SpacePriority::Ordinary)?.await
        });
    }
    while let Some(appended) = tasks.join_next().await {
        appended??;
    }
    println!("1000 records in {} syncs", log.stats().syncs);
    Ok(())
}
