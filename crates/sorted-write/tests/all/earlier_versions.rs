//! Tests that page files written by earlier versions of this crate can be opened. Archives of such
//! files are in `tests/fixtures`.

use std::process::Command;
use std::sync::Arc;

use haul_disk::{Disk, OsDisk};
use haul_sorted_write::PageFile;

use crate::page_file::options;

/// The process that wrote the files in the archive was killed with 200 acknowledged pages in the
/// log and none in the file.
#[test]
fn log_of_version_1_is_replayed() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let fixtures = format!("{}/tests/fixtures", env!("CARGO_MANIFEST_DIR"));
    let archive = format!("{fixtures}/page-file-v1-crashed.tar.gz");
    let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(tar.unwrap().success(), "cannot extract {archive}");
    let path = dir.path().join("page-file-v1-crashed");

    let disk = OsDisk::open(&path).unwrap();
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(path.join("log")).unwrap());
    let (file, recovery) = PageFile::open(&disk, "pages", &log, options(1 << 20)).unwrap();
    assert_eq!(recovery.replayed, 200, "{recovery:?}");
    file.close().unwrap();
    let pages = std::fs::read(path.join("pages")).unwrap();
    for (number, page) in pages.chunks_exact(4096).enumerate() {
        let expected = if number < 200 { u8::try_from(number).unwrap() } else { 0 };
        assert!(page.iter().all(|byte| *byte == expected), "page {number}");
    }
}
