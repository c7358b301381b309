//! Finds the message within a PGP-signed text (RFC 9580, section 7, "Cleartext Signature
//! Framework"). The signature is not verified.

const MESSAGE: &[u8] = b"-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const SIGNATURE_END: &[u8] = b"-----END PGP SIGNATURE-----";

/// The part of the text that a row is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Text that is not signed.
    Outside,
    /// The headers of a message, which end with an empty row.
    Headers,
    Message,
    Signature,
}

/// Returns the rows of a text, with those of the armor empty, so that the rows keep their numbers.
/// In a message, a row that begins with a dash has a dash and a blank before it.
pub(crate) fn message_rows<'a>(rows: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let mut part = Part::Outside;
    let row_of_message = |row: &'a [u8]| -> &'a [u8] {
        let trimmed = row.trim_ascii_end();
        let (kept, next): (&[u8], Part) = match (part, trimmed) {
            (Part::Outside, MESSAGE) => (b"", Part::Headers),
            (Part::Headers, b"") => (b"", Part::Message),
            (Part::Headers, _) => (b"", Part::Headers),
            (Part::Outside | Part::Message, SIGNATURE) => (b"", Part::Signature),
            (Part::Signature, SIGNATURE_END) => (b"", Part::Outside),
            (Part::Signature, _) => (b"", Part::Signature),
            (Part::Message, _) => (row.strip_prefix(b"- ").unwrap_or(row), part),
            (Part::Outside, _) => (row, part),
        };
        part = next;
        kept
    };
    rows.map(row_of_message).collect()
}
