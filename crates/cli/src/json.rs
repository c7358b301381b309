//! Adds values to JSON objects.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haul_bulk_read::digest::to_hex;
use serde_json::Value;

/// Sets `name` of an object to a path. In a path that is not UTF-8, invalid bytes are replaced; its
/// exact bytes are then added under `NAME_hex`, in hexadecimal digits.
pub(crate) fn set_path(object: &mut Value, name: &str, path: impl AsRef<Path>) {
    let path = path.as_ref();
    object[name] = path.to_string_lossy().into();
    if path.to_str().is_none() {
        object[format!("{name}_hex")] = to_hex(path.as_os_str().as_bytes()).into();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use serde_json::json;

    use super::*;

    #[test]
    fn path_that_is_not_utf8_has_its_bytes() {
        let mut object = json!({ "bytes": 7 });
        set_path(&mut object, "from", "a b");
        set_path(&mut object, "to", OsStr::from_bytes(b"c\xff"));
        let expected = json!({ "bytes": 7, "from": "a b", "to": "c\u{fffd}", "to_hex": "63ff" });
        assert_eq!(object, expected);
    }
}
