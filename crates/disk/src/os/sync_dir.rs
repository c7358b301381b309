//! Makes the names in a directory durable.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{fstat, fsync};

/// Makes an open directory's entries durable: the names of files that were created, renamed or
/// removed in it.
///
/// 1. Syncs the directory. A crash before its end leaves each change done or not done.
/// 2. Reads its status. XFS shuts a file system down after a failed journal write, forgets the
///    changes that were not written, and then reports success for a directory sync, because it has
///    no changes any more. The status is the cheapest call that fails then.
pub(super) fn sync(dir: impl AsFd) -> rustix::io::Result<()> {
    fsync(&dir)?;
    fstat(&dir).map(drop)
}

/// Makes a file's name durable: syncs the directory that contains it.
///
/// # Errors
/// Fails if the directory cannot be opened, or if its entries cannot be made durable.
///
/// # Durability
/// When this returns `Ok`, the name (or its absence) survives a power cut. The file's content needs
/// its own sync.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(sync(File::open(parent.unwrap_or(Path::new(".")))?)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use haul_testing::LoopImage;

    use super::*;

    /// The file system shuts down after the directory was opened, without writing its journal, as
    /// after a failed journal write.
    #[test]
    fn sync_fails_after_the_file_system_has_lost_a_change() {
        for kind in ["xfs", "ext4"] {
            let Some(image) = LoopImage::new(kind, 320 << 20) else { return };
            fs::write(image.mount().join("old"), "content").unwrap();
            let dir = File::open(image.mount()).unwrap();
            sync(&dir).unwrap();
            fs::rename(image.mount().join("old"), image.mount().join("new")).unwrap();
            let mut shut_down = Command::new("xfs_io");
            shut_down.args(["-x", "-c", "shutdown"]).arg(image.mount());
            assert!(shut_down.status().unwrap().success());
            assert!(sync(&dir).is_err(), "{kind}");
            assert!(sync_parent(&image.mount().join("new")).is_err(), "{kind}");
        }
    }
}
