//! `haul store import-tar`: stores the files in a tar archive.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use haul_transfer::{TarError, TarImport, TarImported};

use crate::args::{ImportTarArgs, OpenArgs};
use crate::open_store::{IfMissing, with_store};
use crate::output::{Name, print_summary};
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::signals::Stop;
use crate::store::import::{Events, create_bucket, report_special, summary_json};
use crate::units::Count;

/// The length of a read of the archive.
const READ_BYTES: usize = 256 << 10;

pub(crate) fn run(open: &OpenArgs, args: &ImportTarArgs) -> Result {
    // The archive is opened before the store: a mistyped path must not create a store.
    let archive = open_archive(&args.file)?;
    let mut archive = io::BufReader::with_capacity(READ_BYTES, archive);
    with_store(open, "import-tar", IfMissing::Create, |store, _damage| {
        create_bucket(store, &args.to.bucket)?;
        let stop = Stop::on_signals("members in progress")?;
        let import = TarImport {
            store,
            bucket: &args.to.bucket,
            prefix: &args.to.rest,
            big_object_bytes: open.big_object,
            skip_existing: args.skip_existing,
        };
        execute(&import, &mut archive, &stop, args)
    })
}

fn open_archive(path: &Path) -> Result<Box<dyn Read>> {
    if path != Path::new("-") {
        let file = File::open(path).or_not_start(|| format!("cannot read {}", path.display()))?;
        return Ok(Box::new(file));
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::new("cannot read an archive from a terminal")
            .advise("name a file, or connect a pipe to stdin")
            .exit(Exit::Usage));
    }
    Ok(Box::new(stdin.lock()))
}

fn execute(
    import: &TarImport<'_>,
    archive: &mut dyn Read,
    stop: &Stop,
    args: &ImportTarArgs,
) -> Result {
    let progress = Progress::new(args.progress.show, "file", Amount::default());
    let (done, result) = import.run(archive, &Events { progress: &progress, stop });
    progress.set(Amount { things: done.imported.files, bytes: done.imported.bytes });
    // The summary is printed even after a failure: the files that it counts are stored.
    let summary = progress.finish();
    let mut json = summary_json(import.bucket, &done.imported, &summary, args.skip_existing);
    json["skipped_links"] = done.links.into();
    json["skipped_special"] = done.special.into();
    json["complete"] = done.is_complete.into();
    print_summary(args.json, json, &format!("imported {summary}"))?;
    report_skipped(&done);
    result.map_err(|error| failure(&args.file, error, done.imported.files))?;
    if let Some(exit) = stop.requested().filter(|_| !done.is_complete) {
        return Err(Failure::new("interrupted: the rest of the archive was not imported")
            .advise("continue with the same command and --skip-existing")
            .exit(exit));
    }
    match done.imported.failed {
        0 => Ok(()),
        count => Err(Failure::new(format!("{} not imported (see above)", Count(count, "file")))),
    }
}

fn report_skipped(done: &TarImported) {
    if done.imported.same > 0 {
        let files = Count(done.imported.same, "file");
        print_message(&format!("skipped {files}, already stored"));
    }
    if done.links > 0 {
        print_message(&format!("note: skipped {}", Count(done.links, "symbolic link")));
    }
    report_special(done.special);
}

fn failure(file: &Path, error: TarError, stored: u64) -> Failure {
    if let TarError::Store { key, source } = error {
        return Failure::new(format!("cannot import {}", Name(&key))).because(source);
    }
    let name = if file == Path::new("-") { Path::new("stdin") } else { file };
    let stored = Count(stored, "file");
    Failure::new(format!("cannot import all of {}", name.display()))
        .because(error)
        .advise(format!("{stored} before that place are stored"))
}
