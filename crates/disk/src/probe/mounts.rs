//! Parses the text in `/proc/self/mountinfo`, which the caller reads.
//!
//! Source: `proc_pid_mountinfo(5)`. A file's mount is found by the mount id that `statx` returns.
//! Unlike a search by path, this is exact if several mounts share a mount point.

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub point: String,
    /// The type, such as `ext4` or `fuse.sshfs`.
    pub file_system: String,
    /// The mount source: a device node, or a string specific to the file system.
    pub source: String,
    /// The mount's and the superblock's options, without duplicates.
    pub options: Vec<String>,
}

impl Mount {
    /// `true` if the file system was mounted with `option`.
    #[must_use]
    pub fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|other| other == option)
    }
}

/// A line in `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: u64,
    /// The major and minor device numbers. On tmpfs, btrfs and similar file systems they are
    /// anonymous: they refer to no block device.
    pub(crate) numbers: (u32, u32),
    pub(crate) mount: Mount,
}

/// Returns all mounts, in line order. Skips lines that cannot be parsed.
pub(crate) fn all(mountinfo: &str) -> impl Iterator<Item = Line> {
    mountinfo.lines().filter_map(line)
}

pub(super) fn with_id(mountinfo: &str, id: u64) -> Option<Line> {
    all(mountinfo).find(|line| line.id == id)
}

fn line(text: &str) -> Option<Line> {
    let mut fields = text.split(' ');
    let id = fields.next()?.parse().ok()?;
    let (_parent, numbers, _root) = (fields.next()?, fields.next()?, fields.next()?);
    let (major, minor) = numbers.split_once(':')?;
    let numbers = (major.parse().ok()?, minor.parse().ok()?);
    let point = unescape(fields.next()?);
    let mount_options = fields.next()?;
    // Optional fields follow, terminated by a dash.
    fields.find(|field| *field == "-")?;
    let file_system = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    let mut options = Vec::new();
    for option in mount_options.split(',').chain(fields.next()?.split(',')).map(unescape) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Line { id, numbers, mount: Mount { point, file_system, source, options } })
}

/// Replaces each `\` followed by three octal digits by the byte they encode.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOUNTINFO: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
26 24 0:24 / /dev/pts rw,relatime - devpts devpts rw,mode=600,ptmxmode=000
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict,resuid=65534
29 26 0:26 / /dev/pts ro,relatime - devpts again rw,mode=620
61 27 259:2 /@home /home rw,noatime shared:7 master:1 - btrfs /dev/nvme0n1p2 rw,nodatacow
62 27 7:3 / /mnt/my\\040disk\\134\\303\\251 rw - xfs /dev/loop3 rw,attr2
63 27 0:52 / /mnt/none rw - tmpfs  rw
64 27 0:53 / /mnt/cut rw - tmpfs";

    #[test]
    fn mount_is_found_by_its_id() {
        let root = with_id(MOUNTINFO, 27).unwrap().mount;
        assert_eq!((root.point.as_str(), root.file_system.as_str()), ("/", "ext4"));
        assert_eq!(root.source, "/dev/vda");
        assert_eq!(root.options, ["rw", "relatime", "discard", "resv_strict", "resuid=65534"]);
        assert!(root.has_option("discard") && !root.has_option("resuid"));
        assert_eq!(with_id(MOUNTINFO, 99), None);
        let numbers: Vec<_> = all(MOUNTINFO).map(|line| (line.id, line.numbers)).collect();
        assert_eq!(numbers[2..6], [(27, (254, 0)), (29, (0, 26)), (61, (259, 2)), (62, (7, 3))]);
        assert_eq!(numbers.len(), 7, "all but the truncated line");
    }

    #[test]
    fn stacked_mounts_are_distinguished_by_id() {
        let below = with_id(MOUNTINFO, 26).unwrap().mount;
        let above = with_id(MOUNTINFO, 29).unwrap().mount;
        assert_eq!(below.point, above.point);
        assert_eq!((below.source.as_str(), above.source.as_str()), ("devpts", "again"));
    }

    #[test]
    fn optional_fields_are_skipped() {
        let home = with_id(MOUNTINFO, 61).unwrap().mount;
        assert_eq!(home.source, "/dev/nvme0n1p2");
        assert!(home.has_option("nodatacow"));
    }

    #[test]
    fn octal_escapes_are_decoded() {
        assert_eq!(with_id(MOUNTINFO, 62).unwrap().mount.point, "/mnt/my disk\\é");
        for (text, expected) in [("a\\04", "a\\04"), ("\\", "\\"), ("\\489", "\\489")] {
            assert_eq!(unescape(text), expected);
        }
    }

    #[test]
    fn empty_source_is_valid_and_truncated_line_is_not() {
        assert_eq!(with_id(MOUNTINFO, 63).unwrap().mount.source, "");
        assert_eq!(with_id(MOUNTINFO, 64), None);
    }

    proptest! {
        #[test]
        fn parser_never_panics(
            text in "(1 [ -~]*\n){0,4}\\PC*",
            escaped in "[\\\\0-9]*",
        ) {
            let _ = with_id(&text, 1);
            let _ = unescape(&escaped);
        }
    }
}
