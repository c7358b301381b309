//! Encodes and decodes a manifest, as `FORMAT.md` describes.

use std::borrow::Cow;

use haul_append_log::Lsn;

use super::{Chunk, HEADER_BYTES, HistoryEntry, IndexFile, Manifest, SegmentCopy};

const MAGIC: [u8; 8] = *b"HAUL-RPL";

const VERSION: u64 = 1;

/// The offset at which the checksummed bytes begin.
const BODY_AT: usize = 12;

pub(crate) fn encode(manifest: &Manifest) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(1024 + manifest.tail.len()));
    out.0.extend_from_slice(&MAGIC);
    out.0.extend_from_slice(&[0; 4]);
    out.number(VERSION);
    out.number(manifest.generation);
    out.number(manifest.epoch);
    out.0.extend_from_slice(&manifest.session.to_le_bytes());
    out.number(manifest.written_ms);
    out.bytes(manifest.kind.as_bytes());
    out.bytes(manifest.segment_dir.as_bytes());
    out.list(&manifest.segments, |out, segment| {
        out.number(segment.number.into());
        out.0.extend_from_slice(&segment.nonce.to_le_bytes());
        out.0.extend_from_slice(&segment.header);
        out.number(segment.is_complete.into());
        out.list(&segment.chunks, |out, chunk| {
            out.number(chunk.from.into());
            out.number(chunk.to.into());
            out.number(chunk.epoch);
            out.0.extend_from_slice(&chunk.checksum.to_le_bytes());
        });
    });
    out.bytes(&manifest.tail);
    out.list(&manifest.small_files, |out, (name, content)| {
        out.bytes(name.as_bytes());
        out.bytes(content);
    });
    out.number(manifest.checkpoint.0);
    out.list(&manifest.index, |out, file| {
        out.bytes(file.name.as_bytes());
        out.number(file.bytes);
        out.number(file.epoch);
        out.0.extend_from_slice(&file.checksum.to_le_bytes());
    });
    out.number(manifest.lease_ms);
    out.list(&manifest.history, |out, entry| {
        out.number(entry.written_ms);
        out.number(entry.generation);
        out.number(entry.epoch);
    });
    let checksum = haul_crc::crc32c(&out.0[BODY_AT..]);
    out.0[8..BODY_AT].copy_from_slice(&checksum.to_le_bytes());
    out.0
}

/// Decodes a manifest. The error describes the check that failed.
pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest, Cow<'static, str>> {
    if bytes.len() < BODY_AT || bytes[..8] != MAGIC {
        return Err("it is no manifest of a copy".into());
    }
    if haul_crc::crc32c(&bytes[BODY_AT..]).to_le_bytes() != bytes[8..BODY_AT] {
        return Err("the checksum of the manifest does not match".into());
    }
    let mut input = Reader(&bytes[BODY_AT..]);
    if let Some(version) = input.number().filter(|version| *version != VERSION) {
        let what = format!("its format has version {version}; this program supports {VERSION}");
        return Err(what.into());
    }
    let manifest = body(&mut input).filter(|_| input.0.is_empty());
    manifest.filter(is_consistent).ok_or("the fields of the manifest contradict each other".into())
}

fn body(input: &mut Reader<'_>) -> Option<Manifest> {
    Some(Manifest {
        generation: input.number()?,
        epoch: input.number()?,
        session: u128::from_le_bytes(input.array()?),
        written_ms: input.number()?,
        kind: input.text()?,
        segment_dir: input.text()?,
        segments: input.list(|input| {
            Some(SegmentCopy {
                number: input.small()?,
                nonce: u64::from_le_bytes(input.array()?),
                header: input.array::<HEADER_BYTES>()?,
                is_complete: input.flag()?,
                chunks: input.list(|input| {
                    let (from, to, epoch) = (input.small()?, input.small()?, input.number()?);
                    Some(Chunk { from, to, epoch, checksum: u32::from_le_bytes(input.array()?) })
                })?,
            })
        })?,
        tail: input.bytes()?.to_vec(),
        small_files: input.list(|input| Some((input.text()?, input.bytes()?.to_vec())))?,
        checkpoint: Lsn(input.number()?),
        index: input.list(|input| {
            let (name, bytes, epoch) = (input.text()?, input.number()?, input.number()?);
            Some(IndexFile { name, bytes, epoch, checksum: u32::from_le_bytes(input.array()?) })
        })?,
        lease_ms: input.number()?,
        history: input.list(|input| {
            let (written_ms, generation) = (input.number()?, input.number()?);
            Some(HistoryEntry { written_ms, generation, epoch: input.number()? })
        })?,
    })
}

/// `true` if the segments are in order, and each segment's chunks are adjacent and begin at 0. Only
/// the last segment may be incomplete or continue in the tail. The kept states are in order.
fn is_consistent(manifest: &Manifest) -> bool {
    let adjacent = |chunks: &[Chunk]| {
        chunks.iter().all(|chunk| chunk.from < chunk.to)
            && chunks.first().is_none_or(|chunk| chunk.from == 0)
            && chunks.windows(2).all(|pair| pair[0].to == pair[1].from)
    };
    let segments = &manifest.segments;
    segments.is_sorted_by(|a, b| a.number < b.number)
        && segments.iter().all(|segment| adjacent(&segment.chunks))
        && segments.iter().rev().skip(1).all(|segment| segment.is_complete)
        && (manifest.tail.is_empty() || !segments.is_empty())
        && manifest.history.is_sorted_by(|a, b| a.generation < b.generation)
        && manifest.history.last().is_none_or(|last| last.generation < manifest.generation)
}

struct Writer(Vec<u8>);

impl Writer {
    /// Appends a varint (LEB128).
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push((number & 0x7f) as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| each(self, item));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn list<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // A damaged count must not allocate memory in advance.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(each(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Manifest {
        Manifest {
            generation: 7,
            epoch: 2,
            session: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            written_ms: 1_700_000_000_000,
            kind: "log".to_owned(),
            segment_dir: String::new(),
            segments: vec![SegmentCopy {
                number: 3,
                nonce: 0x0123_4567_89ab_cdef,
                header: [0; HEADER_BYTES],
                is_complete: false,
                chunks: vec![Chunk { from: 0, to: 4144, epoch: 2, checksum: 9 }],
            }],
            tail: b"tail".to_vec(),
            small_files: vec![("STORE".to_owned(), b"x".to_vec())],
            checkpoint: Lsn::new(3, 4096),
            index: vec![IndexFile {
                name: "index/CATALOG".to_owned(),
                bytes: 300,
                epoch: 2,
                checksum: 5,
            }],
            lease_ms: 3000,
            history: vec![HistoryEntry { written_ms: 1_699_999_999_000, generation: 5, epoch: 1 }],
        }
    }

    #[test]
    fn worked_example_in_format_md_is_correct() {
        let page = include_str!("../../FORMAT.md");
        let bytes = haul_testing::docs::hex_example(page);
        assert_eq!(encode(&example()), bytes);
        assert_eq!(decode(&bytes), Ok(example()));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let good = encode(&example());
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad).is_err(), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(decode(&good[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn contradicting_fields_are_refused() {
        let changes: [fn(&mut Manifest); 6] = [
            |manifest| manifest.history.push(manifest.history[0]),
            |manifest| manifest.history[0].generation = 7,
            |manifest| manifest.segments[0].chunks[0].from = 8,
            |manifest| manifest.segments[0].chunks[0].to = 0,
            |manifest| manifest.segments.push(manifest.segments[0].clone()),
            |manifest| manifest.segments.clear(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut manifest = example();
            change(&mut manifest);
            assert!(decode(&encode(&manifest)).is_err(), "change {number}");
        }
    }

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = haul_crc::crc32c(&bytes[BODY_AT..]);
        bytes[8..BODY_AT].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn malformed_fields_with_a_matching_checksum_are_refused() {
        let good = encode(&example());
        let mut complete = example();
        complete.segments[0].is_complete = true;
        let complete = encode(&complete);
        let flag = (BODY_AT..).find(|at| good[*at] != complete[*at]).unwrap();
        let text = good.windows(3).position(|bytes| bytes == b"log").unwrap();
        for (at, byte, expected) in
            [(BODY_AT, 3, "version"), (flag, 2, "contradict"), (text, 0xff, "contradict")]
        {
            let mut bad = good.clone();
            bad[at] = byte;
            let error = decode(&sealed(bad)).unwrap_err();
            assert!(error.contains(expected), "{at}: {error}");
        }
        assert!(decode(&sealed([&good[..], b"x"].concat())).is_err());
    }

    #[test]
    fn numbers_have_at_most_64_bits() {
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Reader(&largest).number(), Some(u64::MAX));
        assert_eq!(Reader(&largest).small(), None, "of 32 bits");
        let mut unending = largest;
        unending[9] = 0x81;
        for bytes in [&largest[..9], &unending, &[0xff; 10]] {
            assert_eq!(Reader(bytes).number(), None, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&haul_crc::crc32c(&body).to_le_bytes());
            bytes.extend_from_slice(&body);
            drop(decode(&bytes));
        }
    }
}
