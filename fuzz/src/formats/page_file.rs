//! Page files and patches whose logs a target edits.

use std::sync::{Arc, LazyLock};

use haul_append_log::SyncMethod;
use haul_disk::{Disk, Durability, Open, Subdir, read_full, write_full};
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_sorted_write::{Options, PageFile, PageFileOptions, Patch, PatchState, SortedWriter};

use crate::edit::Editable;
use crate::formats::segment;

const NAME: &str = "data";
const FILE_BYTES: usize = 20_000;

/// The number of bytes of a file that are compared. A forged write can extend a file by any length.
const COMPARED_BYTES: usize = 64 << 10;

/// A file and its log before the log is edited.
#[derive(Debug)]
pub(crate) struct PageFileBase {
    /// The disk with both.
    pub(crate) medium: Medium,
    /// The segments of the log.
    pub(crate) files: Vec<Editable>,
    /// `true` if the log is that of a patch.
    is_patch: bool,
    /// The possible contents of the file.
    states: Vec<Vec<u8>>,
}

/// A page file with writes before and after a checkpoint, and a patch that was committed.
pub(crate) static PAGE_FILES: LazyLock<Vec<PageFileBase>> =
    LazyLock::new(|| vec![PageFileBase::page_file(), PageFileBase::patch()]);

fn options() -> PageFileOptions {
    PageFileOptions {
        sorted: Options { generation_bytes: Some(1 << 20), ..Options::default() },
        log_bytes_max: 8 << 20,
        log: haul_append_log::Options {
            buffer_bytes: 64 << 10,
            reserve_bytes: 4096,
            idle_watermark_ms: 0,
            sync_method: Some(SyncMethod::Buffered),
            recovery_threads: 1,
            ..haul_append_log::Options::default()
        },
    }
}

/// Returns the offsets and bytes of the writes.
fn writes() -> impl Iterator<Item = (usize, Vec<u8>)> {
    (1..=12_u8)
        .map(|number| (usize::from(number) * 4567 % 18_000, vec![number; usize::from(number) * 97]))
}

fn log_of(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(Subdir::new(Arc::new(disk.clone()), "log"))
}

fn new_disk() -> MemoryDisk {
    let disk = MemoryDisk::default();
    let file = disk.create(NAME, Open::default()).unwrap();
    write_full(&*file, &[0xfe; FILE_BYTES], 0).unwrap();
    file.sync(Durability::Everything).unwrap();
    disk.create_dir("log").unwrap();
    disk.sync_dir("").unwrap();
    disk
}

/// Returns the first bytes of the file, and its length.
fn content(disk: &MemoryDisk) -> (Vec<u8>, u64) {
    let file = disk.open(NAME, Open { read_only: true, ..Open::default() }).unwrap();
    let mut bytes = vec![0; COMPARED_BYTES];
    let read = read_full(&*file, &mut bytes, 0).unwrap();
    bytes.truncate(read);
    (bytes, file.bytes().unwrap())
}

impl PageFileBase {
    fn new(disk: &MemoryDisk, is_patch: bool) -> Self {
        let mut medium = disk.medium().cut(Survival::Everything);
        let is_segment = |name: &&str| name.starts_with("log/") && name.ends_with(".segment");
        let names: Vec<String> = medium.file_names().filter(is_segment).map(Into::into).collect();
        let editable = |name: &String| {
            segment::assert_checksums(name, &medium.file(name));
            let places = segment::places(&medium.file(name));
            Editable { name: name.clone(), places }
        };
        let files = names.iter().map(editable).collect();
        let mut state = vec![0xfe; FILE_BYTES];
        let mut states = vec![state.clone()];
        for (offset, bytes) in writes() {
            state[offset..offset + bytes.len()].copy_from_slice(&bytes);
            states.push(state.clone());
        }
        Self { medium, files, is_patch, states }
    }

    fn page_file() -> Self {
        let disk = new_disk();
        let (page_file, _) = PageFile::open(&disk, NAME, &log_of(&disk), options()).unwrap();
        for (number, (offset, bytes)) in writes().enumerate() {
            page_file.write(offset as u64, &bytes).unwrap().wait().unwrap();
            if number == 4 {
                page_file.checkpoint().unwrap();
            }
        }
        Self::new(&disk, false)
    }

    fn patch() -> Self {
        let disk = new_disk();
        let mut patch = Patch::begin(&log_of(&disk), NAME, FILE_BYTES as u64, 0).unwrap();
        for (offset, bytes) in writes() {
            patch.add(offset as u64, &bytes).unwrap();
        }
        patch.commit().unwrap();
        Self::new(&disk, true)
    }

    /// Recovers the file by an edited log. Without set checksums, the file has then a state that it
    /// had, or the log is refused. A second recovery changes nothing.
    pub(crate) fn check(&self, medium: &Medium, has_checksums: bool) {
        let disk = MemoryDisk::on(medium);
        let is_recovered = if self.is_patch { apply_patch(&disk) } else { reopen(&disk) };
        let found = content(&disk);
        if !has_checksums {
            // A patch that is not applied, or not committed, leaves the file as it is.
            let is_end =
                |state: &Vec<u8>| *state == self.states[0] || Some(state) == self.states.last();
            let is_possible = |state: &&Vec<u8>| !self.is_patch || is_end(state);
            let is_found = self.states.iter().filter(is_possible).any(|state| *state == found.0);
            assert!(is_found, "the file has a state that it never had");
        }
        if is_recovered {
            let is_again = if self.is_patch { apply_patch(&disk) } else { reopen(&disk) };
            assert!(is_again, "the second recovery fails");
            assert!(content(&disk) == found, "the second recovery changes the file");
        }
    }
}

/// Opens and closes the page file. Returns `false` if its log is refused.
fn reopen(disk: &MemoryDisk) -> bool {
    let opened = PageFile::open(disk, NAME, &log_of(disk), options());
    opened.and_then(|(page_file, _)| page_file.close()).is_ok()
}

/// Applies the patch, if there is one. Returns `false` if its log is refused.
fn apply_patch(disk: &MemoryDisk) -> bool {
    match Patch::recover(&log_of(disk), NAME, FILE_BYTES as u64) {
        Ok(PatchState::Absent | PatchState::Obsolete { .. }) => true,
        Ok(PatchState::Committed(patch)) => {
            let writer = SortedWriter::start(options().sorted).unwrap();
            let file = writer.open(disk, NAME).unwrap();
            let applied = patch.apply(&writer, file, &mut |_, _| {});
            applied.and_then(|()| writer.close()).is_ok()
        }
        Err(_) => false,
    }
}
