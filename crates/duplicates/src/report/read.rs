//! Reads reports, and detects their format.

use std::io::{BufRead, Read};

use super::group::Report;
use super::{json, text};
use crate::error::{Error, Result};

/// The byte order mark of UTF-8, with which some editors begin a text.
const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Reads a report in the default or the JSON format, written by haul or by fclones, also after a
/// program has saved it with a byte order mark or with line ends of CR and LF.
///
/// # Errors
/// Fails if the report has another format or is truncated.
pub fn read(input: &mut dyn BufRead) -> Result<Report> {
    let failed = |source| Error::Stream { operation: "read", source };
    let mut head = Vec::new();
    (&mut *input).take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut head).map_err(failed)?;
    if head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF]) {
        return Err(Error::Report { reason: "UTF-16: convert it to UTF-8", line: 1 });
    }
    let head = head.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(&head);
    let input: &mut dyn BufRead = &mut head.chain(input);
    // An empty head would look like the end of the input.
    if input.fill_buf().map_err(failed)?.is_empty() {
        return Err(Error::Report { reason: "empty input", line: 1 });
    }
    match input.fill_buf().map_err(failed)?.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => json::read(input),
        Some(b'#') => text::read(input),
        None => Err(Error::Report { reason: "empty input", line: 1 }),
        Some(_) => Err(Error::Report {
            reason: "unsupported format: only default and json can be read",
            line: 1,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::report::{Format, Group, Header, Identity, Member, Stats, Timestamp, Writer};

    fn header() -> Header {
        Header {
            program: "haul 0.1.0".into(),
            timestamp: Timestamp(1_795_275_724_061_000_000),
            command: ["haul", "dups", "a b", "it's\n"].map(OsString::from).into(),
            base: PathBuf::from("/the\tbase"),
            stats: Stats { groups: 1, files: 2, bytes: 6, missing_files: 3, ..Stats::default() },
        }
    }

    fn written(format: Format, header: &Header, groups: &[Group]) -> Vec<u8> {
        let mut writer = Writer::begin(Vec::new(), format, header).unwrap();
        groups.iter().for_each(|group| writer.group(group).unwrap());
        writer.end().unwrap()
    }

    fn group(paths: &[&str]) -> Group {
        let member = |path: &&str| Member { path: PathBuf::from(path), identity: None };
        Group { bytes: 3, hash: "0a53".into(), members: paths.iter().map(member).collect() }
    }

    #[test]
    fn formats_match_fclones() {
        let groups = [group(&["/a/1", "/b/n\nl"]), group(&["/q\"u,o"])];
        let text = |format| String::from_utf8(written(format, &header(), &groups)).unwrap();
        assert_eq!(
            text(Format::Default),
            "# Report by haul 0.1.0\n# Timestamp: 2026-11-21 15:42:04.061 +0000\n\
             # Command: haul dups 'a b' $'it\\'s\\n'\n# Base dir: /the\\tbase\n\
             # Total: 6 B (6 B) in 2 files in 1 groups\n# Redundant: 0 B (0 B) in 0 files\n\
             # Missing: 0 B (0 B) in 3 files\n\
             0a53, 3 B (3 B) * 2:\n    /a/1\n    /b/n\\nl\n0a53, 3 B (3 B) * 1:\n    /q\"u,o\n"
        );
        assert_eq!(text(Format::Fdupes), "/a/1\n/b/n\\nl\n\n/q\"u,o\n\n");
        assert_eq!(text(Format::Fdupes0), "/a/1\0/b/n\nl\0\0/q\"u,o\0\0");
        assert_eq!(
            text(Format::Csv),
            "size,hash,count,files\n3,0a53,2,/a/1,/b/n\\nl\n3,0a53,1,\"/q\"\"u,o\"\n"
        );
        let json: serde_json::Value = serde_json::from_str(&text(Format::Json)).unwrap();
        assert_eq!(json["groups"][0]["files"], serde_json::json!(["/a/1", "/b/n\\nl"]));
        assert_eq!(json["header"]["stats"]["missing_file_count"], 3);
    }

    #[test]
    fn fclones_report_is_read() {
        let text = "# Report by fclones 0.35.0\n# Timestamp: 2026-11-21 15:42:04.143 +0000\n\
                    # Command: fclones group . -f default\n# Base dir: /t\n\
                    # Total: 200015 B (200.0 KB) in 8 files in 3 groups\n\
                    # Redundant: 100010 B (100.0 KB) in 5 files\n\
                    # Missing: 0 B (0 B) in 0 files\n\
                    0a53bbee950a8262122ec1bda1d472e8, 3 B (3 B) * 2:\n    /t/a 1\n    /t/\\xFF\n";
        let report = read(&mut text.as_bytes()).unwrap();
        assert_eq!(report.header.command.len(), 5);
        assert_eq!((report.header.stats.groups, report.header.stats.redundant_files), (3, 5));
        assert_eq!(report.groups[0].members[1].path.as_os_str().len(), 4);
    }

    #[test]
    fn truncated_or_invalid_report_is_rejected() {
        let whole = written(Format::Default, &header(), &[group(&["/a", "/b"])]);
        let truncated = &whole[..whole.len() - 1];
        let json = written(Format::Json, &header(), &[group(&["/a", "/b"])]);
        for (text, expected) in [
            (truncated, "truncated line"),
            (&whole[..whole.len() - 7], "truncated group"),
            (&json[..json.len() - 3], "incomplete or invalid JSON"),
            (b"size,hash\n", "unsupported format"),
            (b" \n", "empty"),
            (b"# hello\n", "Report by"),
            (b"# Report by x 1\n    /a\n", "outside a group"),
            (b"# Report by x 1\nnonsense\n", "expected a group"),
            (b"# Report by x 1\n0a, 3 B (3 B) * 1:\n    /a\\q\n", "invalid escape"),
            (b"{\"groups\": []}", "header"),
        ] {
            let error = read(&mut &text[..]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn report_saved_by_an_editor_is_read() {
        let group = [group(&["/a", "/b/c\r"])];
        for format in [Format::Default, Format::Json] {
            let text = String::from_utf8(written(format, &header(), &group)).unwrap();
            let saved = format!("\u{FEFF}{}", text.replace('\n', "\r\n"));
            assert_eq!(read(&mut saved.as_bytes()).unwrap(), read(&mut text.as_bytes()).unwrap());
            let only_mark = format!("\u{FEFF}{text}");
            assert_eq!(read(&mut only_mark.as_bytes()).unwrap().groups, group);
        }
        for text in [&b"\xFF\xFE#\0 \0"[..], b"\xFE\xFF\0#\0 "] {
            assert!(read(&mut &text[..]).unwrap_err().to_string().contains("UTF-16"));
        }
        assert!(read(&mut &BYTE_ORDER_MARK[..]).unwrap_err().to_string().contains("empty"));
    }

    fn any_group() -> impl Strategy<Value = Group> {
        let identity = (any::<u64>(), any::<u64>(), any::<u64>(), any::<i64>(), any::<i64>());
        let identity = identity.prop_map(|(device, inode, bytes, modified_ns, changed_ns)| {
            Identity { device, inode, bytes, modified_ns, changed_ns }
        });
        let name = prop::collection::vec(1..=255_u8, 1..20);
        let member = (name, identity).prop_map(|(name, identity)| Member {
            path: PathBuf::from(OsString::from_vec(name)),
            identity: Some(identity),
        });
        (any::<u64>(), "[0-9a-f]{32}", prop::collection::vec(member, 1..4))
            .prop_map(|(bytes, hash, members)| Group { bytes, hash, members })
    }

    proptest! {
        #[test]
        fn reports_round_trip(groups in prop::collection::vec(any_group(), 0..4)) {
            let report = Report { header: header(), groups };
            let json = written(Format::Json, &report.header, &report.groups);
            prop_assert_eq!(&read(&mut &json[..]).unwrap(), &report);

            let text = written(Format::Default, &report.header, &report.groups);
            let mut bare = report;
            let members = bare.groups.iter_mut().flat_map(|group| &mut group.members);
            members.for_each(|member| member.identity = None);
            prop_assert_eq!(read(&mut &text[..]).unwrap(), bare);
        }
    }
}
