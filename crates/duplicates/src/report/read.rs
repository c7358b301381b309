//! Reading a report again.

use std::io::BufRead;

use super::{Group, Header, json, text};
use crate::error::{Error, Result};

/// A report that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What was asked, and when.
    pub header: Header,
    /// What was found.
    pub groups: Vec<Group>,
}

/// Reads a report of the default or the JSON format, of haul or of fclones.
///
/// # Errors
/// When it is neither, or is not whole.
pub fn read(input: &mut dyn BufRead) -> Result<Report> {
    let begin = input.fill_buf().map_err(|source| Error::Stream { what: "read", source })?;
    match begin.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => json::read(input),
        Some(b'#') => text::read(input),
        None => Err(Error::Report { what: "it is empty", line: 1 }),
        Some(_) => Err(Error::Report {
            what: "it is of neither format that can be read again: default and json",
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
    use crate::report::{Format, Identity, Member, Moment, Stats, Writer};

    fn header() -> Header {
        Header {
            program: "haul 0.1.0".into(),
            begun: Moment(1_795_275_724_061_000_000),
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
    fn the_formats_look_as_fclones_has_them() {
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
    fn a_report_of_fclones_is_read() {
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
    fn a_report_that_is_cut_off_or_none_is_refused() {
        let whole = written(Format::Default, &header(), &[group(&["/a", "/b"])]);
        let cut = &whole[..whole.len() - 1];
        let json = written(Format::Json, &header(), &[group(&["/a", "/b"])]);
        for (text, why) in [
            (cut, "within a line"),
            (&whole[..whole.len() - 7], "before all its paths"),
            (&json[..json.len() - 3], "no whole JSON"),
            (b"size,hash\n", "neither format"),
            (b" \n", "empty"),
            (b"# hello\n", "Report by"),
            (b"# Report by x 1\n    /a\n", "in no group"),
            (b"# Report by x 1\nnonsense\n", "neither a group"),
            (b"# Report by x 1\n0a, 3 B (3 B) * 1:\n    /a\\q\n", "wrong escape"),
            (b"{\"groups\": []}", "header"),
        ] {
            let error = read(&mut &text[..]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
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
        fn every_report_comes_back(groups in prop::collection::vec(any_group(), 0..4)) {
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
