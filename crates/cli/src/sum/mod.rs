//! `haul sum`: computes checksums of files, and verifies lists of checksums. Files are read in disk
//! order; checksums are printed in the order of paths.

mod check;
mod files;

use std::ffi::OsStr;
use std::io::{IsTerminal, stderr, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DigestCache, Error};
use haul_checksums::{Job, LineFormat, Outcome, hash, hash_cached, hash_stream, write_line};
use serde_json::json;

use crate::args::{SumArgs, SumHash};
use crate::digest_cache::cache_path;
use crate::json::set_path;
use crate::output::Output;
use crate::progress::{Amount, ShowProgress};
use crate::report::{OrFail, Result, print_message};
use files::{Errors, STDIN, find_files, print_devices, progress, read_options, read_text};

pub(crate) fn run(args: &SumArgs, verbose: u8) -> Result {
    let errors = Errors::default();
    let mut output = Output::new();
    let done = match &args.check {
        Some(list) => check::run(args, list, &mut output, &errors, verbose),
        None => sums(args, &mut output, &errors, verbose),
    };
    // The results so far are printed even after a failure.
    let printed = output.finish();
    done.and(printed)?;
    errors.result()
}

fn sums(args: &SumArgs, output: &mut Output, errors: &Errors, verbose: u8) -> Result {
    let mut roots = args.paths.clone();
    if let Some(list) = &args.files_from {
        roots.extend(paths_in(list, args.null)?);
    } else if roots.is_empty() {
        roots.push(STDIN.into());
    }
    // Stdin is hashed at its position among the paths of the command line.
    for (index, paths) in roots.split(|path| path == Path::new(STDIN)).enumerate() {
        if index > 0 {
            let hashed = hash_stream(std::io::stdin().lock(), args.hash().into());
            let (sum, bytes) = hashed.or_fail(|| "cannot read stdin".to_owned())?;
            print_sum(args, output, STDIN.as_bytes(), &sum, bytes)?;
        }
        if !paths.is_empty() {
            sums_of(args, paths, output, errors, verbose)?;
        }
    }
    Ok(())
}

fn sums_of(
    args: &SumArgs,
    paths: &[PathBuf],
    output: &mut Output,
    errors: &Errors,
    verbose: u8,
) -> Result {
    let kind = args.hash().into();
    let path_of_cache = cache_path(args.cache.as_ref(), kind)?;
    // The cache is opened before the files are read: it caches no file that changes later.
    let mut cache = path_of_cache.as_deref().and_then(|path| open_cache(path, kind, errors));
    let tree = find_files(args, paths, errors);
    let jobs: Vec<_> = tree.ids().map(|file| Job { file, kind }).collect();
    let is_terminal = stdout().is_terminal();
    // On a terminal, a bar would mix with the printed results.
    let is_mixed = is_terminal && stderr().is_terminal();
    let shown = if is_mixed { ShowProgress::False } else { args.progress.show };
    let progress = progress(shown, &tree);
    let mut path = Vec::new();
    let show = |things, bytes| progress.set(Amount { things, bytes });
    let options = read_options(args);
    let report = |index: usize, outcome: Outcome| {
        let file = jobs[index].file;
        match outcome {
            Ok(sum) => {
                tree.path_into(file, &mut path);
                print_sum(args, output, &path, &sum, tree.meta(file).bytes)?;
                if is_terminal { output.send() } else { Ok(()) }
            }
            Err(error) => {
                errors.report(&progress, &error);
                Ok(())
            }
        }
    };
    let stats = match &mut cache {
        Some(cache) => hash_cached(&tree, &jobs, cache, &options, &show, report),
        None => hash(&tree, &jobs, &options, &show, report),
    };
    progress.finish();
    if let (Some(cache), Some(path)) = (cache, &path_of_cache)
        && let Err(error) = cache.save(path, &tree)
    {
        errors.count();
        print_message(&error.to_string());
    }
    stats.map(|stats| print_devices(&stats, verbose))
}

/// Opens the digest cache. A corrupt file is reported and then replaced; a file with digests of
/// another hash function is reported and not used.
fn open_cache(path: &Path, kind: HashKind, errors: &Errors) -> Option<DigestCache> {
    DigestCache::open(path, kind)
        .or_else(|error| {
            errors.count();
            print_message(&error.to_string());
            match error {
                Error::CacheHash { .. } => Err(()),
                _ => Ok(DigestCache::empty(kind)),
            }
        })
        .ok()
}

/// Prints the line of one file.
fn print_sum(args: &SumArgs, output: &mut Output, path: &[u8], sum: &Digest, bytes: u64) -> Result {
    if args.json {
        return output.line(json_line(path, sum, args.hash().into(), bytes));
    }
    let mut line = Vec::with_capacity(path.len() + 80);
    let format = LineFormat { tag: args.tag, zero: args.zero };
    write_line(&mut line, args.hash().into(), sum, path, format);
    output.bytes(&line)
}

fn json_line(path: &[u8], sum: &Digest, kind: HashKind, bytes: u64) -> serde_json::Value {
    let mut line = json!({
        "hash": SumHash::name(kind),
        "sum": sum.to_string(),
        "bytes": bytes,
    });
    set_path(&mut line, "path", OsStr::from_bytes(path));
    line
}

fn paths_in(list: &Path, null: bool) -> Result<Vec<PathBuf>> {
    let end = if null { 0 } else { b'\n' };
    let text = read_text(list)?;
    let names = text.split(|byte| *byte == end).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()))).collect())
}
