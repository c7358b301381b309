//! Selects the `Content-Type` of a file by its name. Performs no I/O.

use std::borrow::Cow;

use haul_http1::media_type;

/// Returns the `Content-Type` of a file of this name.
pub(crate) fn content_type(path: &[u8]) -> Cow<'static, str> {
    match media_type(path) {
        None => Cow::Borrowed("application/octet-stream"),
        // Without a charset, each client would guess a different one.
        Some(known) if known.starts_with("text/") => Cow::Owned(format!("{known}; charset=utf-8")),
        Some(known) => Cow::Borrowed(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_charset() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.CSS", "text/css; charset=utf-8"),
            ("a.min.js", "text/javascript; charset=utf-8"),
            ("m.mjs", "text/javascript; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.d/file", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(content_type(path.as_bytes()), expected, "{path}");
        }
    }
}
