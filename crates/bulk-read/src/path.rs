//! Joins paths that are byte strings, and converts them to [`Path`].

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Appends `name` to `path`, separated by a slash. No slash is added to an empty path, which stands
/// for the current directory.
pub(crate) fn join(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}

/// Returns the bytes as a path.
pub(crate) fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
