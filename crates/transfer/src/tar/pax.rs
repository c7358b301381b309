//! Decodes and encodes the records of PAX headers, which state what a tar header cannot. Performs no
//! I/O.
//!
//! Attributes of objects are extended attributes of their members (`SCHILY.xattr.…`), which GNU tar
//! and bsdtar know, and restore only if the user requests it.

use crate::mtime::Mtime;

const XATTR: &str = "SCHILY.xattr.user.haul.";
/// The key of the object without the prefix, if the path of the member does not determine it.
const KEY: &str = "key";
/// States that the object has no modification time as an attribute.
const NO_MTIME: &str = "no-mtime";
const ATTRIBUTE: &str = "attribute.";

/// The records of a PAX header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) bytes: Option<u64>,
    pub(super) mtime: Option<Mtime>,
    /// The member is a sparse file: its content is preceded by a map.
    pub(super) is_sparse: bool,
    pub(super) key: Option<String>,
    pub(super) has_no_mtime: bool,
    /// Names and values of attributes.
    pub(super) attributes: Vec<(String, String)>,
}

const MALFORMED: &str = "a PAX header is malformed";

impl Records {
    /// Adds the records of a header to these, which they override.
    pub(super) fn add(&mut self, mut header: &[u8]) -> Result<(), &'static str> {
        while !header.is_empty() {
            let (keyword, value, rest) = split(header).ok_or(MALFORMED)?;
            self.set(keyword, value)?;
            header = rest;
        }
        Ok(())
    }

    fn set(&mut self, keyword: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let text = || std::str::from_utf8(value).ok();
        // An empty value revokes an earlier record.
        let bytes = || (!value.is_empty()).then(|| value.to_vec());
        match keyword {
            b"path" => self.path = bytes(),
            b"linkpath" => self.link = bytes(),
            b"size" if value.is_empty() => self.bytes = None,
            b"size" => {
                let parsed = text().and_then(|text| text.parse().ok());
                self.bytes = Some(parsed.ok_or("the length in a PAX header is not a number")?);
            }
            b"mtime" => self.mtime = text().and_then(|text| text.parse().ok()),
            b"GNU.sparse.name" => {
                self.is_sparse = true;
                self.path = bytes();
            }
            _ if keyword.starts_with(b"GNU.sparse.") => self.is_sparse = true,
            _ => {
                if let Some(name) = keyword.strip_prefix(XATTR.as_bytes()) {
                    let malformed = "an attribute of an object is not valid UTF-8";
                    let name = decode_name(name).ok_or(malformed)?;
                    self.set_of_object(&name, text().ok_or(malformed)?.to_owned());
                }
            }
        }
        Ok(())
    }

    fn set_of_object(&mut self, name: &str, value: String) {
        match name.strip_prefix(ATTRIBUTE) {
            Some(attribute) => self.attributes.push((attribute.to_owned(), value)),
            None if name == KEY => self.key = Some(value),
            None if name == NO_MTIME => self.has_no_mtime = true,
            None => {}
        }
    }

    /// Encodes the records.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |keyword: &str, value: &[u8]| out.extend(record(keyword, value));
        if let Some(path) = &self.path {
            put("path", path);
        }
        if let Some(bytes) = self.bytes {
            put("size", bytes.to_string().as_bytes());
        }
        if let Some(mtime) = self.mtime {
            put("mtime", mtime.to_string().as_bytes());
        }
        if let Some(key) = &self.key {
            put(&format!("{XATTR}{KEY}"), key.as_bytes());
        }
        if self.has_no_mtime {
            put(&format!("{XATTR}{NO_MTIME}"), b"1");
        }
        for (name, value) in &self.attributes {
            put(&format!("{XATTR}{ATTRIBUTE}{}", encode_name(name)), value.as_bytes());
        }
        out
    }
}

/// Splits the first record, `LENGTH KEYWORD=VALUE\n`, into keyword, value and rest.
fn split(header: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = header.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&header[..space]).ok()?.parse().ok()?;
    let record = header.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], &header[length..]))
}

fn record(keyword: &str, value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + " =\n".len();
    // The length includes its own digits.
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    let mut out = format!("{length} {keyword}=").into_bytes();
    out.extend_from_slice(value);
    out.push(b'\n');
    out
}

/// Encodes a name in a keyword, which ends at the first "=", as GNU tar does.
fn encode_name(name: &str) -> String {
    name.replace('%', "%25").replace('=', "%3D")
}

fn decode_name(name: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(name).ok()?.replace("%3D", "=").replace("%25", "%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(header: &[u8]) -> Result<Records, &'static str> {
        let mut records = Records::default();
        records.add(header).map(|()| records)
    }

    #[test]
    fn records_decode_as_they_were_encoded() {
        let text = |text: &str| text.to_owned();
        let records = Records {
            path: Some("ü/é".into()),
            link: None,
            bytes: Some(u64::MAX),
            mtime: Some("-1.5".parse().unwrap()),
            is_sparse: false,
            key: Some(text("../a\nb=c\0")),
            has_no_mtime: true,
            attributes: vec![
                (text("content-type"), text("text/plain; charset=utf-8")),
                (text("%3D=%25"), text("")),
                (text("long"), "x".repeat(16_000)),
            ],
        };
        assert_eq!(decoded(&records.encode()), Ok(records));
        assert_eq!(decoded(b""), Ok(Records::default()));
    }

    #[test]
    fn length_of_a_record_includes_its_digits() {
        assert_eq!(record("k", b"v"), b"6 k=v\n");
        assert_eq!(record("k", b"vvvv"), b"9 k=vvvv\n");
        assert_eq!(record("k", b"vvvvv"), b"11 k=vvvvv\n");
        for length in 80..120 {
            let record = record("k", &vec![b'v'; length]);
            let (_, value, rest) = split(&record).unwrap();
            assert_eq!((value.len(), rest.len()), (length, 0));
        }
    }

    #[test]
    fn malformed_headers_are_refused() {
        for header in [
            &b"6 k=v"[..],
            b"7 k=v\n",
            b"x k=v\n",
            b"6k=v\n",
            b"6 kvv\n",
            b"0 k=v\n",
            b"\0\0",
            b"99999999999999999999999 k=v\n",
        ] {
            assert_eq!(decoded(header), Err(MALFORMED), "{header:?}");
        }
        assert!(decoded(&record("size", b"-1")).is_err());
        assert!(decoded(&record(&format!("{XATTR}attribute.a"), b"\xff")).is_err());
    }

    #[test]
    fn later_records_override_and_foreign_ones_are_ignored() {
        let header = [
            record("path", b"a"),
            record("path", b"b"),
            record("linkpath", b"c"),
            record("linkpath", b""),
            record("SCHILY.xattr.user.other", b"\xff"),
            record("mtime", b"not a time"),
            record("GNU.sparse.major", b"1"),
        ];
        let expected = Records { path: Some(b"b".to_vec()), is_sparse: true, ..Records::default() };
        assert_eq!(decoded(&header.concat()), Ok(expected));
    }
}
