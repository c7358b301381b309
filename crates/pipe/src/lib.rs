//! Bytes moved between files and sockets through pooled pipes, without copying them.
//!
//! # What it is
//! `splice` moves references to pages from a file or a socket into a pipe, and from a pipe into a
//! socket; the bytes themselves stay where they are. It needs a pipe, and a pipe a transfer is two
//! descriptors, three system calls and up to a megabyte of the kernel's memory for somebody who
//! may be idle.
//! - [`PipePool`] keeps pipes of one size. Each core has one pool; a pipe is made when it is first
//!   needed and then used again and again.
//! - [`Lease`] is a pipe lent. It is taken when there is something to move and dropped when
//!   nothing is inside: an idle connection holds none.
//! - [`Lease::fill`] and [`Lease::fill_at`] take bytes in, [`Lease::drain`] lets them out;
//!   [`Lease::read`] and [`Lease::discard`] are for those that are to go elsewhere.
//!
//! # Example
//! ```
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//!
//! use haul_pipe::{Drained, Filled, PipePool, PoolOptions};
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
//! assert_eq!(lease.fill(&from, 1 << 20)?, Filled::PipeFull); // or nothing came: drain, then ask
//! assert_eq!(lease.drain(&to, 1 << 20, false)?, Drained::Bytes(5));
//! assert_eq!(lease.fill(&from, 1 << 20)?, Filled::SourceEmpty); // with nothing inside it is sure
//! drop(lease); // empty: the next one gets this pipe
//!
//! let mut greeting = [0; 5];
//! server.read_exact(&mut greeting)?;
//! assert_eq!(&greeting, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - **No byte of one transfer reaches another.** A pipe goes back to its pool only when as many
//!   bytes were let out as were taken in; any other is closed, what is in it is gone with it.
//! - **"Would block" says who.** The kernel's `EAGAIN` does not tell an empty source from a full
//!   pipe; the lease counts what is inside, and answers with what the caller has to wait for.
//! - Nothing here waits for a socket that does not block. A file below [`Lease::fill_at`] is read
//!   while the call lasts: that is for threads that may wait.
//! - A pool never has more pipes than it was allowed; when they are all lent, asking for one fails
//!   at once, and whoever asked copies or waits.
//!
//! # Cost
//! One system call for each time bytes go in or out. Taking and giving back a pipe is an
//! uncontended lock, no call. In steady state no pipe is made or closed; [`PoolStats`] tells.
//!
//! # What it is not
//! No poller, no runtime, no threads: whoever has a descriptor and knows when it is ready can use
//! it. It ignores no signals either: a program in which `SIGPIPE` has its default action dies when
//! the peer of a socket is gone; Rust's programs ignore it.
//!
//! # Sources
//! \[HAProxyPipe\] gives pipes back as soon as they are empty and closes those that are not;
//! \[GoSplice\] counts bytes to tell the two meanings of `EAGAIN` apart. The manual pages `splice(2)`
//! and `pipe(7)`.

mod error;
mod lease;
mod pool;

pub use error::{Error, Op, Result};
pub use lease::{Drained, Filled, Lease};
pub use pool::{NoPipe, PipePool, PoolOptions, PoolStats};
