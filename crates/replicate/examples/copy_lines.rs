//! Keeps a copy of an append log in an object store, and waits until the copy has each record.
//!
//! `cargo run -p haul-replicate --example copy_lines -- DIR s3://BUCKET/PREFIX < LINES`; the
//! options of the object store are environment variables that begin with `AWS_`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use haul_append_log::{Log, Options, Position, SpacePriority};
use haul_disk::{Disk, OsDisk};
use haul_replicate::{PlainLog, Remote, Replica};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copy_lines DIR URL".into());
    };
    let options: Vec<_> = std::env::vars().filter(|(name, _)| name.starts_with("AWS_")).collect();
    let remote = Remote::open(&url, &options, &[])?;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open_or_create(std::path::Path::new(&dir))?);
    let ignore = &mut |_: Position, _: &[u8]| {};
    let (log, _) = Log::open(Arc::clone(&disk), Options::default(), ignore)?;
    let log = Arc::new(log);
    let source = PlainLog::new(Arc::clone(&log), disk);
    let replica = Replica::follow(source, &remote, haul_replicate::Options::default())?;
    for line in std::io::stdin().lines() {
        let at = log.append(&[line?.as_bytes()], SpacePriority::Ordinary)?.wait()?;
        replica.wait()?;
        println!("{} is durable here and in {url}", at.lsn);
    }
    Ok(replica.stop()?)
}
