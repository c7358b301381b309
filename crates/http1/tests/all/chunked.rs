//! Tests decoding and writing of chunked bodies.

use haul_http1::{Chunk, ChunkLimits, ChunkedDecoder, HttpError, LAST_CHUNK, write_chunk_size};
use proptest::prelude::*;

use crate::corpus::HOSTILE_BODIES;

/// The data of a chunked body and the bytes after it; `None` if the body is incomplete.
type Decoded<'a> = Result<Option<(Vec<u8>, &'a [u8])>, HttpError>;

/// Decodes a body received in pieces of `piece_bytes` bytes.
fn decode(body: &[u8], piece_bytes: usize) -> Decoded<'_> {
    decode_within(body, piece_bytes, ChunkLimits::default())
}

fn decode_within(body: &[u8], piece_bytes: usize, limits: ChunkLimits) -> Decoded<'_> {
    let mut chunks = ChunkedDecoder::new(limits);
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let piece = &body[at..body.len().min(at + piece_bytes)];
        let (frame_bytes, chunk) = chunks.scan(piece)?;
        at += frame_bytes;
        match chunk {
            Chunk::End => return Ok(Some((data, &body[at..]))),
            Chunk::Data(left_bytes) => {
                assert!(left_bytes > 0);
                let some = &body[at..body.len().min(at + piece_bytes)];
                let some = &some[..some.len().min(usize::try_from(left_bytes).unwrap())];
                if some.is_empty() {
                    return Ok(None);
                }
                data.extend_from_slice(some);
                at += some.len();
                chunks.advance(some.len() as u64);
            }
            Chunk::Incomplete => {
                assert_eq!(frame_bytes, piece.len(), "incomplete framing is consumed");
                if at == body.len() {
                    return Ok(None);
                }
            }
        }
    }
}

#[test]
fn data_does_not_depend_on_splits() {
    for (body, expected) in [
        ("0\r\n\r\n", ""),
        ("000\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n", "hello world"),
        ("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
        ("1e\r\nall your base are belong to us\r\n0\r\n\r\n", "all your base are belong to us"),
        ("5;a;b=c;d=\"e f\"\r\nhello\r\n0;z\r\n\r\n", "hello"),
        ("5;\thidden\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5; a = b ; c\t=\t\"\\\"; \"; d;e\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5 ;a\r\nhello\r\n0\t \t;\tb = c\r\n\r\n", "hello"),
        ("5;a=\"é \\é\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("2\r\n\r\n\r\n0\r\nA: b\r\nc-d:\r\nE:\t f \r\n\r\n", "\r\n"),
        ("0000000000000001\r\nx\r\n0\r\n\r\n", "x"),
    ] {
        let whole = [body.as_bytes(), b"GET /next"].concat();
        for piece_bytes in 1..=whole.len() {
            let (data, rest) = decode(&whole, piece_bytes).unwrap().unwrap();
            assert_eq!(String::from_utf8_lossy(&data), expected, "{body} by {piece_bytes}");
            assert_eq!(rest, b"GET /next", "{body} by {piece_bytes}");
        }
        for bytes in 0..body.len() {
            assert_eq!(decode(&body.as_bytes()[..bytes], 1), Ok(None), "{bytes} of {body}");
        }
    }
}

#[test]
fn hostile_bodies_are_rejected_for_any_split() {
    for (why, body) in HOSTILE_BODIES {
        for piece_bytes in 1..=body.len() {
            let status = decode(body, piece_bytes).map_err(|error| error.status);
            assert_eq!(status, Err(400), "{why} by {piece_bytes}");
        }
    }
}

#[test]
fn extension_and_trailer_limits_are_exact() {
    let limits =
        ChunkLimits { extension_bytes_max: 10, extensions_bytes_max: 25, trailer_bytes_max: 20 };
    let status = |body: String| {
        let data = decode_within(body.as_bytes(), 7, limits);
        data.map(|decoded| decoded.is_some()).map_err(|error| error.status)
    };
    let extended = |bytes: usize| format!("1;{}\r\nx\r\n", "e".repeat(bytes - 1));
    assert_eq!(status(extended(10) + "0\r\n\r\n"), Ok(true));
    assert_eq!(status(extended(11) + "0\r\n\r\n"), Err(413));
    let blanks = |bytes: usize| format!("1{};e\r\nx\r\n", " ".repeat(bytes - 2));
    assert_eq!(status(blanks(10) + "0\r\n\r\n"), Ok(true));
    assert_eq!(status(blanks(11) + "0\r\n\r\n"), Err(413));
    assert_eq!(status(extended(10) + &extended(10) + &extended(5) + "0\r\n\r\n"), Ok(true));
    assert_eq!(status(extended(10) + &extended(10) + &extended(6) + "0\r\n\r\n"), Err(413));
    let trailer = |bytes: usize| format!("0\r\nA:{}\r\nB:c\r\n\r\n", "v".repeat(bytes - 5));
    assert_eq!(status(trailer(20)), Ok(true));
    assert_eq!(status(trailer(21)), Err(431));
}

#[test]
fn largest_chunk_is_2_63_minus_1() {
    let mut chunks = ChunkedDecoder::new(ChunkLimits::default());
    let expected = Ok((18, Chunk::Data(i64::MAX as u64)));
    assert_eq!(chunks.scan(b"7fffffffffffffff\r\n"), expected);
    chunks.advance(i64::MAX as u64);
    assert_eq!(chunks.scan(b"\r\n0\r\n\r\n"), Ok((7, Chunk::End)));
    assert_eq!(chunks.scan(b"more"), Ok((0, Chunk::End)));
}

#[test]
fn sizes_are_written_in_hexadecimal() {
    for size in [1, 9, 15, 16, 255, 256, 0x0012_3456_789a_bcde, u64::MAX] {
        let mut out = Vec::new();
        write_chunk_size(&mut out, size);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{size:x}\r\n"));
    }
}

proptest! {
    #[test]
    fn written_chunks_round_trip(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..8),
        piece_bytes in 1_usize..300,
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            write_chunk_size(&mut body, chunk.len() as u64);
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(LAST_CHUNK);
        body.extend_from_slice(b"rest");
        let (data, rest) = decode(&body, piece_bytes).unwrap().unwrap();
        prop_assert_eq!(data, chunks.concat());
        prop_assert_eq!(rest, b"rest");
    }

    #[test]
    fn result_does_not_depend_on_splits(
        body in "([0-9a-fA-F]{0,2}|;|x|\r\n|\n|\r|:| |A: b\r\n|0\r\n|1\r\nz\r\n|\r\n\r\n){0,8}",
        piece_bytes in 1_usize..20,
    ) {
        let whole = decode(body.as_bytes(), usize::MAX / 2);
        let pieces = decode(body.as_bytes(), piece_bytes);
        prop_assert_eq!(whole, pieces);
    }
}
