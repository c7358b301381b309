//! Computes the digests of the blocks of files.

use std::ops::ControlFlow;
use std::path::PathBuf;

use haul_bulk_read::digest::{HashKind, Hasher};
use haul_bulk_read::{Consumer, FileId, FileStatus, ReadOptions, ReadRequest, ReadSummary, Tree};
use parking_lot::Mutex;

use super::events::Events;
use super::plan::{BlockDigest, Place};
use crate::error::Error;
use crate::file_systems::FileSystems;
use crate::search::Phase;

/// The digests of the blocks of a tree.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) blocks: Vec<BlockDigest>,
    /// The number of files read.
    pub(super) files: u64,
    /// The number of bytes read.
    pub(super) bytes: u64,
}

/// Reads all files of `tree`, each inode once, but no interfaces to the kernel. Blocks in holes
/// have no digest: they take no space. A file that cannot be read, or that changes meanwhile, is
/// reported and left out.
pub(super) fn scan(
    tree: &Tree,
    block_bytes: u64,
    read: &ReadOptions<'_>,
    events: &dyn Events,
) -> Scan {
    let file_systems = &FileSystems::of(tree);
    let mut files = one_name_each(tree);
    files.retain(|file| file_systems.has_known_length(tree, *file));
    let requests: Vec<_> = files.into_iter().map(ReadRequest::whole).collect();
    let bytes = requests.iter().map(|request| tree.meta(request.file).bytes).sum();
    events.phase(Phase::Hashing, requests.len() as u64, bytes);
    let consumer = Blocks {
        tree,
        file_systems,
        requests: &requests,
        block_bytes,
        events,
        found: Mutex::default(),
    };
    let stats = haul_bulk_read::read(tree, &requests, read, &consumer);
    let blocks = consumer.found.into_inner();
    Scan { blocks, files: stats.requests, bytes: stats.bytes }
}

/// Returns one name of each inode. Symbolic links are left out.
fn one_name_each(tree: &Tree) -> Vec<FileId> {
    let mut files: Vec<_> =
        tree.ids().filter(|file| !tree.is_link(*file) && tree.meta(*file).bytes > 0).collect();
    let inode = |file: &FileId| (tree.meta(*file).device, tree.meta(*file).inode);
    files.sort_unstable_by_key(|file| (inode(file), *file));
    files.dedup_by_key(|file| inode(file));
    files.sort_unstable();
    files
}

struct Blocks<'a> {
    tree: &'a Tree,
    file_systems: &'a FileSystems,
    requests: &'a [ReadRequest],
    block_bytes: u64,
    events: &'a dyn Events,
    found: Mutex<Vec<BlockDigest>>,
}

/// The blocks of a file up to the position of the read.
struct FileBlocks {
    file: FileId,
    /// The number of its file system.
    file_system: u64,
    hasher: Hasher,
    /// The offset of the next byte.
    position: u64,
    /// `true` if the current block has bytes that are not in a hole.
    has_data: bool,
    blocks: Vec<BlockDigest>,
    is_changed: bool,
}

impl FileBlocks {
    /// Adds the next bytes, which end within the current block or at its end.
    fn add(&mut self, bytes: &[u8], block_bytes: u64) {
        self.hasher.update(bytes);
        self.has_data = true;
        self.advance(bytes.len() as u64, block_bytes);
    }

    /// Adds the next bytes, which are zeros in a hole.
    fn add_hole(&mut self, mut bytes: u64, block_bytes: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        while bytes > 0 {
            let left = block_bytes - self.position % block_bytes;
            if left == block_bytes && bytes >= block_bytes {
                let whole = bytes / block_bytes * block_bytes;
                (self.position, bytes) = (self.position + whole, bytes - whole);
                continue;
            }
            let step = left.min(bytes).min(ZEROS.len() as u64);
            self.hasher.update(&ZEROS[..usize::try_from(step).unwrap_or(0)]);
            bytes -= step;
            self.advance(step, block_bytes);
        }
    }

    fn advance(&mut self, bytes: u64, block_bytes: u64) {
        self.position += bytes;
        if self.position.is_multiple_of(block_bytes) {
            self.end_block(block_bytes);
        }
    }

    /// Ends the block that contains the byte before the position.
    fn end_block(&mut self, block_bytes: u64) {
        let mut hasher = std::mem::replace(&mut self.hasher, HashKind::Xxh3.hasher());
        if !std::mem::take(&mut self.has_data) {
            return;
        }
        // Blocks of different file systems cannot be shared.
        hasher.update(&self.file_system.to_le_bytes());
        let digest = hasher.finish();
        let digest = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        // Blocks beyond 2^32 (16 TiB if a block has 4 KiB) are not shared.
        if let Ok(block) = u32::try_from((self.position - 1) / block_bytes) {
            self.blocks.push(BlockDigest { digest, at: Place { file: self.file.0, block } });
        }
    }
}

impl Blocks<'_> {
    fn changed(&self, request: usize) -> Error {
        let path: PathBuf = self.tree.path(self.requests[request].file);
        Error::Changed { path }
    }
}

impl Consumer for Blocks<'_> {
    type State = FileBlocks;

    fn begin(&self, request: usize, opened: &FileStatus) -> FileBlocks {
        let file = self.requests[request].file;
        let meta = self.tree.meta(file);
        let is_same =
            (meta.device, meta.inode, meta.bytes) == (opened.device, opened.inode, opened.bytes);
        FileBlocks {
            file,
            file_system: self.file_systems.number(meta.device),
            hasher: HashKind::Xxh3.hasher(),
            position: 0,
            has_data: false,
            blocks: Vec::new(),
            is_changed: !is_same,
        }
    }

    fn piece(&self, state: &mut FileBlocks, _request: usize, mut bytes: &[u8]) -> ControlFlow<()> {
        if state.is_changed {
            return ControlFlow::Break(());
        }
        while !bytes.is_empty() {
            let left = self.block_bytes - state.position % self.block_bytes;
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let (step, rest) = bytes.split_at(left.min(bytes.len()));
            state.add(step, self.block_bytes);
            bytes = rest;
        }
        ControlFlow::Continue(())
    }

    fn zeros(
        &self,
        state: &mut FileBlocks,
        _request: usize,
        bytes: u64,
    ) -> Option<ControlFlow<()>> {
        state.add_hole(bytes, self.block_bytes);
        Some(ControlFlow::Continue(()))
    }

    fn end(
        &self,
        state: Option<FileBlocks>,
        request: usize,
        outcome: Result<ReadSummary, haul_bulk_read::Error>,
    ) {
        let mut state = match (state, outcome) {
            (_, Err(error)) => return self.events.failed(error.into()),
            (Some(state), Ok(summary)) if !state.is_changed && !summary.grew => state,
            _ => return self.events.failed(self.changed(request)),
        };
        if !state.position.is_multiple_of(self.block_bytes) {
            state.end_block(self.block_bytes);
        }
        self.found.lock().append(&mut state.blocks);
    }

    fn progress(&self, requests: u64, bytes: u64) {
        self.events.progress(requests, bytes);
    }
}
