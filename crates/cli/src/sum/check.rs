//! `haul sum --check`: verifies the files of a list.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::stdin;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Error, ReadStats, Tree};
use haul_checksums::{
    Check, CheckEvents, Line, List, StreamDigests, UnknownRow, Verdict, detect, write_name,
};
use parking_lot::RwLock;
use serde_json::json;

use super::files::{
    Errors, STDIN, find_files, print_devices, progress, read_options, read_text, show_progress,
};
use crate::args::{SumArgs, SumHash};
use crate::json::set_path;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Failure, Result, chain, print_message};
use crate::units::Count;

pub(super) fn run(
    args: &SumArgs,
    list: &Path,
    output: &mut Output,
    errors: &Errors,
    verbose: u8,
) -> Result {
    let text = read_text(list)?;
    let kind = args.hash.map(Into::into);
    let List { mut lines, unknown, malformed } = List::parse_file(&text, kind, list);
    report_unknown(&unknown, args, list, errors);
    if lines.is_empty() {
        let message = format!("no valid line in {}", list.display());
        return Err(Failure::new(message).advise("name the hash function with --hash"));
    }
    let stdin = stdin_digests(&lines, list, errors);
    let unmatched = detect(&mut lines, list, stdin.as_ref());
    let events = Events { args, verbose, progress: RwLock::new(None) };
    let check = Check::run(lines, stdin.as_ref(), &read_options(args), &events);
    let added = if args.paths.is_empty() { Vec::new() } else { added(&check, args, list, errors) };
    print(&check, args, output, &added)?;
    warn(&check, args, malformed, added.len(), list, errors);
    if !unmatched.is_empty() && !args.status {
        let tried: Vec<_> = unmatched.iter().map(|kind: &HashKind| SumHash::name(*kind)).collect();
        print_message(&format!(
            "{}: no file matches with {}; if the list uses another hash function, name it \
             with --hash",
            list.display(),
            tried.join(", ")
        ));
    }
    Ok(())
}

/// Returns the digests of stdin if a line is for it. If stdin cannot be read, or is the list, that
/// is printed, and the line is not verified.
fn stdin_digests(lines: &[Line], list: &Path, errors: &Errors) -> Option<StreamDigests> {
    if list == Path::new(STDIN) {
        if lines.iter().any(Line::is_stdin) {
            errors.count();
            print_message("cannot verify the line of stdin: the list itself was read from it");
        }
        return None;
    }
    StreamDigests::read_for(lines, stdin().lock()).unwrap_or_else(|error| {
        errors.count();
        print_message(&chain("cannot read stdin", Some(&error)));
        None
    })
}

/// Prints the entries that cannot be verified, up to three for each reason, and counts them as
/// errors.
fn report_unknown(unknown: &[UnknownRow], args: &SumArgs, list: &Path, errors: &Errors) {
    let mut by_reason: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for row in unknown {
        errors.count();
        by_reason.entry(&row.reason).or_default().push(row.number);
    }
    for (reason, rows) in by_reason.iter().filter(|_| !args.status) {
        let first: Vec<_> = rows.iter().take(3).map(usize::to_string).collect();
        let more =
            if rows.len() > 3 { format!(" and {} more", rows.len() - 3) } else { String::new() };
        let noun = if rows.len() == 1 { "line" } else { "lines" };
        print_message(&format!(
            "{}: {noun} {}{more} cannot be verified: {reason}",
            list.display(),
            first.join(", ")
        ));
    }
}

/// A receiver of events that shows the progress of a check and prints its errors.
struct Events<'a> {
    args: &'a SumArgs,
    verbose: u8,
    /// The progress of the current round of reads.
    progress: RwLock<Option<Progress>>,
}

impl CheckEvents for Events<'_> {
    fn begin_round(&self, tree: &Tree) {
        *self.progress.write() = Some(progress(show_progress(self.args), tree));
    }

    fn progress(&self, files: u64, bytes: u64) {
        if let Some(progress) = &*self.progress.read() {
            progress.set(Amount { things: files, bytes });
        }
    }

    fn end_round(&self, stats: &ReadStats) {
        if let Some(progress) = self.progress.write().take() {
            progress.finish();
        }
        print_devices(stats, self.verbose);
    }

    fn failed(&self, error: &Error) {
        if self.args.status || error.is_not_found() && self.args.ignore_missing {
            return;
        }
        match &*self.progress.read() {
            Some(progress) => progress.print_message(&error.to_string()),
            None => print_message(&error.to_string()),
        }
    }
}

/// Returns the files below the paths of the command line that are missing in the list.
fn added(check: &Check, args: &SumArgs, list: &Path, errors: &Errors) -> Vec<PathBuf> {
    let tree = find_files(args, &args.paths, errors);
    let itself = std::fs::metadata(list).ok().map(|status| (status.dev(), status.ino()));
    check.unlisted(&tree, itself)
}

fn print(check: &Check, args: &SumArgs, output: &mut Output, added: &[PathBuf]) -> Result {
    if args.status {
        return Ok(());
    }
    for (line, verdict) in check.results() {
        let (text, in_json) = match verdict {
            Verdict::Same if args.quiet => continue,
            Verdict::Missing if args.ignore_missing => continue,
            Verdict::Same => ("OK", "ok"),
            Verdict::Changed => ("FAILED", "changed"),
            Verdict::Missing => ("FAILED open or read", "missing"),
            Verdict::Unread => ("FAILED open or read", "unreadable"),
        };
        print_result(args, output, &line.name, text, in_json)?;
    }
    let mut added = added.iter().map(|path| path.as_os_str().as_bytes());
    added.try_for_each(|name| print_result(args, output, name, "ADDED", "added"))
}

/// Prints the number of failures of each kind to stderr, and counts the failures as errors.
fn warn(
    check: &Check,
    args: &SumArgs,
    malformed: usize,
    added: usize,
    list: &Path,
    errors: &Errors,
) {
    let ignored = if args.ignore_missing { check.count(Verdict::Missing) } else { 0 };
    let none_verified = usize::from(ignored == check.results().count());
    for (number, noun, suffix, is_failure) in [
        (malformed, "malformed line", "", args.strict),
        (check.count(Verdict::Changed), "file", " changed", true),
        (check.count(Verdict::Missing) - ignored, "file", " missing", true),
        (check.count(Verdict::Unread), "file", " unreadable", true),
        (added, "file", " not in the list", true),
        (none_verified, "", "all files are missing", true),
    ] {
        if number > 0 {
            if !args.status {
                let count = Count(number as u64, noun).to_string();
                let count = if noun.is_empty() { "" } else { &count };
                print_message(&format!("{}: {count}{suffix}", list.display()));
            }
            if is_failure {
                errors.count();
            }
        }
    }
}

/// Prints `name: text`, with the name escaped as in the list, or a JSON object with the result
/// `in_json`.
fn print_result(
    args: &SumArgs,
    output: &mut Output,
    name: &[u8],
    text: &str,
    in_json: &str,
) -> Result {
    if args.json {
        let mut line = json!({ "result": in_json });
        set_path(&mut line, "path", OsStr::from_bytes(name));
        return output.line(line);
    }
    let mut line = Vec::with_capacity(name.len() + 24);
    write_name(&mut line, name);
    line.extend_from_slice(b": ");
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
    output.bytes(&line)
}
