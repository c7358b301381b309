//! Copies a log to an object store, here one in memory, and restores it from there.

use std::error::Error;
use std::sync::Arc;

use haul_append_log::{Log, Options, Position, SpacePriority};
use haul_disk::{Disk, OsDisk};
use haul_replicate::{PlainLog, Remote, Replica, restore_log};

fn main() -> Result<(), Box<dyn Error>> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    // `Remote::open("s3://bucket/backup", ..)` opens a store in a cloud.
    let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()), "backup")?;
    let options = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(here.path())?);
    let ignored = &mut |_: Position, _: &[u8]| {};
    let (log, _) = Log::open(Arc::clone(&disk), options.clone(), ignored)?;
    let log = Arc::new(log);
    let source = PlainLog::new(Arc::clone(&log), disk);
    let replica = Replica::follow(source, &remote, haul_replicate::Options::default())?;
    log.append(&[b"hello"], SpacePriority::Ordinary)?.wait()?; // durable on this machine,
    replica.wait()?; //                                  and now in the object store
    replica.stop()?;

    // On another machine:
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(there.path())?);
    restore_log(&remote, &disk)?;
    let mut records = Vec::new();
    let mut each = |_: Position, record: &[u8]| records.push(record.to_vec());
    let (_log, _) = Log::open(disk, options, &mut each)?;
    assert_eq!(records, [b"hello"]);
    Ok(())
}
