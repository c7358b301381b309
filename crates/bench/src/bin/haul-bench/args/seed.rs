//! Defines the experiments of `haul bench seed`.

use clap::Subcommand;
use haul_bench::seed::{crossover, direct, fiemap, fill, gain, haystack, index, journal, mmap};
use haul_bench::seed::{order, prefault, pwrite, readahead, sorted, splice, stall, stdio, threads};
use haul_bench::seed::{trace, writeback};

use super::{Measured, examples};

/// An experiment of one of the texts.
#[derive(Debug, Subcommand)]
pub(crate) enum SeedCommand {
    /// Text 000: a file written twice in records of 4 KiB, by preparation and sync
    ///
    /// A growing, a reserved, a zeroed and a filled file, without a sync, with fdatasync or fsync
    /// after each record, and opened with O_DSYNC or O_SYNC. Rows have the time for a GiB and the
    /// requests per record; with a journal and without it on virtual disks. By default it takes
    /// about a minute.
    #[command(after_long_help = examples::SEED_FILL)]
    Fill(Measured<fill::Options>),
    /// Text 001: the block trace of one synced write to a growing, a reserved and a filled file
    ///
    /// Each line is a step of a request, as blktrace shows it: time, action, task, flags, sector
    /// and bytes. Needs root and the kernel's tracing.
    #[command(after_long_help = examples::SEED_TRACE)]
    Trace(Measured<trace::Options>),
    /// Text 003: the windows of the kernel's readahead, in their order
    ///
    /// Reads a file in ascending order, with one random read in between, and at random offsets, and
    /// shows how many bytes the kernel read for each call. Needs root.
    #[command(after_long_help = examples::SEED_READAHEAD)]
    Readahead(Measured<readahead::Options>),
    /// Text 003: threads that write to one file, and to one file each
    ///
    /// Without a sync, in the page cache: the lock of the inode lets one writer of a file write at
    /// a time. Rows have rates, latencies, CPU time and sleeps, and reads of one file beside them.
    #[command(after_long_help = examples::SEED_PWRITE)]
    Pwrite(Measured<pwrite::Options>),
    /// Text 000: small writes and reads by system calls, and through a buffer of the program
    ///
    /// write and read of 16 B to 4 KiB, and the same through a buffer of 4 KiB as fwrite and fread
    /// have one. Rows have rates and system calls per MiB.
    #[command(after_long_help = examples::SEED_STDIO)]
    Stdio(Measured<stdio::Options>),
    /// Text 000: writing from fresh memory, and from memory that was touched before
    ///
    /// Rows have rates and minor page faults per MiB.
    #[command(after_long_help = examples::SEED_PREFAULT)]
    Prefault(Measured<prefault::Options>),
    /// Text 003: records of 100 B at random offsets, in arrival order and sorted
    ///
    /// On a simulated spinning drive with its own clock, without an index, with the index alone,
    /// and with index entries in between and afterwards. Needs root and /dev/fuse.
    #[command(after_long_help = examples::SEED_SORTED)]
    Sorted(Measured<sorted::Options>),
    /// Text 004: a directory read in directory order, by inode and by physical position
    ///
    /// The same as haul bench read-order with small files in one directory that was written once.
    /// Needs root and /dev/fuse.
    #[command(after_long_help = examples::SEED_ORDER)]
    Order(Measured<order::Options>),
    /// Text 004: the cost of asking for the positions of 50,000 files
    ///
    /// open alone, and with FIEMAP, of 10,000 files by default. Needs no root.
    #[command(after_long_help = examples::SEED_FIEMAP)]
    Fiemap(Measured<fiemap::Options>),
    /// Text 003: random reads with 1 to 256 threads
    ///
    /// The same as haul bench random-read with fewer numbers of readers.
    #[command(after_long_help = examples::SEED_THREADS)]
    Threads(Measured<threads::Options>),
    /// Text 003: the size of the data above which direct reads are faster than the page cache
    ///
    /// The same as haul bench direct-or-cached with data of up to eight times the memory. Needs
    /// root.
    #[command(after_long_help = examples::SEED_CROSSOVER)]
    Crossover(Measured<crossover::Options>),
    /// Text 003: stalls of writers at the dirty limit of the kernel
    ///
    /// The same as haul bench pacing with a low dirty limit. Needs root.
    #[command(after_long_help = examples::SEED_STALL)]
    Stall(Measured<stall::Options>),
    /// Text 002: a file relayed to a socket through a new pipe, a reused pipe, and by copies
    ///
    /// Rows have rates, CPU time and system calls per body.
    #[command(after_long_help = examples::SEED_SPLICE)]
    Splice(Measured<splice::Options>),
    /// Text 000: ext4 with a journal and without one, in the same rounds
    ///
    /// Synced records of 4 KiB in a growing file and in one prepared with ZERO_RANGE, each written
    /// twice. Rows have latencies and the requests per record. Needs root.
    #[command(after_long_help = examples::SEED_JOURNAL)]
    Journal(Measured<journal::Options>),
    /// Text 000: how much durable writes and reads gain from the best method
    ///
    /// Appends with fsync by one writer, and a group commit of many; random reads by one reader,
    /// and by many; sequential reads through the page cache, and long direct ones.
    #[command(after_long_help = examples::SEED_GAIN)]
    Gain(Measured<gain::Options>),
    /// Text 000: random pages stored through a mapping, and by pwrite
    ///
    /// On a simulated spinning drive with its own clock, which needs root and /dev/fuse, and, with
    /// --dir, on the disk of a directory.
    #[command(after_long_help = examples::SEED_MMAP)]
    Mmap(Measured<mmap::Options>),
    /// Text 000: reads of a disk for a cold small file, and for an object of the file store
    ///
    /// On a simulated drive that counts its requests. Needs root and /dev/fuse.
    #[command(after_long_help = examples::SEED_HAYSTACK)]
    Haystack(Measured<haystack::Options>),
    /// Text 002: one block read in a loop, direct and through the page cache
    ///
    /// Rows have the bytes that come from the disk per second, as iotop shows them.
    #[command(after_long_help = examples::SEED_DIRECT)]
    Direct(Measured<direct::Options>),
    /// Text 003: an index written between sorted records, after them, and once from memory
    ///
    /// On a simulated spinning drive with its own clock: times, seeks and requests of the records
    /// alone, the index alone, and of both. Needs root and /dev/fuse.
    #[command(after_long_help = examples::SEED_INDEX)]
    Index(Measured<index::Options>),
    /// Text 003: pages that the kernel writes at a time, with little memory and above its limit
    ///
    /// Traces the writeback of a file that is never synced, with limited memory, and above the
    /// background limit. Needs root, the memory cgroup and the kernel's tracing.
    #[command(after_long_help = examples::SEED_WRITEBACK)]
    Writeback(Measured<writeback::Options>),
}
