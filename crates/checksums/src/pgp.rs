//! Finds the message within a PGP-signed text (RFC 9580, section 7, "Cleartext Signature
//! Framework"). The signature is not verified. Only what the framework permits is left out as part
//! of the armor: an entry of a list cannot hide in it.

const MESSAGE: &[u8] = b"-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const SIGNATURE_END: &[u8] = b"-----END PGP SIGNATURE-----";

/// The keys of armor headers: those of RFC 9580 and RFC 4880, and one that GnuPG writes.
const HEADERS: [&[u8]; 6] =
    [b"Hash", b"Version", b"Comment", b"MessageID", b"Charset", b"NotDashEscaped"];

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

/// The rows of a text without its armor.
pub(crate) struct MessageRows<'a> {
    /// All rows, with those of the armor empty, so that the rows keep their numbers.
    pub(crate) rows: Vec<&'a [u8]>,
    /// An armor that has no end, as in a list that was cut off.
    pub(crate) without_end: Option<OpenArmor>,
}

/// An armor without its end.
pub(crate) struct OpenArmor {
    /// The number of its first row, from 1.
    pub(crate) number: usize,
    /// What is missing.
    pub(crate) reason: &'static str,
}

/// Leaves out the armor. In a message, a row that begins with a dash has a dash and a blank before
/// it.
pub(crate) fn message_rows<'a>(rows: impl Iterator<Item = &'a [u8]>) -> MessageRows<'a> {
    let (mut part, mut begun_at) = (Part::Outside, 0);
    let mut kept_rows = Vec::new();
    for (number, row) in (1..).zip(rows) {
        let trimmed = row.trim_ascii_end();
        let (kept, next): (&[u8], Part) = match (part, trimmed) {
            (Part::Outside, MESSAGE) => (b"", Part::Headers),
            (Part::Headers, b"") => (b"", Part::Message),
            (Part::Headers, _) if is_header(trimmed) => (b"", Part::Headers),
            (Part::Outside | Part::Message, SIGNATURE) => (b"", Part::Signature),
            (Part::Signature, SIGNATURE_END) => (b"", Part::Outside),
            (Part::Signature, _) if is_header(trimmed) || is_base64(trimmed) => (b"", part),
            (Part::Message, _) => (row.strip_prefix(b"- ").unwrap_or(row), part),
            (Part::Outside | Part::Headers | Part::Signature, _) => (row, part),
        };
        if part == Part::Outside && next != Part::Outside {
            begun_at = number;
        }
        part = next;
        kept_rows.push(kept);
    }
    let reason = match part {
        Part::Outside => None,
        Part::Signature => Some("the PGP signature has no end"),
        Part::Headers | Part::Message => Some("the PGP-signed message has no signature"),
    };
    let without_end = reason.map(|reason| OpenArmor { number: begun_at, reason });
    MessageRows { rows: kept_rows, without_end }
}

fn is_header(row: &[u8]) -> bool {
    let is_key = |key: &&[u8]| row.strip_prefix(*key).is_some_and(|rest| rest.starts_with(b":"));
    HEADERS.iter().any(is_key)
}

/// `true` for a row of a signature or of its checksum, and for an empty one.
fn is_base64(row: &[u8]) -> bool {
    row.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
}
