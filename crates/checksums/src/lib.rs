//! Parses, writes and verifies lists of checksums.
//!
//! # What it is
//! - [`List::parse`] parses a list of `sha256sum`, `b3sum`, `xxhsum`, `openssl`, the BSD tools,
//!   `cksfv` or `hashdeep`; [`write_line`] writes one line in the formats of the first two.
//! - [`detect`] finds the hash function of a list (such as `SHA256SUMS`) whose lines name none.
//! - [`hash()`] hashes the files of a tree. It reads them in the order that suits the disk, and
//!   reports their digests in the order of the jobs. [`hash_cached`] does so with a cache of
//!   digests. [`hash_stream`] hashes a stream.
//! - [`Check::run`] verifies the files of a list. The name `-` stands for stdin, whose digests the
//!   caller passes as [`StreamDigests`].
//!
//! # Example
//! ```
//! use haul_bulk_read::digest::HashKind;
//! use haul_checksums::{LineFormat, List, write_line};
//!
//! let (kind, format) = (HashKind::Sha256, LineFormat { tag: true, zero: false });
//! let mut text = Vec::new();
//! write_line(&mut text, kind, &kind.of(b"content"), b"a\nb", format);
//! assert!(text.starts_with(b"\\SHA256 (a\\nb) = ed7002b439e9ac84"));
//! let list = List::parse(&text, None);
//! assert_eq!((list.lines[0].kind, list.lines[0].name.as_slice()), (Some(kind), &b"a\nb"[..]));
//! ```
//!
//! # Promises
//! - The usual tool of the hash function (such as `sha256sum`) can verify a written list, including
//!   names with newlines, unless the lines of the list end with NUL.
//! - If a file cannot be read, its result is an error, and hashing continues with the next file.
//! - If a large file changes while it is hashed in parts, the result is an error, never a digest of
//!   both states.
//!
//! # Cost
//! A check reads each file once per name under which it is listed. [`detect`] reads up to eight
//! files of the list for each digest length. Digests that are computed out of order wait in a
//! buffer with one slot per job; each slot is as long as the longest digest.
//!
//! # What it is not
//! The crate prints nothing, and does not decide whether a check passed as a whole.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Md5sum\] for the formats.

mod check;
mod detect;
mod hash;
mod hashdeep;
mod job;
mod line;
mod list;
mod pgp;
mod read_plan;
mod reorder;
mod sfv;
mod stream;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use check::{Check, CheckEvents, Verdict};
pub use detect::detect;
pub use hash::{hash, hash_cached};
pub use job::Job;
pub use line::{Line, LineFormat, write_line, write_name};
pub use list::{List, UnknownRow};
pub use reorder::Outcome;
pub use stream::{StreamDigests, hash_stream};

/// The name of a line for stdin.
const STDIN: &[u8] = b"-";

/// The number of bytes per read.
const PIECE_BYTES: usize = 256 << 10;

fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}
