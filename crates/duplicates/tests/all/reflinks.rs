//! Tests with reflinked copies, which share their blocks.

use std::fs::{self, File};
use std::os::fd::AsFd;

use haul_duplicates::Options;
use haul_testing::{LoopImage, Random};
use rustix::fs::ioctl_ficlone;

use crate::{RecordedEvents, paths, run_search};

#[test]
fn reflinked_copies_are_read_once() {
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let dir = image.mount().join("files");
        fs::create_dir(&dir).unwrap();
        let bytes = Random::from_environment().bytes(20 << 20);
        fs::write(dir.join("original"), &bytes).unwrap();
        let original = File::open(dir.join("original")).unwrap();
        original.sync_all().unwrap();
        for number in 0..8 {
            let copy = File::create(dir.join(format!("copy {number}"))).unwrap();
            ioctl_ficlone(&copy, &original).unwrap();
        }
        let events = RecordedEvents::default();
        let groups = run_search(&[&dir], &Options::default(), &events);
        assert_eq!((groups.len(), groups[0].members.len()), (1, 9), "{kind}");
        let samples = 9 * 17 * 4096;
        assert!(events.bytes() <= bytes.len() as u64 + samples, "{kind}: {} bytes", events.bytes());
    }
}

#[test]
fn reflinked_copy_with_dirty_pages_is_not_a_duplicate() {
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let dir = image.mount().join("files");
        fs::create_dir(&dir).unwrap();
        let bytes = Random::from_environment().bytes(2 << 20);
        fs::write(dir.join("a"), &bytes).unwrap();
        let original = File::open(dir.join("a")).unwrap();
        original.sync_all().unwrap();
        for name in ["b", "c"] {
            let copy = File::create(dir.join(name)).unwrap();
            ioctl_ficlone(&copy, &original).unwrap();
            copy.sync_all().unwrap();
        }
        // Change a byte between the samples. The search itself must write the page back: until
        // then, the extent map shows the shared blocks.
        let file = File::options().write(true).open(dir.join("b")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[bytes[300_000] ^ 1], 300_000).unwrap();
        let groups = run_search(&[&dir], &Options::default(), &RecordedEvents::default());
        assert_eq!(paths(&groups), [["a", "c"].map(|name| dir.join(name)).into()].into(), "{kind}");
    }
}

#[test]
fn same_blocks_of_two_disks_are_two_contents() {
    let images: Vec<_> = (0..2).filter_map(|_| LoopImage::new("xfs", 512 << 20)).collect();
    let [first, second] = &images[..] else { return };
    let extents = [(first, 1), (second, 2)].map(|(image, byte)| {
        let path = image.mount().join("a");
        fs::write(&path, vec![byte; 2 << 20]).unwrap();
        let original = File::open(&path).unwrap();
        original.sync_all().unwrap();
        ioctl_ficlone(File::create(image.mount().join("b")).unwrap(), &original).unwrap();
        haul_disk::extents(&original.as_fd(), 0, u64::MAX, haul_disk::DelayedAllocation::Sync)
    });
    let [one, two] = extents.map(|map| map.unwrap().extents[0].physical);
    assert_eq!(one, two, "the test needs files at one place of two disks");
    let roots = [first.mount(), second.mount()];
    let groups = run_search(&roots, &Options::default(), &RecordedEvents::default());
    let expected = roots.map(|root| ["a", "b"].map(|name| root.join(name)).into());
    assert_eq!(paths(&groups), expected.into());
}
