//! placeholder
use std::path::Path;
use tempfile::TempDir;

/// The files of a store as they are now.
pub(crate) fn copy_of(dir: &Path) -> TempDir {
    let copy = crate::disk_dir();
    for part in ["", "volumes", "objects"] {
        std::fs::create_dir_all(copy.path().join(part)).unwrap();
        for entry in std::fs::read_dir(dir.join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), copy.path().join(part).join(entry.file_name()))
                    .unwrap();
            }
        }
    }
    copy
}
