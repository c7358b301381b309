//! Appends two records to a log, reads one by its position, and opens the log again.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_append_log::{Log, Options, Position, SpacePriority};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("log");
    let options = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };

    let mut ignored = |_at: Position, _payload: &[u8]| {};
    let (log, _recovered) = Log::open_dir(&path, options.clone(), &mut ignored)?;
    println!("{}", log.strategy()); // the write strategy on this storage, with reasons
    let first = log.append(&[b"hello, ", b"disk"], SpacePriority::Ordinary)?; // in memory
    let second = log.append(&[b"another record"], SpacePriority::Ordinary)?;
    let at = first.wait()?; // durable; or .await
    second.wait()?; // durable, too: both records shared one write and one sync
    assert_eq!(log.read(at)?.payload(), b"hello, disk");
    log.close()?;

    let mut records = Vec::new();
    let mut replay = |at: Position, payload: &[u8]| records.push((at.lsn, payload.to_vec()));
    let (_log, recovered) = Log::open_dir(&path, options, &mut replay)?;
    assert!(recovered.closed && recovered.damage.is_empty());
    for (lsn, payload) in &records {
        println!("{lsn}: {}", String::from_utf8_lossy(payload));
    }
    assert_eq!(records.len(), 2);
    Ok(())
}
