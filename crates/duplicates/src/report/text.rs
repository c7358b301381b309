//! The default format, as fclones has it.

use std::io::{self, BufRead, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::{Group, Header, Member, Moment, Report, Size, Stats};
use crate::error::{Error, Result};
use crate::escape::{escape, unescape};
use crate::shell::{quote, split};

const INDENT: &str = "    ";

pub(super) fn header(out: &mut impl Write, header: &Header) -> io::Result<()> {
    let words = header.command.iter().map(|word| quote(word.as_bytes())).collect::<Vec<_>>();
    let stats = &header.stats;
    writeln!(out, "# Report by {}", header.program)?;
    writeln!(out, "# Timestamp: {}", header.begun)?;
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

/// Reads a report of this format.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Report> {
    let mut lines = Lines { input, number: 0, line: String::new() };
    let mut report = Report { header: empty_header(), groups: Vec::new() };
    let mut awaited = 0;
    let mut has_title = false;
    while lines.next()? {
        // A path that was cut off is another path.
        let whole_line = lines.line.strip_suffix('\n');
        let line = whole_line.ok_or_else(|| lines.wrong("it ends within a line"))?;
        if let Some(path) = line.strip_prefix(INDENT) {
            let bytes = unescape(path).ok_or_else(|| lines.wrong("a path with a wrong escape"))?;
            let group = report.groups.last_mut().filter(|group| group.members.len() < awaited);
            let group = group.ok_or_else(|| lines.wrong("a path that is in no group"))?;
            let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
            group.members.push(Member { path, identity: None });
        } else if let Some(text) = line.strip_prefix("# ") {
            has_title |= text.starts_with("Report by ");
            take(&mut report.header, text).ok_or_else(|| lines.wrong("a header line is wrong"))?;
        } else if !line.is_empty() {
            whole(&report, awaited).map_err(|what| lines.wrong(what))?;
            let (group, count) =
                title(line).ok_or_else(|| lines.wrong("neither a group nor a path"))?;
            report.groups.push(group);
            awaited = count;
        }
    }
    whole(&report, awaited).map_err(|what| lines.wrong(what))?;
    if !has_title {
        return Err(lines.wrong("it does not begin with \"# Report by\""));
    }
    Ok(report)
}

/// A report that was cut off must not pass for a whole one.
fn whole(report: &Report, awaited: usize) -> Result<(), &'static str> {
    match report.groups.last() {
        Some(group) if group.members.len() < awaited => Err("a group ends before all its paths"),
        _ => Ok(()),
    }
}

fn empty_header() -> Header {
    Header {
        program: String::new(),
        begun: Moment(0),
        command: Vec::new(),
        base: PathBuf::from("/"),
        stats: Stats::default(),
    }
}

/// Takes what a header line says.
fn take(header: &mut Header, text: &str) -> Option<()> {
    if let Some(program) = text.strip_prefix("Report by ") {
        program.clone_into(&mut header.program);
    } else if let Some(moment) = text.strip_prefix("Timestamp: ") {
        header.begun = Moment::parse(moment)?;
    } else if let Some(command) = text.strip_prefix("Command: ") {
        header.command = split(command)?;
    } else if let Some(base) = text.strip_prefix("Base dir: ") {
        header.base = PathBuf::from(std::ffi::OsString::from_vec(unescape(base)?));
    } else if let Some(sums) = text.strip_prefix("Total: ") {
        let (bytes, files, groups) = sums_of(sums)?;
        (header.stats.bytes, header.stats.files) = (bytes, files);
        header.stats.groups = groups?;
    } else if let Some(sums) = text.strip_prefix("Redundant: ") {
        (header.stats.redundant_bytes, header.stats.redundant_files, _) = sums_of(sums)?;
    } else if let Some(sums) = text.strip_prefix("Missing: ") {
        (header.stats.missing_bytes, header.stats.missing_files, _) = sums_of(sums)?;
    }
    Some(())
}

/// The numbers of `1 B (1 B) in 2 files in 3 groups`.
fn sums_of(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let bytes = text.split(' ').next()?.parse().ok()?;
    let mut counts = text.split(" in ").skip(1).map(|part| part.split(' ').next()?.parse().ok());
    Some((bytes, counts.next()??, counts.next().flatten()))
}

/// The line above a group, and how many paths follow.
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
        read.map(|bytes| bytes > 0).map_err(|source| Error::Stream { what: "read", source })
    }

    fn wrong(&self, what: &'static str) -> Error {
        Error::Report { what, line: self.number }
    }
}
