//! `haul store get`: writes an object to a file or stdout.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use haul_disk::{Pace, Pacer};
use haul_file_store::Object;
use haul_store_pool::Pool;
use haul_transfer::pieces;

use super::failure::cannot_read;
use super::stat;
use crate::args::GetArgs;
use crate::output::{Output, print_line};
use crate::report::{Exit, Failure, OrFail, Result};

pub(super) fn run(store: &Pool, args: &GetArgs) -> Result {
    check_stdout(args.json, &args.file)?;
    let (bucket, key) = (&args.from.bucket, &args.from.key);
    let object = match args.version_id {
        Some(version) => store.get_version(bucket, key, version),
        None => store.get(bucket, key),
    };
    let object = object.or_fail(|| format!("cannot read {}", args.from))?;
    let range = match args.range {
        None => 0..object.info.bytes,
        Some(range) => range.within(object.info.bytes).map_err(|reason| {
            Failure::new(format!("cannot read {}: {reason}", args.from)).exit(Exit::Usage)
        })?,
    };
    let name = args.from.to_string();
    let read_bytes = range.end - range.start;
    if args.file == Path::new("-") {
        let mut output = Output::new();
        for piece in pieces(&object, range) {
            output.bytes(&piece.map_err(|error| cannot_read(&name, error))?)?;
        }
        return output.finish();
    }
    if is_device(&args.file) {
        write(&object, range, &name, open_device(&args.file)?, &args.file)?;
    } else {
        replace(&args.file, |file, unfinished| write(&object, range, &name, file, unfinished))?;
    }
    if !args.json {
        return Ok(());
    }
    let mut json = stat::json(bucket, &object);
    json["read_bytes"] = read_bytes.into();
    print_line(json)
}

/// Fails if a result would be printed as JSON to a stdout that receives data.
pub(super) fn check_stdout(is_json: bool, file: &Path) -> Result {
    if is_json && file == Path::new("-") {
        let failure = Failure::new("--json prints to stdout, which receives the data");
        return Err(failure.advise("name a file for the data").exit(Exit::Usage));
    }
    Ok(())
}

/// Returns `true` if the file is a device or FIFO, which is opened for writing instead of being
/// replaced by a file.
pub(super) fn is_device(path: &Path) -> bool {
    path.exists() && !path.is_file()
}

/// Opens a device or FIFO for writing.
pub(super) fn open_device(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).open(path);
    file.or_not_start(|| format!("cannot write {}", path.display()))
}

/// Writes to a temporary file beside `path` with `write`, which receives its path, too, and renames
/// the complete file to `path`.
pub(super) fn replace<T>(path: &Path, write: impl FnOnce(File, &Path) -> Result<T>) -> Result<T> {
    let cannot = || format!("cannot write {}", path.display());
    // If `path` is a symbolic link, its target is replaced instead of the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_missing| path.to_owned());
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let file = File::create_new(&unfinished)
        .or_not_start(|| format!("cannot write {}", unfinished.display()))?;
    let written = write(file, &unfinished).and_then(|done| {
        fs::rename(&unfinished, &path).or_fail(cannot)?;
        Ok(done)
    });
    if written.is_err() {
        // An error of the removal is ignored, because the earlier error is reported.
        fs::remove_file(&unfinished).ok();
    }
    written
}

fn write(object: &Object, range: Range<u64>, name: &str, file: File, path: &Path) -> Result {
    let cannot = || format!("cannot write {}", path.display());
    // The pacer starts writeback in small steps, so that a big object does not stall other writers.
    let descriptor = file.as_fd();
    let (mut at, mut pacer) = (0, Pacer::of(&descriptor, Pace::default()));
    for piece in pieces(object, range) {
        let bytes = piece.map_err(|error| cannot_read(name, error))?;
        (&file).write_all(&bytes).or_fail(cannot)?;
        pacer.wrote(at, bytes.len() as u64).or_fail(cannot)?;
        at += bytes.len() as u64;
    }
    Ok(())
}
