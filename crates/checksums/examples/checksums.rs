//! Writes a list of checksums as `sha256sum --tag` does, and parses it.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_bulk_read::digest::HashKind;
use haul_checksums::{LineFormat, List, hash_stream, write_line};

fn main() -> Result<(), Box<dyn Error>> {
    let (kind, format) = (HashKind::Sha256, LineFormat { tag: true, zero: false });
    let (digest, bytes) = hash_stream(&b"content"[..], kind)?;
    assert_eq!(bytes, 7);
    let mut text = Vec::new();
    write_line(&mut text, kind, &digest, b"a\nb", format); // a name with a newline
    print!("{}", String::from_utf8_lossy(&text));

    let list = List::parse(&text, None);
    assert_eq!((list.lines[0].kind, list.lines[0].name.as_slice()), (Some(kind), &b"a\nb"[..]));
    Ok(())
}
