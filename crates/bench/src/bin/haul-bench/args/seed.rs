//! Defines the experiments of `haul bench seed`.

use clap::Subcommand;
use haul_bench::seed::{fill, prefault, pwrite, readahead, stdio, trace};

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
    /// Each line is a step of a request, as blktrace shows it: time, action, task, flags, sector and
    /// bytes. Needs root and the kernel's tracing.
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
    /// Without a sync, in the page cache: the lock of the inode lets one writer of a file write at a
    /// time. Rows have rates, latencies, CPU time and sleeps, and reads of one file beside them.
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
}
