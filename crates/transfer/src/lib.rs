//! Imports directory trees and tar archives into an object store, and exports objects to them.
//!
//! # What it is
//! - [`Source`] is a directory or file to import. [`ImportPlan::new`] walks it and plans the keys
//!   and the order of the files; [`Import::run`] stores them with several threads that share syncs
//!   of the store.
//! - [`ExportPlan::new`] plans the paths of objects; [`Export::run`] writes the objects as files.
//! - [`TarImport`] stores the members of a tar archive in batches that share syncs, and
//!   [`TarExport`] writes objects to one. The archives are streams: neither their lists nor their
//!   contents are held in memory.
//! - [`Mtime`] is the modification time of a file, kept as an attribute of its object.
//!
//! # Example
//! ```
//! use std::error::Error;
//! use std::path::Path;
//!
//! use haul_file_store::Options;
//! use haul_store_pool::Pool;
//! use haul_transfer::{Import, ImportEvents, ImportPlan, Source};
//!
//! struct Quiet;
//!
//! impl ImportEvents for Quiet {
//!     fn is_stopped(&self) -> bool {
//!         false
//!     }
//!     fn progress(&self, _files: u64, _bytes: u64) {}
//!     fn failed(&self, path: &Path, error: &(dyn Error + 'static)) {
//!         eprintln!("{}: {error}", path.display());
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (data, tree) = (dir.path().join("store"), dir.path().join("tree"));
//! # std::fs::create_dir(&tree)?;
//! # std::fs::write(tree.join("a"), "one")?;
//! # let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
//! let (store, _recovered) = Pool::open(std::slice::from_ref(&data), &small)?;
//! store.create_bucket("photos")?;
//! let source = Source::open(&tree, false)?;
//! let plan = ImportPlan::new(&source, std::slice::from_ref(&data), "2026/");
//! let import = Import {
//!     store: &store,
//!     bucket: "photos",
//!     source: &source,
//!     plan: &plan,
//!     big_object_bytes: 1 << 20,
//!     skip_existing: false,
//!     jobs: 4,
//! };
//! let (imported, result) = import.run(&Quiet);
//! result?;
//! assert_eq!((imported.files, imported.bytes), (1, 3));
//! assert_eq!(&store.get("photos", "2026/a")?.read(0, 3)?[..], b"one");
//! # store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - A file that changes while it is read is rejected: the store never contains a mixture of its
//!   old and new content.
//! - Unless links are followed, no path leaves the source through a symbolic link. No exported file
//!   is written outside of the target directory.
//! - A file that cannot be read, or an object that cannot be written, is reported, and all others
//!   are still processed. A failure of the store or a full disk ends the transfer.
//! - An archive that [`TarExport`] wrote restores exactly the keys, contents and attributes of any
//!   objects, but not their locks; other programs extract it below their directory.
//! - The end of a truncated archive is an error, and the members before it are stored.
//! - An exported file appears under its name only when it is complete.
//! - A store is never imported into itself.
//!
//! # Cost
//! Each file is read once, in the order of the inode numbers of its device; on a rotational disk
//! only one thread reads at a time. Memory holds the path of every file, and for each thread the
//! content of one small file or a piece of a big one. The import of an archive holds up to three
//! batches of 4096 members or 4 MiB, and one small member.
//!
//! # What it is not
//! The crate prints nothing, opens no store and creates no bucket.

mod counter;
mod error;
mod export;
mod import;
mod mtime;
mod pieces;
mod tar;
mod workers;

pub use error::{Error, ExportError, ReadError};
pub use export::{Export, ExportEvents, ExportPlan, Exported, sync_file_system};
pub use import::{Import, ImportEvents, ImportPlan, Imported, Source};
pub use mtime::{MTIME_ATTRIBUTE, Mtime};
pub use pieces::{PIECE_BYTES, pieces};
pub use tar::{TarError, TarExport, TarExportError, TarImport, TarImported};
