//! Defines the arguments of `haul wal`.

pub(super) mod examples;
mod format;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haul_append_log::Lsn;

pub(crate) use format::RecordFormat;

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct WalArgs {
    #[command(subcommand)]
    pub(crate) command: WalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WalCommand {
    /// Print the records of a log
    ///
    /// Each line has the LSN, the length and the first bytes of a record. Damage is reported on
    /// stderr; all other records are printed. A process may be writing the log; the last records
    /// may then not be durable yet.
    #[command(after_long_help = examples::DUMP)]
    Dump(WalDumpArgs),
    /// Read all records of a log and verify their checksums
    ///
    /// A torn tail is not damage: a crash interrupted the write, or another process is writing.
    #[command(after_long_help = examples::VERIFY)]
    Verify(WalVerifyArgs),
    /// Print the last records of a log, and follow it
    #[command(after_long_help = examples::TAIL)]
    Tail(WalTailArgs),
    /// Copy a log to a new directory, up to its last complete record
    ///
    /// A process may be writing the log. The copy has the LSNs of the original and can be opened
    /// like it. It is made in the directory TARGET.haul-copy, verified, synced, and renamed to
    /// TARGET. A damaged log is not copied.
    #[command(after_long_help = examples::COPY)]
    Copy(WalCopyArgs),
    /// Remove old segments of a log, or its newest records
    ///
    /// Removes all segments before the one that contains LSN, except the last one. With --after,
    /// removes the record at LSN and all later ones instead. Refuses a log that a process is
    /// writing, and a damaged log.
    #[command(after_long_help = examples::CUT)]
    Cut(WalCutArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WalDumpArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// LSN of the first record to print, such as 3:4096 [default: the oldest]
    #[arg(long, value_name = "LSN")]
    pub(crate) from: Option<Lsn>,
    /// LSN before which the records to print end [default: the end of the log]
    #[arg(long, value_name = "LSN")]
    pub(crate) to: Option<Lsn>,
    #[command(flatten)]
    pub(crate) format: RecordFormat,
}

#[derive(Debug, Args)]
pub(crate) struct WalVerifyArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WalTailArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// Number of records to print
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) records: usize,
    /// Then print each new record, until a signal ends the command
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) format: RecordFormat,
}

#[derive(Debug, Args)]
pub(crate) struct WalCopyArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// Directory to create
    pub(crate) target: PathBuf,
    /// Print one JSON object: records, segments, end (an LSN) and torn_bytes
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WalCutArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// LSN of a record, such as 3:4096
    pub(crate) lsn: Lsn,
    /// Remove the record at LSN and all later ones
    #[arg(long)]
    pub(crate) after: bool,
    /// Print one JSON object: removed_segments and first_segment; with --after: newest (an LSN)
    #[arg(long)]
    pub(crate) json: bool,
}
