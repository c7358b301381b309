//! `haul store export-tar`: writes objects to a tar archive.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use haul_disk::{Pace, Pacer};
use haul_file_store::Damage;
use haul_store_pool::Pool;
use haul_transfer::{Exported, TarExport, TarExportError};

use crate::args::ExportTarArgs;
use crate::output::{Name, print_summary};
use crate::progress::{Amount, Progress, Summary};
use crate::report::{Exit, Failure, OrFail, Result};
use crate::signals::Stop;
use crate::store::export::{Events, summary_json};
use crate::store::failure::cannot_read;
use crate::store::get::{check_stdout, is_device, open_device, replace};
use crate::units::Count;

/// The length of a write to the archive.
const WRITE_BYTES: usize = 256 << 10;

/// Exports objects. `found` is the damage found by recovery. If there is any, the export fails even
/// if all listed objects were exported, because damaged objects may be missing from the listing.
pub(crate) fn run(store: &Pool, found: &[Damage], args: &ExportTarArgs) -> Result {
    check_stdout(args.json, &args.file)?;
    let cannot = || format!("cannot export {}", args.from);
    let all = store.bucket(&args.from.bucket).or_fail(cannot)?;
    let stop = Stop::on_signals("the object in progress")?;
    let (bucket, prefix) = (args.from.bucket.as_str(), args.from.rest.as_str());
    // The amount is known only of a whole bucket.
    let whole = Amount { things: all.objects, bytes: all.bytes };
    let amount = if prefix.is_empty() { whole } else { Amount::default() };
    let export = Task { tar: TarExport { store, bucket, prefix }, amount, stop: &stop, args };
    let (exported, summary) = if args.file == Path::new("-") {
        if io::stdout().is_terminal() {
            return Err(Failure::new("cannot write an archive to a terminal")
                .advise("name a file, or connect a pipe to stdout")
                .exit(Exit::Usage));
        }
        export.write(io::stdout().lock(), "stdout")?
    } else if is_device(&args.file) {
        export.write(open_device(&args.file)?, &args.file.display().to_string())?
    } else {
        replace(&args.file, |file, unfinished| export.write_file(&file, unfinished))?
    };
    // The summary is printed once the archive has its name.
    let json = summary_json(&args.from, &exported, &summary);
    print_summary(args.json, json, &format!("exported {summary}"))?;
    if exported.failed > 0 {
        let count = Count(exported.failed, "object");
        return Err(Failure::new(format!("{count} not exported (see above)")));
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new("the store is damaged (see above): the archive may be incomplete"))
}

/// An export to one archive.
struct Task<'a> {
    tar: TarExport<'a>,
    amount: Amount,
    stop: &'a Stop,
    args: &'a ExportTarArgs,
}

impl Task<'_> {
    /// Writes the archive to a file. It is durable afterwards, because the user may delete the
    /// store.
    fn write_file(&self, file: &File, path: &Path) -> Result<(Exported, Summary)> {
        let descriptor = file.as_fd();
        let pacer = Pacer::of(&descriptor, Pace::default());
        let paced = PacedFile { file, at: 0, pacer };
        let exported = self.write(paced, &path.display().to_string())?;
        file.sync_all().or_fail(|| format!("cannot sync {}", path.display()))?;
        Ok(exported)
    }

    /// Writes the archive. `name` is that of the archive in messages.
    fn write(&self, archive: impl Write, name: &str) -> Result<(Exported, Summary)> {
        let progress = Progress::new(self.args.progress.show, "object", self.amount);
        let events = Events { bucket: self.tar.bucket, progress: &progress, stop: self.stop };
        let mut archive = BufWriter::with_capacity(WRITE_BYTES, archive);
        let exported = self.tar.run(&mut archive, &events);
        let exported = exported.map_err(|error| self.failure(error, name))?;
        progress.set(Amount { things: exported.objects, bytes: exported.bytes });
        Ok((exported, progress.finish()))
    }

    fn failure(&self, error: TarExportError, name: &str) -> Failure {
        let bucket = self.tar.bucket;
        match error {
            TarExportError::List(error) => {
                Failure::new(format!("cannot list {bucket}")).because(error)
            }
            TarExportError::Content { key, source } => {
                cannot_read(&format!("{bucket}/{}", Name(&key)), source)
                    .advise("the archive is incomplete: part of the object is in it")
            }
            TarExportError::Write(error) => {
                Failure::new(format!("cannot write {name}")).because(error)
            }
            TarExportError::Stopped => {
                let exit = self.stop.requested().unwrap_or(Exit::Failed);
                Failure::new("interrupted: the archive is incomplete").exit(exit)
            }
        }
    }
}

/// A file whose writeback is started in small steps, so that the archive does not stall other
/// writers.
struct PacedFile<'a> {
    file: &'a File,
    at: u64,
    pacer: Pacer<'a>,
}

impl Write for PacedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.pacer.wrote(self.at, written as u64).map_err(io::Error::other)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
