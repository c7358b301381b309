//! Reads a log while another thread appends to it: the reader receives each record as soon as the
//! record is durable.
//!
//! ```sh
//! cargo run -p haul-append-log --example follow -- DIR
//! ```

use std::error::Error;
use std::thread;

use haul_append_log::{Log, Options, Position, SpacePriority};

#[expect(clippy::print_stdout, reason = "an example that talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: follow DIR")?;
    let mut ignored = |_at: Position, _payload: &[u8]| {};
    let (log, _recovered) = Log::open_dir(dir, Options::default(), &mut ignored)?;

    let mut reader = log.reader(log.synced());
    let follower = thread::spawn(move || -> haul_append_log::Result<u32> {
        let mut seen = 0;
        // `wait_next` returns `None` when the log is closed.
        while let Some((at, payload)) = reader.wait_next(None)? {
            println!("{} {}", at.lsn, String::from_utf8_lossy(payload));
            seen += 1;
        }
        Ok(seen)
    });
    for number in 1..=10 {
        let payload = format!("record {number}");
        log.append(&[payload.as_bytes()], SpacePriority::Ordinary)?.wait()?;
    }
    log.close()?;
    let seen = follower.join().map_err(|_panic| "the follower failed")??;
    println!("{seen} records seen");
    Ok(())
}
