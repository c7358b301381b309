//! Tests that a pacer bounds the dirty pages that the kernel counts during bulk writes.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use haul_disk::{
    Device, DeviceCounters, Disk, Durability, File, NotPaced, Open, OsDisk, Pace, PaceBudget,
    Pacer, evict, resident, write_full,
};
use haul_testing::{LoopDevice, LoopImage, mount_detached, run, skip};
use rustix::io::Errno;

use crate::disk_dir;
use crate::simulated::SimulatedFile;

const PIECE: u64 = 1 << 20;
const WINDOW: u64 = 4 << 20;
const PACE: Pace = Pace { window_bytes: WINDOW, drop_behind: false };

fn piece() -> Vec<u8> {
    vec![7; usize::try_from(PIECE).unwrap()]
}

fn bulk_file(dir: &Path) -> Arc<dyn File> {
    OsDisk::open(dir).unwrap().create("bulk", Open::default()).unwrap()
}

/// Returns the sum of dirty bytes and bytes under writeback; `None` if the kernel does not report
/// them.
fn unwritten_bytes(file: &dyn File) -> Option<u64> {
    let now = resident(file, 0, u64::MAX).unwrap();
    Some(now.dirty_bytes? + now.writeback_bytes?)
}

/// Writes a piece at each of `offsets`, and returns the maximum of [`unwritten_bytes`].
fn write_pieces(
    file: &dyn File,
    mut pacer: Option<&mut Pacer<'_>>,
    offsets: impl Iterator<Item = u64>,
) -> Option<u64> {
    let (piece, mut most) = (piece(), 0);
    for offset in offsets {
        write_full(file, &piece, offset).unwrap();
        if let Some(pacer) = &mut pacer {
            pacer.wrote(offset, PIECE).unwrap();
        }
        most = most.max(unwritten_bytes(file)?);
    }
    Some(most)
}

#[test]
fn bulk_write_has_at_most_two_dirty_windows() {
    let Some(image) = LoopImage::new("ext4", 768 << 20) else { return };
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let file = bulk_file(image.mount());
    file.sync(Durability::Everything).unwrap();
    let syncs = || {
        image.settle();
        DeviceCounters::of(&device).unwrap().syncs
    };
    let before = syncs();
    let mut pacer = Pacer::of(&*file, PACE);
    let Some(most) = write_pieces(&*file, Some(&mut pacer), (0..512).map(|n| n * PIECE)) else {
        return skip("the kernel does not report dirty pages (cachestat, Linux 6.5)");
    };
    // On a slow or busy device the windows are shorter.
    assert!((PIECE..=2 * WINDOW + PIECE).contains(&most), "{most} B");
    pacer.finish().unwrap();
    assert_eq!((unwritten_bytes(&*file), pacer.not_paced()), (Some(0), None));
    assert_eq!(syncs(), before, "pacing sent a flush request");
    file.sync(Durability::Data).unwrap();
    assert!(syncs() > before);

    // Without a pacer the bound is exceeded, so the checks above would fail if the pacer had no
    // effect.
    evict(&*file, 0, u64::MAX).unwrap();
    let most = write_pieces(&*file, None, (0..32).map(|n| n * PIECE)).unwrap();
    assert!(most > 2 * WINDOW + PIECE, "{most} B");
}

#[test]
fn holes_and_other_file_systems_keep_the_bound() {
    for (fs, bytes) in [("ext4", 256 << 20), ("xfs", 320 << 20), ("btrfs", 512 << 20)] {
        let Some(image) = LoopImage::new(fs, bytes) else { return };
        let file = bulk_file(image.mount());
        let mut pacer = Pacer::of(&*file, PACE);
        // Pieces in ascending order with holes of odd length between them, so that few pieces are
        // page-aligned.
        let offsets = (0..64).map(|n| n * (PIECE * 3 + 777));
        let Some(most) = write_pieces(&*file, Some(&mut pacer), offsets) else {
            return skip("the kernel does not report dirty pages (cachestat, Linux 6.5)");
        };
        let page_each = 4 * 2 * rustix::param::page_size() as u64 * WINDOW / PIECE;
        // On a busy machine the kernel also writes by itself, and less is dirty at a time.
        assert!((PIECE..=2 * WINDOW + PIECE + page_each).contains(&most), "{fs}: {most} B");
        pacer.finish().unwrap();
        assert_eq!((unwritten_bytes(&*file), pacer.not_paced()), (Some(0), None), "{fs}");
    }
}

#[test]
fn files_that_share_a_budget_have_two_dirty_windows_in_all() {
    const FILES: usize = 8;
    let short = vec![7; 64 << 10];
    let Some(image) = LoopImage::new("ext4", 768 << 20) else { return };
    let disk = OsDisk::open(image.mount()).unwrap();
    let create = |n: usize| disk.create(&format!("bulk {n}"), Open::default()).unwrap();
    let files: Vec<_> = (0..FILES).map(create).collect();
    let budget = PaceBudget::default();
    let mut pacers: Vec<_> =
        files.iter().map(|file| Pacer::of(&**file, PACE).sharing(&budget)).collect();
    let mut most = 0;
    for offset in (0..48 * PIECE).step_by(short.len()) {
        for (file, pacer) in files.iter().zip(&mut pacers) {
            write_full(&**file, &short, offset).unwrap();
            pacer.wrote(offset, short.len() as u64).unwrap();
        }
        let Some(unwritten) = files.iter().map(|file| unwritten_bytes(&**file)).sum() else {
            return skip("the kernel does not report dirty pages (cachestat, Linux 6.5)");
        };
        most = most.max(unwritten);
    }
    let slack = (FILES * short.len()) as u64;
    assert!(most <= 2 * WINDOW + 2 * slack, "{most} B");
    // The last pacer has the whole budget again.
    pacers.truncate(1);
    let bytes = write_pieces(&*files[0], pacers.first_mut(), (48..80).map(|n| n * PIECE)).unwrap();
    assert!(bytes <= 2 * WINDOW + PIECE, "{bytes} B");
}

#[test]
fn drop_behind_evicts_written_pages() {
    let dir = disk_dir();
    for (drop_behind, left) in [(true, 0), (false, 32 * PIECE)] {
        let disk = OsDisk::open(dir.path()).unwrap();
        let file = disk.create(&format!("bulk {drop_behind}"), Open::default()).unwrap();
        let mut pacer = Pacer::of(&*file, Pace { drop_behind, ..PACE });
        write_pieces(&*file, Some(&mut pacer), (0..32).map(|n| n * PIECE));
        let in_memory = || resident(&*file, 0, u64::MAX).unwrap().resident_bytes;
        if drop_behind {
            assert!(in_memory() <= 2 * WINDOW + PIECE, "{} B", in_memory());
        }
        pacer.finish().unwrap();
        assert_eq!(in_memory(), left);
    }
}

#[test]
fn unpaceable_files_report_the_reason_and_accept_writes() {
    let file = SimulatedFile::default();
    let mut pacer = Pacer::of(&file, PACE);
    pacer.wrote(0, u64::MAX).unwrap();
    pacer.finish().unwrap();
    assert_eq!(pacer.not_paced(), Some(NotPaced::Simulated));

    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let direct = disk.create("direct", Open { direct: true, ..Open::default() }).unwrap();
    let flags = rustix::fs::fcntl_getfl(direct.descriptor().unwrap()).unwrap();
    if flags.contains(rustix::fs::OFlags::DIRECT) {
        assert_eq!(Pacer::of(&*direct, PACE).not_paced(), Some(NotPaced::Direct));
    }

    let memory = tempfile::tempfile_in("/dev/shm").unwrap();
    let fd = OwnedFd::from(memory);
    let mut pacer = Pacer::of(&fd, PACE);
    pacer.wrote(0, 100 << 20).unwrap();
    assert_eq!(pacer.not_paced(), Some(NotPaced::InMemory));

    // A pipe has no page cache: the kernel refuses `sync_file_range` at the first writeback.
    let (_reader, pipe) = std::io::pipe().unwrap();
    let pipe = OwnedFd::from(pipe);
    let mut pacer = Pacer::of(&pipe, PACE);
    assert_eq!(pacer.not_paced(), None);
    for offset in [0, WINDOW, 2 * WINDOW] {
        pacer.wrote(offset, WINDOW).unwrap();
    }
    pacer.finish().unwrap();
    assert_eq!(pacer.not_paced(), Some(NotPaced::Refused));
}

#[test]
fn failed_writeback_is_reported_and_final() {
    // A loop device on a sparse file that cannot grow, since the disk below it is full.
    let Some(below) = LoopImage::new("ext4", 64 << 20) else { return };
    let sparse = std::fs::File::create_new(below.mount().join("sparse")).unwrap();
    sparse.set_len(512 << 20).unwrap();
    let device = match LoopDevice::attach(sparse) {
        Ok(device) => device,
        Err(why) => return skip(&why),
    };
    let options = ["-q", "-F", "-O^has_journal", "-Elazy_itable_init=1"];
    run(std::process::Command::new("mkfs.ext4").args(options).arg(device.node())).unwrap();
    let root = mount_detached("ext4", device.node(), "errors=continue").unwrap();
    let path = format!("/proc/self/fd/{}", root.as_raw_fd());
    let file = bulk_file(Path::new(&path));

    let (piece, mut pacer) = (piece(), Pacer::of(&*file, PACE));
    let error = (0..256).find_map(|number| {
        write_full(&*file, &piece, number * PIECE).unwrap();
        pacer.wrote(number * PIECE, PIECE).err()
    });
    let error = error.unwrap();
    assert!(error.to_string().contains("cannot write") && error.offset.is_some(), "{error}");
    let expected = [Errno::IO, Errno::NOSPC].map(|errno| Some(errno.raw_os_error()));
    assert!(expected.contains(&error.source.raw_os_error()), "{error:?}");
    for again in [pacer.wrote(0, 1).unwrap_err(), pacer.finish().unwrap_err()] {
        assert_eq!(again.source.kind(), error.source.kind());
        assert!(again.source.to_string().contains("write the data again"), "{again:?}");
    }
}
