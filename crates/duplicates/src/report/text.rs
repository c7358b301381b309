//! Writes and reads reports in the default format, which is that of fclones.

use std::io::{self, BufRead, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::group::{Group, Member, Report};
use super::header::{Header, Stats, Timestamp};
use super::size::Size;
use crate::error::{Error, Result};
use crate::escape::{escape, unescape};
use crate::shell::{quote, split};

const INDENT: &str = "    ";

pub(super) fn header(out: &mut impl Write, header: &Header) -> io::Result<()> {
    let words = header.command.iter().map(|word| quote(word.as_bytes())).collect::<Vec<_>>();
    let stats = &header.stats;
    writeln!(out, "# Report by {}", header.program)?;
    writeln!(out, "# Timestamp: {}", header.timestamp)?;
    writeln!(out, "# Command: {}", words.join(" "))?;
    writeln!(out, "# Base dir: {}", escape(header.base.as_os_str().as_bytes()))?;
    let Stats { groups, files, bytes, .. } = stats;
    writeln!(out, "# Total: {} in {files} files in {groups} groups", Size(*bytes))?;
    let (bytes, files) = (Size(stats.redundant_bytes), stats.redundant_files);
    writeln!(out, "# Redundant: {bytes} in {files} files")?;
    let (bytes, files) = (Size(stats.missing_bytes), stats.missing_files);
    writeln!(out, "# Missing: {bytes} in {files} files")
}

pub(super) fn group(out: &mut impl Write, group: &Group) -> io::Result<()> {
    let Group { bytes, hash, members } = group;
    writeln!(out, "{hash}, {} * {}:", Size(*bytes), members.len())?;
    for member in members {
        writeln!(out, "{INDENT}{}", escape(member.path.as_os_str().as_bytes()))?;
    }
    Ok(())
}

/// Reads a report in the default format.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Report> {
    let mut lines = Lines { input, number: 0, line: String::new() };
    let mut report = Report { header: empty_header(), groups: Vec::new() };
    let mut expected = 0;
    let mut has_title = false;
    while lines.next()? {
        // A line without a newline is an error: a truncated path would refer to another file.
        let complete_line = lines.line.strip_suffix('\n');
        let line = complete_line.ok_or_else(|| lines.invalid("truncated line"))?;
        // The CR of a name is escaped.
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(path) = line.strip_prefix(INDENT) {
            let bytes = unescape(path).ok_or_else(|| lines.invalid("invalid escape in a path"))?;
            let group = report.groups.last_mut().filter(|group| group.members.len() < expected);
            let group = group.ok_or_else(|| lines.invalid("path outside a group"))?;
            let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
            group.members.push(Member { path, identity: None });
        } else if let Some(text) = line.strip_prefix("# ") {
            has_title |= text.starts_with("Report by ");
            parse_header(&mut report.header, text)
                .ok_or_else(|| lines.invalid("invalid header line"))?;
        } else if !line.is_empty() {
            check_complete(&report, expected).map_err(|reason| lines.invalid(reason))?;
            let (group, count) =
                title(line).ok_or_else(|| lines.invalid("expected a group or a path"))?;
            report.groups.push(group);
            expected = count;
        }
    }
    check_complete(&report, expected).map_err(|reason| lines.invalid(reason))?;
    if !has_title {
        return Err(lines.invalid("\"# Report by\" is missing"));
    }
    Ok(report)
}

/// Checks that the last group has all its paths, in order to detect truncation.
fn check_complete(report: &Report, expected: usize) -> Result<(), &'static str> {
    match report.groups.last() {
        Some(group) if group.members.len() < expected => Err("truncated group"),
        _ => Ok(()),
    }
}

fn empty_header() -> Header {
    Header {
        program: String::new(),
        timestamp: Timestamp(0),
        command: Vec::new(),
        base: PathBuf::from("/"),
        stats: Stats::default(),
    }
}

/// Parses a header line.
fn parse_header(header: &mut Header, text: &str) -> Option<()> {
    if let Some(program) = text.strip_prefix("Report by ") {
        program.clone_into(&mut header.program);
    } else if let Some(timestamp) = text.strip_prefix("Timestamp: ") {
        header.timestamp = Timestamp::parse(timestamp)?;
    } else if let Some(command) = text.strip_prefix("Command: ") {
        header.command = split(command)?;
    } else if let Some(base) = text.strip_prefix("Base dir: ") {
        header.base = PathBuf::from(std::ffi::OsString::from_vec(unescape(base)?));
    } else if let Some(totals) = text.strip_prefix("Total: ") {
        let (bytes, files, groups) = totals_of(totals)?;
        (header.stats.bytes, header.stats.files) = (bytes, files);
        header.stats.groups = groups?;
    } else if let Some(totals) = text.strip_prefix("Redundant: ") {
        (header.stats.redundant_bytes, header.stats.redundant_files, _) = totals_of(totals)?;
    } else if let Some(totals) = text.strip_prefix("Missing: ") {
        (header.stats.missing_bytes, header.stats.missing_files, _) = totals_of(totals)?;
    }
    Some(())
}

/// Parses totals such as `1 B (1 B) in 2 files in 3 groups`: bytes, files, and groups if present.
fn totals_of(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let bytes = text.split(' ').next()?.parse().ok()?;
    let mut counts = text.split(" in ").skip(1).map(|part| part.split(' ').next()?.parse().ok());
    Some((bytes, counts.next()??, counts.next().flatten()))
}

/// Parses the first line of a group; returns the group without its paths, and the number of paths.
fn title(line: &str) -> Option<(Group, usize)> {
    let (hash, rest) = line.split_once(", ")?;
    let (size, count) = rest.strip_suffix(':')?.rsplit_once(" * ")?;
    let bytes = size.split(' ').next()?.parse().ok()?;
    let group = Group { bytes, hash: hash.to_owned(), members: Vec::new() };
    Some((group, count.parse().ok()?))
}

struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: usize,
    line: String,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let read = self.input.read_line(&mut self.line);
        read.map(|bytes| bytes > 0).map_err(|source| Error::Stream { operation: "read", source })
    }

    fn invalid(&self, reason: &'static str) -> Error {
        Error::Report { reason, line: self.number }
    }
}
