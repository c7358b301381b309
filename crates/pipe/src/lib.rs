//! Moves bytes between files and sockets through pooled pipes, without copying them.
//!
//! # What it is
//! `splice(2)` moves references to pages from a file or a socket into a pipe, and from a pipe into
//! a socket, without copying the bytes. One pipe per connection would cost two descriptors, four
//! system calls (create, resize, close both ends) and up to a megabyte of kernel memory, even for
//! idle connections.
//! - [`PipePool`] holds pipes of one size; a server typically has one pool per core. A pipe is
//!   created on first use and then reused.
//! - [`Lease`] is the exclusive use of one pipe. A transfer leases a pipe when bytes are ready and
//!   drops the lease when the pipe is empty, so an idle connection holds none.
//! - [`Lease::fill`] and [`Lease::fill_at`] move bytes in, [`Lease::drain`] moves them out;
//!   [`Lease::read`] copies them to memory and [`Lease::discard`] drops them.
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//!
//! use haul_pipe::{DrainOutcome, Filled, PipePool, PoolOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut client, from) = UnixStream::pair()?;
//! let (to, mut server) = UnixStream::pair()?;
//! from.set_nonblocking(true)?;
//! to.set_nonblocking(true)?;
//! client.write_all(b"hello")?;
//!
//! let pool = PipePool::new(PoolOptions::default());
//! let mut lease = pool.lease()?;
//! assert_eq!(lease.fill(&from, 1 << 20)?, Filled::Bytes(5));
//! assert_eq!(lease.fill(&from, 1 << 20)?, Filled::PipeFull); // full or source empty: drain first
//! assert_eq!(lease.drain(&to, 1 << 20, false)?, DrainOutcome::Bytes(5));
//! assert_eq!(lease.fill(&from, 1 << 20)?, Filled::SourceEmpty); // unambiguous: the pipe is empty
//! drop(lease); // an empty pipe returns to the pool
//!
//! let mut greeting = [0; 5];
//! server.read_exact(&mut greeting)?;
//! assert_eq!(&greeting, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - **No byte of one transfer reaches another transfer.** A pipe returns to its pool only when as
//!   many bytes were moved out as were moved in; otherwise it is closed together with its content.
//! - **A call that would block reports what to do next.** `EAGAIN` of `splice(2)` does not
//!   distinguish an empty source from a full pipe, so the lease counts the bytes in the pipe. If
//!   the pipe is empty, the caller waits for the source; otherwise it drains the pipe first.
//! - No call blocks on a non-blocking socket. Only [`Lease::fill_at`] may wait for a disk: call it
//!   from a thread that may block.
//! - A pool never exceeds its limit of pipes. When all pipes are leased, [`PipePool::lease`] fails
//!   without waiting, and the caller copies the bytes or retries later.
//!
//! # Cost
//! Each move is one system call. Leasing and releasing a pipe takes an uncontended lock and no
//! system call, except that leasing an undersized pipe tries to enlarge it. In steady state no pipe
//! is created or closed; see [`PoolStats`].
//!
//! # What it is not
//! This crate has no poller, runtime or threads: the caller must know when a descriptor is ready.
//! The crate does not handle signals: `SIGPIPE` with its default action kills a program that writes
//! to a closed connection (Rust programs ignore `SIGPIPE` by default).
//!
//! # Sources
//! \[HAProxyPipe\], on returning empty pipes early and closing all other pipes; \[GoSplice\], on
//! counting bytes to distinguish the two meanings of `EAGAIN`; the manual pages `splice(2)` and
//! `pipe(7)`.

mod error;
mod lease;
mod pool;

pub use error::{Error, Op, Result};
pub use lease::{DrainOutcome, Filled, Lease};
pub use pool::{NoPipe, PipePool, PoolOptions, PoolStats};
