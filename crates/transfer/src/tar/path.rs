//! Converts keys to paths of tar members, and paths to keys. Performs no I/O.

/// Returns the path of the member for a key: the key itself if [`key`] returns it again, else a path
/// that is safe to extract, in which each component that is not one of a path is escaped.
pub(super) fn path(key: &str) -> String {
    let component = |name: &str| match name {
        "" => "%2F".to_owned(),
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => name.replace('\0', "%00"),
    };
    key.split('/').map(component).collect::<Vec<_>>().join("/")
}

/// Returns the key for the path of a member: without the slash at the beginning, as GNU tar extracts
/// it, and without empty and `.` components.
///
/// # Errors
/// Returns the reason why the path cannot be a key.
pub(super) fn key(path: &[u8]) -> Result<String, &'static str> {
    let path = std::str::from_utf8(path).map_err(|_invalid| "the name is not valid UTF-8")?;
    let mut key = String::with_capacity(path.len());
    for component in path.split('/') {
        match component {
            "" | "." => continue,
            ".." => return Err("the name contains \"..\""),
            _ => {}
        }
        if !key.is_empty() {
            key.push('/');
        }
        key.push_str(component);
    }
    if key.is_empty() { Err("the name is empty") } else { Ok(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_other_programs_become_relative_keys() {
        for (path, expected) in [
            ("a/b", Ok("a/b")),
            ("./a/b", Ok("a/b")),
            ("/etc//x/./y", Ok("etc/x/y")),
            ("ü", Ok("ü")),
            ("..a/b..", Ok("..a/b..")),
            ("a/../b", Err("the name contains \"..\"")),
            ("./", Err("the name is empty")),
        ] {
            assert_eq!(key(path.as_bytes()), expected.map(str::to_owned), "{path}");
        }
        assert!(key(b"\xff").is_err());
    }

    #[test]
    fn keys_that_are_no_safe_paths_are_escaped() {
        for (key, expected) in [
            ("a/b", "a/b"),
            ("../x", "%2E%2E/x"),
            ("/x", "%2F/x"),
            ("x/", "x/%2F"),
            ("x//./y", "x/%2F/%2E/y"),
            ("a\0b", "a%00b"),
        ] {
            assert_eq!(path(key), expected);
            assert_eq!(super::key(path(key).as_bytes()), Ok(expected.to_owned()));
        }
    }
}
