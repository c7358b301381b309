//! Names the methods of writing records and an index, and combines them. Performs no I/O.

use super::records::Shape;
use crate::named::named;

named! {
    /// The method by which records are written.
    pub enum Method {
        /// `pwrite` in arrival order and one `fdatasync` per batch: the kernel sorts the writes,
        /// and reads partly written pages one by one in arrival order.
        Random = "random",
        /// As [`Method::Random`] with `O_DIRECT`; the program reads the partly written pages.
        Direct = "random-direct",
        /// The batch is sorted by offset, without the parts that later records overwrite, and then
        /// written as with [`Method::Random`].
        Sorted = "sorted",
        /// The batch is sorted as with [`Method::Sorted`], then written as with [`Method::Direct`].
        SortedDirect = "sorted-direct",
        /// The pages are copied into a mapping of the file in arrival order, with one `msync` per
        /// batch: the kernel reads each page that is not cached when it is first written.
        Mapped = "random-mapped",
        /// The batch is sorted as with [`Method::Sorted`], then written as with [`Method::Mapped`].
        SortedMapped = "sorted-mapped",
        /// `haul_sorted_write::SortedWriter` sorts and writes the batch. The batch ends with a
        /// barrier, a call that makes all earlier writes durable.
        Merged = "sorted-merged",
    }
}

impl Method {
    /// Returns `true` if records are written through a mapping.
    pub(super) fn is_mapped(self) -> bool {
        matches!(self, Self::Mapped | Self::SortedMapped)
    }
}

named! {
    /// The order in which index entries are written. Each record has one entry, in a small file.
    pub enum Index {
        /// No index is written.
        None = "no",
        /// An entry is written right after a record.
        Mixed = "mixed",
        /// All entries of a batch are written after its records; [`Method::Merged`] sorts them.
        Separate = "apart",
        /// The entries are written, and no records.
        Alone = "alone",
        /// The entries of all batches stay in memory until the last batch is durable. Then they
        /// are sorted, without those that later entries overwrite, and written with one sync.
        InMemory = "in-memory",
    }
}

/// A method, an index and a batch length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) shape: Shape,
    pub(super) method: Method,
    pub(super) index: Index,
    /// The number of records between two syncs.
    pub(super) batch: usize,
}

/// Returns the cells of all methods, by batch and index. [`Method::Merged`] writes its index apart.
pub(super) fn cells(
    shape: Shape,
    methods: &[Method],
    batches: &[usize],
    indexes: &[Index],
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for batch in batches.iter().copied() {
        for index in indexes.iter().copied() {
            for method in methods.iter().copied() {
                let is_apart = method == Method::Merged && index != Index::None;
                let index = if is_apart { Index::Separate } else { index };
                let cell = Cell { shape, method, index, batch };
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
    }
    cells
}
