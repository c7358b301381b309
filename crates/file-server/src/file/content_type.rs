//! Selects the media type of a file by its name. Performs no I/O.

use std::borrow::Cow;

/// Returns the media type of a file of this name.
pub(crate) fn content_type(path: &[u8]) -> Cow<'static, str> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let extension = memchr::memrchr(b'.', name).map_or(&b""[..], |dot| &name[dot + 1..]);
    let known = str::from_utf8(extension)
        .ok()
        .and_then(|extension| mime_guess::from_ext(extension).first_raw());
    match known {
        None => Cow::Borrowed("application/octet-stream"),
        // Without a charset, each client would guess a different one.
        Some(known) if known.starts_with("text/") || known == "application/javascript" => {
            Cow::Owned(format!("{known}; charset=utf-8"))
        }
        Some(known) => Cow::Borrowed(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_determines_the_media_type() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.CSS", "text/css; charset=utf-8"),
            ("a.min.js", "text/javascript; charset=utf-8"),
            ("m.mjs", "application/javascript; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.wasm", "application/wasm"),
            ("a.tar.gz", "application/gzip"),
            ("a.d/file", "application/octet-stream"),
            ("file.", "application/octet-stream"),
            ("", "application/octet-stream"),
            ("a.\u{e4}", "application/octet-stream"),
        ] {
            assert_eq!(content_type(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(content_type(b"a.\xff\xfe"), "application/octet-stream");
    }
}
