//! Reads a report of duplicate files, and the same report after it was written as JSON and in the
//! default format. Also splits a command line into words, and quotes them.

use std::os::unix::ffi::OsStrExt;

use crate::report::{is_plain, round_trip, without_details};
use haul_duplicates::report::{Format, read};
use haul_duplicates::shell::{quote, split};

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    if let Some(words) = str::from_utf8(data).ok().and_then(split) {
        let quoted: Vec<_> = words.iter().map(|word| quote(word.as_bytes())).collect();
        assert_eq!(split(&quoted.join(" ")), Some(words));
    }
    let Ok(report) = read(&mut &data[..]) else { return };
    let mut again = round_trip(&report, Format::Json);
    // JSON states the program and its version apart.
    let program = report.header.program.trim_end();
    assert_eq!(again.header.program.trim_end(), program);
    again.header.program.clone_from(&report.header.program);
    let has_all_identities = |report: &haul_duplicates::report::Report| {
        let mut groups = report.groups.iter();
        groups.all(|group| group.members.iter().all(|member| member.identity.is_some()))
    };
    if has_all_identities(&report) {
        assert_eq!(again, report);
    }
    if is_plain(&report) {
        let plain = without_details(report);
        assert_eq!(round_trip(&plain, Format::Default), plain);
    }
}
