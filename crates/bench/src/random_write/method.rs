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
        /// As [`Method::Sorted`], but the bytes of all records of a batch are copied into memory
        /// first, as by a program that receives its records. The other methods with `pwrite`
        /// compute the bytes of a record when they write it.
        SortedCopied = "sorted-copied",
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
    pub(crate) enum Index {
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
        InMemory = "in memory",
    }
}

/// A method, an index and a batch length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) shape: Shape,
    pub(crate) method: Method,
    pub(crate) index: Index,
    /// The number of records between two syncs.
    pub(crate) batch: usize,
}

/// Returns the cells of each batch length: every method without an index, then with one.
pub(super) fn cells(
    shape: Shape,
    methods: &[Method],
    batches: &[usize],
    with_index: bool,
) -> Vec<Cell> {
    let alone = methods.iter().map(|method| (*method, Index::None));
    let indexed = methods.iter().filter(|_| with_index).map(|method| match method {
        Method::Merged => (*method, Index::Separate),
        _ => (*method, Index::Mixed),
    });
    let all: Vec<_> = alone.chain(indexed).collect();
    let of = |batch: usize| {
        let cell = move |(method, index)| Cell { shape, method, index, batch };
        all.iter().copied().map(cell)
    };
    batches.iter().flat_map(|batch| of(*batch)).collect()
}
