//! Plans the paths of exported objects, and writes the objects as files.

mod execute;
mod plan;

use std::fs::File;
use std::io;
use std::path::Path;

pub use execute::{Export, ExportEvents, Exported};
pub use plan::ExportPlan;
pub(crate) use plan::cut_bytes;

/// Makes all files exported to `dir` durable by a sync of its file system.
///
/// # Errors
/// Fails if `dir` cannot be opened or the sync fails. The exported files may then be lost in a
/// power failure.
pub fn sync_file_system(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(&File::open(dir)?)?)
}
