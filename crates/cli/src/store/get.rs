//! `haul store get`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use haul_disk::{Pace, Pacer};
use haul_file_store::{Object, Store};

use super::content;
use crate::args::GetArgs;
use crate::output::Output;
use crate::report::{Exit, Failure, OrFail, Result};

pub(super) fn run(store: &Store, args: &GetArgs) -> Result {
    let (bucket, key) = (&args.from.bucket, &args.from.key);
    let object = store.get(bucket, key).or_fail(|| format!("cannot read {}", args.from))?;
    let range = match args.range {
        None => 0..object.info.bytes,
        Some(range) => range.within(object.info.bytes).map_err(|why| {
            Failure::new(format!("cannot read {}: {why}", args.from)).exit(Exit::Usage)
        })?,
    };
    let name = || args.from.to_string();
    if args.file == Path::new("-") {
        let mut output = Output::new();
        content::read(&object, range, name, |bytes| output.bytes(bytes))?;
        return output.finish();
    }
    if args.file.exists() && !args.file.is_file() {
        // A device or a FIFO takes bytes, but not another file in its place.
        let file = OpenOptions::new().write(true).open(&args.file);
        let file = file.or_fail(|| format!("cannot write {}", args.file.display()))?;
        return write(&object, range, name, file, &args.file);
    }
    replace(&object, range, name, &args.file)
}

/// Writes a file beside `path`, and gives it that name once it is complete.
fn replace(object: &Object, range: Range<u64>, name: impl Fn() -> String, path: &Path) -> Result {
    let cannot = || format!("cannot write {}", path.display());
    // A symbolic link stays one; the file it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_not_there| path.to_owned());
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let file = File::create_new(&unfinished)
        .or_fail(|| format!("cannot write {}", unfinished.display()))?;
    let written = write(object, range, name, file, &unfinished)
        .and_then(|()| fs::rename(&unfinished, &path).or_fail(cannot));
    if written.is_err() {
        // The first failure is the one to tell.
        fs::remove_file(&unfinished).ok();
    }
    written
}

fn write(
    object: &Object,
    range: Range<u64>,
    name: impl Fn() -> String,
    file: File,
    path: &Path,
) -> Result {
    let cannot = || format!("cannot write {}", path.display());
    // A big object must not make everybody else on the machine wait for its pages.
    let descriptor = file.as_fd();
    let (mut at, mut pacer) = (0, Pacer::of(&descriptor, Pace::default()));
    content::read(object, range, name, |bytes| {
        (&file).write_all(bytes).or_fail(cannot)?;
        pacer.wrote(at, bytes.len() as u64).or_fail(cannot)?;
        at += bytes.len() as u64;
        Ok(())
    })
}
