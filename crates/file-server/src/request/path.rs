//! Converts the target of a request to a path below the root. Performs no I/O.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The reason why a target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidPath {
    /// The target is not a path, or one that clients do not send by accident: 400.
    Malformed,
    /// The path may exist, but is not served: 404.
    Hidden,
}

/// A path below the root that was checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    /// The path without slashes at its ends; empty for the root.
    pub(crate) below_root: &'a [u8],
    /// The path ended with a slash, so it must be a directory.
    pub(crate) is_directory: bool,
}

/// Returns the target without its query, and the query.
pub(crate) fn split(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

/// Decodes the percent-encoded bytes of a path, once. A path without any is returned as it is.
pub(crate) fn decoded<'a>(
    path: &'a [u8],
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], InvalidPath> {
    let Some(first) = memchr::memchr(b'%', path) else { return Ok(path) };
    buffer.clear();
    buffer.extend_from_slice(&path[..first]);
    let mut rest = &path[first..];
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            buffer.push(*byte);
            continue;
        }
        let escape = rest.split_at_checked(2).ok_or(InvalidPath::Malformed)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(escape.0[0]).zip(digit(escape.0[1])).map(|(high, low)| high * 16 + low);
        // Names contain no slash, and a slash between names is not encoded.
        match value.and_then(|value| u8::try_from(value).ok()) {
            None | Some(0 | b'/') => return Err(InvalidPath::Malformed),
            Some(value) => buffer.push(value),
        }
        rest = escape.1;
    }
    Ok(buffer)
}

/// Removes empty segments and the segments `.` from a decoded path, which other servers ignore, too:
/// some programs join paths carelessly. `..` stays, and is refused later: clients resolve it.
///
/// # Source
/// RFC 3986, section 5.2.4; the setting `merge_slashes` of nginx.
pub(crate) fn merged(decoded: &[u8]) -> Cow<'_, [u8]> {
    let is_clean = |pair: &[u8]| pair != b"//" && pair != b"/.";
    if !decoded.starts_with(b"/") || decoded.windows(2).all(is_clean) {
        return Cow::Borrowed(decoded);
    }
    let mut merged = Vec::with_capacity(decoded.len());
    for segment in decoded.split(|byte| *byte == b'/') {
        if !matches!(segment, b"" | b".") {
            merged.push(b'/');
            merged.extend_from_slice(segment);
        }
    }
    if decoded.ends_with(b"/") || decoded.ends_with(b"/.") {
        merged.push(b'/');
    }
    Cow::Owned(merged)
}

/// Checks a decoded path, segment by segment. The kernel checks again that it stays beneath the
/// root.
pub(crate) fn checked(decoded: &[u8], with_dotfiles: bool) -> Result<Path<'_>, InvalidPath> {
    let path = decoded.strip_prefix(b"/").ok_or(InvalidPath::Malformed)?;
    let (below_root, is_directory) = match path.strip_suffix(b"/") {
        Some(path) => (path, true),
        None => (path, path.is_empty()),
    };
    if memchr::memchr(0, path).is_some() {
        return Err(InvalidPath::Malformed);
    }
    if below_root.is_empty() {
        // Some clients take "//" for the root, others for another server.
        return if path.is_empty() {
            Ok(Path { below_root, is_directory })
        } else {
            Err(InvalidPath::Hidden)
        };
    }
    for (index, segment) in below_root.split(|byte| *byte == b'/').enumerate() {
        match segment {
            b"." | b".." => return Err(InvalidPath::Malformed),
            b"" => return Err(InvalidPath::Hidden),
            // RFC 8615: well-known names are public.
            b".well-known" if index == 0 => {}
            [b'.', ..] if !with_dotfiles => return Err(InvalidPath::Hidden),
            _ => {}
        }
    }
    Ok(Path { below_root, is_directory })
}

/// Percent-encodes a path: every byte that has a meaning in a URL.
pub(crate) fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(*byte));
            }
            // Writing to a string does not fail.
            _ => write!(text, "%{byte:02X}").unwrap_or_default(),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(target: &str) -> Result<(Vec<u8>, bool), InvalidPath> {
        let mut buffer = Vec::new();
        let decoded = decoded(split(target.as_bytes()).0, &mut buffer)?;
        checked(&merged(decoded), false).map(|path| (path.below_root.to_vec(), path.is_directory))
    }

    #[test]
    fn targets_are_converted_to_paths_below_the_root() {
        for (target, below_root, is_directory) in [
            ("/", "", true),
            ("/a.txt", "a.txt", false),
            ("/a/b/", "a/b", true),
            ("/a%20b/%C3%A4?x=/../y", "a b/ä", false),
            ("/%2541", "%41", false),
            ("/a..b/...c"[..5].as_ref(), "a..b", false),
            ("/.well-known/acme", ".well-known/acme", false),
            ("/?/..", "", true),
            ("//", "", true),
            ("//a", "a", false),
            ("/a//b///", "a/b", true),
            ("/./a", "a", false),
            ("/a/%2e", "a", true),
            ("/a/.//./b", "a/b", false),
            ("/.", "", true),
        ] {
            assert_eq!(parse(target), Ok((below_root.into(), is_directory)), "{target}");
        }
    }

    #[test]
    fn malformed_and_hidden_paths_are_refused() {
        for target in [
            "/..",
            "/../etc/passwd",
            "/a/../b",
            "/a/..",
            "/%2e%2e/a",
            "/%2E./a",
            "/a%2fb",
            "/a%2Fb",
            "/a%00",
            "/a%0",
            "/a%",
            "/a%zz",
            "/%+1a",
            "a",
            "*",
            "",
            "http://h/a",
            "/..%2f..",
            "/%2e%2e%2f",
        ] {
            assert_eq!(parse(target), Err(InvalidPath::Malformed), "{target}");
        }
        for target in [
            "/.git/config",
            "//.git/config",
            "/./.git/config",
            "/a/.b",
            "/.well-known/.x",
            "/a/.well-known",
            "/%2ea",
        ] {
            assert_eq!(parse(target), Err(InvalidPath::Hidden), "{target}");
        }
        for path in [&b"//"[..], b"//a", b"/a//b", b"/a//"] {
            assert_eq!(checked(path, false), Err(InvalidPath::Hidden), "not merged");
        }
        assert!(checked(b"/.git/config", true).is_ok());
        assert_eq!(checked(b"/a/..", true), Err(InvalidPath::Malformed));
    }

    #[test]
    fn encoded_path_cannot_name_another_server() {
        assert_eq!(encoded(b"/\\evil.example/\r\nX: y"), "/%5Cevil.example/%0D%0AX%3A%20y");
    }

    proptest! {
        #[test]
        fn encoded_path_is_decoded_to_itself(path in proptest::collection::vec(1_u8.., 0..40)) {
            prop_assume!(!path.contains(&b'/'));
            let target = encoded(&path);
            let mut buffer = Vec::new();
            prop_assert_eq!(decoded(target.as_bytes(), &mut buffer), Ok(&path[..]));
        }

        #[test]
        fn no_target_escapes_from_the_root(target in "/[.%/a25eEfF0]{0,12}") {
            if let Ok((path, _)) = parse(&target) {
                let segments = path.split(|byte| *byte == b'/');
                prop_assert!(segments.clone().all(|s| s != b".." && s != b"." && !s.contains(&0)));
                prop_assert!(path.is_empty() || segments.clone().all(|s| !s.is_empty()));
            }
        }
    }
}
