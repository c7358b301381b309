//! Moves bytes from one socket to another through a pooled pipe, without copying them.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use haul_pipe::{DrainOutcome, Filled, PipePool, PoolOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut client, from) = UnixStream::pair()?;
    let (to, mut server) = UnixStream::pair()?;
    from.set_nonblocking(true)?;
    to.set_nonblocking(true)?;
    client.write_all(b"hello")?;

    let pool = PipePool::new(PoolOptions::default());
    let mut lease = pool.lease()?;
    assert_eq!(lease.fill(&from, 1 << 20)?, Filled::Bytes(5));
    assert_eq!(lease.fill(&from, 1 << 20)?, Filled::PipeFull); // or the source is empty: drain
    assert_eq!(lease.drain(&to, 1 << 20, false)?, DrainOutcome::Bytes(5));
    assert_eq!(lease.fill(&from, 1 << 20)?, Filled::SourceEmpty);
    drop(lease); // an empty pipe returns to the pool

    let mut greeting = [0; 5];
    server.read_exact(&mut greeting)?;
    assert_eq!(&greeting, b"hello");
    Ok(())
}
