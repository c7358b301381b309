//! `haul sum`: sums of files, read in the order the disk likes and told in the order of their
//! paths.

mod check;
mod hash;
mod line;
mod turns;
mod wants;

use std::ffi::OsStr;
use std::io::{IsTerminal, Read, stderr, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{
    Cache, Error, ReadOptions, ReadStats, Skipped, Tree, WalkEvents, WalkOptions, walk,
};
use serde_json::json;

use crate::args::{Hash, SumArgs};
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, OrFail, Result, say};
use crate::units::Count;

use hash::{Job, hash};
use line::Form;

/// The name of the standard input.
const STDIN: &str = "-";

/// How much is read from the standard input at a time.
const PIECE_BYTES: usize = 256 << 10;

pub(crate) fn run(args: &SumArgs, verbose: u8) -> Result {
    let troubles = Troubles::default();
    let mut output = Output::new();
    let done = match &args.check {
        Some(list) => check::run(args, list, &mut output, &troubles, verbose),
        None => sums(args, &mut output, &troubles, verbose),
    };
    // What was found until then is told, whatever happened.
    let told = output.finish();
    done.and(told)?;
    troubles.result()
}

fn sums(args: &SumArgs, output: &mut Output, troubles: &Troubles, verbose: u8) -> Result {
    let mut roots = args.paths.clone();
    if let Some(list) = &args.files_from {
        roots.extend(paths_in(list, args.null)?);
    } else if roots.is_empty() {
        roots.push(STDIN.into());
    }
    // The standard input stands among the files where it was named.
    for (index, paths) in roots.split(|path| path == Path::new(STDIN)).enumerate() {
        if index > 0 {
            let (sum, bytes) = sum_of_stdin(args.hash.into())?;
            tell(args, output, STDIN.as_bytes(), &sum, bytes)?;
        }
        if !paths.is_empty() {
            sums_of(args, paths, output, troubles, verbose)?;
        }
    }
    Ok(())
}

fn sums_of(
    args: &SumArgs,
    paths: &[PathBuf],
    output: &mut Output,
    troubles: &Troubles,
    verbose: u8,
) -> Result {
    let tree = found(paths, troubles);
    let kind = args.hash.into();
    let jobs: Vec<_> = tree.ids().map(|file| Job { file, kind }).collect();
    let progress = progress(&tree);
    let mut path = Vec::new();
    let stats = hash(&tree, &jobs, &read_options(args), &progress, |index, outcome| {
        let file = jobs[index].file;
        match outcome {
            Ok(sum) => {
                tree.path_into(file, &mut path);
                tell(args, output, &path, &sum, tree.meta(file).bytes)
            }
            Err(error) => {
                troubles.tell(&progress, &error);
                Ok(())
            }
        }
    });
    progress.finish();
    stats.map(|stats| tell_devices(&stats, verbose))
}

/// One line of the output.
fn tell(args: &SumArgs, output: &mut Output, path: &[u8], sum: &Digest, bytes: u64) -> Result {
    if args.json {
        return output.line(json_line(path, sum, args.hash, bytes));
    }
    let mut line = Vec::with_capacity(path.len() + 80);
    let form = Form { tag: args.tag, zero: args.zero };
    line::write(&mut line, args.hash.into(), sum, path, form);
    output.bytes(&line)
}

fn json_line(path: &[u8], sum: &Digest, hash: Hash, bytes: u64) -> serde_json::Value {
    let name = hash.to_possible_value().map(|value| value.get_name().to_owned());
    let mut line = json!({
        "path": String::from_utf8_lossy(path),
        "hash": name,
        "sum": sum.to_string(),
        "bytes": bytes,
    });
    if std::str::from_utf8(path).is_err() {
        // Text cannot tell it, so here are its bytes.
        line["path_hex"] = haul_bulk_read::digest::to_hex(path).into();
    }
    line
}

/// All files below `paths`, the hidden too.
fn found(paths: &[PathBuf], troubles: &Troubles) -> Tree {
    let options = WalkOptions { hidden: true, sort: true, ..WalkOptions::default() };
    walk(paths, &options, &Events { paths, troubles })
}

fn read_options(args: &SumArgs) -> ReadOptions<'static> {
    ReadOptions {
        cache: if args.spare_cache { Cache::Spare } else { Cache::Keep },
        kind: args.disk_kind.map(Into::into),
        threads: args.threads.map(usize::from),
        ..ReadOptions::default()
    }
}

/// The bar, unless the lines go to the same terminal.
fn progress(tree: &Tree) -> Progress {
    let bytes = tree.ids().map(|id| tree.meta(id).bytes).fold(0, u64::saturating_add);
    let all = Amount { things: tree.len() as u64, bytes };
    if stdout().is_terminal() && stderr().is_terminal() {
        Progress::hidden("file", all)
    } else {
        Progress::new("file", all)
    }
}

/// How each disk was read, for whoever wants to know.
fn tell_devices(stats: &ReadStats, verbose: u8) {
    for device in stats.devices.iter().filter(|_| verbose > 0) {
        say(&format!(
            "{}: {:?} ({:?}), {}, {} not in memory before",
            device.name,
            device.kind,
            device.decided,
            Count(device.threads as u64, "thread"),
            Count(device.cold, "file"),
        ));
    }
}

fn sum_of_stdin(kind: HashKind) -> Result<(Digest, u64)> {
    let (mut hasher, mut bytes) = (kind.hasher(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    let mut input = std::io::stdin().lock();
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok((hasher.finish(), bytes)),
            Ok(read) => {
                hasher.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(error).or_fail(|| "cannot read the standard input".to_owned());
            }
        }
    }
}

/// All of a file, or of the standard input.
fn text_of(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = if path == Path::new(STDIN) {
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        let what = format!("cannot read the list {}", path.display());
        Failure::new(what).because(error).exit(Exit::Failed)
    })
}

fn paths_in(list: &Path, null: bool) -> Result<Vec<PathBuf>> {
    let end = if null { 0 } else { b'\n' };
    let text = text_of(list)?;
    let names = text.split(|byte| *byte == end).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()))).collect())
}

fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// What the walk meets.
struct Events<'a> {
    paths: &'a [PathBuf],
    troubles: &'a Troubles,
}

impl WalkEvents for Events<'_> {
    fn failed(&self, error: Error) {
        self.troubles.0.fetch_add(1, Ordering::Relaxed);
        say(&error.to_string());
    }

    fn skipped(&self, path: &Path, why: Skipped) {
        // Pipes and the like below a directory are no files; one that was named should be.
        if why == Skipped::NotAFile && self.paths.iter().any(|named| named == path) {
            self.troubles.0.fetch_add(1, Ordering::Relaxed);
            say(&format!("{} is no file and no directory: it is left out", path.display()));
        }
    }
}

/// What failed, counted; it was told as it happened, and the rest went on.
#[derive(Debug, Default)]
struct Troubles(AtomicU64);

impl Troubles {
    fn tell(&self, progress: &Progress, error: &Error) {
        self.0.fetch_add(1, Ordering::Relaxed);
        progress.say(&error.to_string());
    }

    /// Something is not as it should be, and was told elsewhere.
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn result(&self) -> Result {
        if self.0.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(Failure::told()) }
    }
}
