//! Reads small files that contain secrets.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::report::{Exit, Failure, OrFail, Result};

/// The maximum number of bytes read, far more than most valid files have.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Returns the text of a file that other users cannot read. `cannot` describes the failure.
pub(crate) fn read(path: &Path, cannot: &dyn Fn() -> String) -> Result<String> {
    read_up_to(path, FILE_BYTES_MAX, cannot)
}

/// Like [`read`], with a limit on the number of bytes.
pub(crate) fn read_up_to(
    path: &Path,
    bytes_max: u64,
    cannot: &dyn Fn() -> String,
) -> Result<String> {
    let file = File::open(path).or_not_start(cannot)?;
    let metadata = file.metadata().or_not_start(cannot)?;
    if metadata.is_dir() {
        let failure = Failure::new(format!("{}: is a directory", cannot()));
        return Err(failure.exit(Exit::NotStarted));
    }
    if metadata.mode() & 0o007 != 0 {
        let message = format!("{}: the file is accessible to other users", cannot());
        let failure = Failure::new(message).advise(format!("chmod o= '{}'", path.display()));
        return Err(failure.exit(Exit::NotStarted));
    }
    let mut text = String::new();
    file.take(bytes_max).read_to_string(&mut text).or_not_start(cannot)?;
    Ok(text)
}
