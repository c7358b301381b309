//! Writes and reads JSON reports: the format of fclones, extended by the identities of files.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::group::{Group, Identity, Member, Report};
use super::header::{Header, Stats, Timestamp};
use crate::error::{Error, Result};
use crate::escape::{escape, unescape};

pub(super) fn begin(out: &mut impl Write, header: &Header) -> io::Result<()> {
    let (program, version) = header.program.split_once(' ').unwrap_or((&header.program, ""));
    let words: Vec<_> = header.command.iter().map(|word| escape(word.as_bytes())).collect();
    let stats = &header.stats;
    let header = json!({
        "program": program,
        "version": version,
        "timestamp": header.timestamp.rfc3339(),
        "command": words,
        "base_dir": escape(header.base.as_os_str().as_bytes()),
        "stats": {
            "group_count": stats.groups,
            "total_file_count": stats.files,
            "total_file_size": stats.bytes,
            "redundant_file_count": stats.redundant_files,
            "redundant_file_size": stats.redundant_bytes,
            "missing_file_count": stats.missing_files,
            "missing_file_size": stats.missing_bytes,
            "scanned_file_count": stats.scanned_files,
            "scanned_file_size": stats.scanned_bytes,
        },
    });
    let header = serde_json::to_string_pretty(&header)?.replace('\n', "\n  ");
    write!(out, "{{\n  \"header\": {header},\n  \"groups\": [")
}

pub(super) fn group(out: &mut impl Write, group: &Group, is_first: bool) -> io::Result<()> {
    let comma = if is_first { "" } else { "," };
    write!(out, "{comma}\n    {{\n      \"file_len\": {},\n", group.bytes)?;
    write!(out, "      \"file_hash\": {},\n      \"files\": [", Value::from(&*group.hash))?;
    let mut comma = "";
    for member in &group.members {
        let path = Value::from(escape(member.path.as_os_str().as_bytes()));
        write!(out, "{comma}\n        {path}")?;
        comma = ",";
    }
    write!(out, "\n      ]")?;
    if group.members.iter().all(|member| member.identity.is_some()) {
        write!(out, ",\n      \"ids\": [")?;
        comma = "";
        for Identity { device, inode, bytes, modified_ns, changed_ns } in
            group.members.iter().filter_map(|member| member.identity)
        {
            write!(
                out,
                "{comma}\n        {{\"device\": {device}, \"inode\": {inode}, \"bytes\": {bytes}, \
                 \"modified_ns\": {modified_ns}, \"changed_ns\": {changed_ns}}}"
            )?;
            comma = ",";
        }
        write!(out, "\n      ]")?;
    }
    write!(out, "\n    }}")
}

pub(super) fn end(out: &mut impl Write, is_empty: bool) -> io::Result<()> {
    writeln!(out, "{}]\n}}", if is_empty { "" } else { "\n  " })
}

/// Reads a JSON report.
pub(super) fn read(input: &mut dyn Read) -> Result<Report> {
    let value: Value = serde_json::from_reader(input).map_err(|error| match error.classify() {
        serde_json::error::Category::Io => {
            Error::Stream { operation: "read", source: error.into() }
        }
        _ => Error::Report { reason: "incomplete or invalid JSON", line: error.line() },
    })?;
    let invalid = |reason| Error::Report { reason, line: 1 };
    let header = header_of(&value["header"]).ok_or_else(|| invalid("incomplete header"))?;
    let groups = value["groups"].as_array().ok_or_else(|| invalid("\"groups\" is missing"))?;
    let groups = groups.iter().map(group_of).collect::<Option<_>>();
    Ok(Report { header, groups: groups.ok_or_else(|| invalid("incomplete group"))? })
}

fn bytes_of(value: &Value) -> Option<OsString> {
    unescape(value.as_str()?).map(OsString::from_vec)
}

fn header_of(header: &Value) -> Option<Header> {
    let stats = &header["stats"];
    let number = |name: &str| stats[name].as_u64().unwrap_or(0);
    let program = header["program"].as_str().unwrap_or("fclones");
    Some(Header {
        program: format!("{program} {}", header["version"].as_str()?),
        timestamp: Timestamp::parse(header["timestamp"].as_str()?)?,
        command: header["command"].as_array()?.iter().map(bytes_of).collect::<Option<_>>()?,
        base: PathBuf::from(bytes_of(&header["base_dir"])?),
        stats: Stats {
            groups: number("group_count"),
            files: number("total_file_count"),
            bytes: number("total_file_size"),
            redundant_files: number("redundant_file_count"),
            redundant_bytes: number("redundant_file_size"),
            missing_files: number("missing_file_count"),
            missing_bytes: number("missing_file_size"),
            scanned_files: number("scanned_file_count"),
            scanned_bytes: number("scanned_file_size"),
        },
    })
}

fn group_of(group: &Value) -> Option<Group> {
    let ids = group["ids"].as_array();
    let member = |(index, path): (usize, &Value)| {
        let path = PathBuf::from(bytes_of(path)?);
        let identity = match ids {
            Some(ids) => Some(identity_of(ids.get(index)?)?),
            None => None,
        };
        Some(Member { path, identity })
    };
    Some(Group {
        bytes: group["file_len"].as_u64()?,
        hash: group["file_hash"].as_str()?.to_owned(),
        members: group["files"]
            .as_array()?
            .iter()
            .enumerate()
            .map(member)
            .collect::<Option<_>>()?,
    })
}

fn identity_of(id: &Value) -> Option<Identity> {
    Some(Identity {
        device: id["device"].as_u64()?,
        inode: id["inode"].as_u64()?,
        bytes: id["bytes"].as_u64()?,
        modified_ns: id["modified_ns"].as_i64()?,
        changed_ns: id["changed_ns"].as_i64()?,
    })
}
