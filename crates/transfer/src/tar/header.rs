//! Decodes and encodes the header blocks of tar archives: V7, ustar, and the extensions of GNU tar.
//! Performs no I/O.

/// The length of a header, and the unit of all lengths in an archive.
pub(super) const BLOCK_BYTES: usize = 512;

/// A block of an archive.
pub(super) type Block = [u8; BLOCK_BYTES];

const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const UID: std::ops::Range<usize> = 108..116;
const GID: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const MTIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND_AT: usize = 156;
const LINK: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;

const USTAR: &[u8] = b"ustar\x0000";

/// The longest name that a header has space for.
pub(super) const NAME_BYTES_MAX: usize = NAME.end;

/// The greatest length that eleven octal digits can state.
const OCTAL_MAX: u64 = (1 << 33) - 1;

/// The kinds of members that this crate writes or handles.
pub(super) mod kind {
    pub(in crate::tar) const REGULAR: u8 = b'0';
    /// A regular file in archives of V7, or a directory if the name ends with a slash.
    pub(in crate::tar) const OLD_REGULAR: u8 = 0;
    pub(in crate::tar) const HARD_LINK: u8 = b'1';
    pub(in crate::tar) const SYMLINK: u8 = b'2';
    pub(in crate::tar) const DIRECTORY: u8 = b'5';
    /// A regular file that was contiguous on its disk.
    pub(in crate::tar) const CONTIGUOUS: u8 = b'7';
    pub(in crate::tar) const GNU_LONG_NAME: u8 = b'L';
    pub(in crate::tar) const GNU_LONG_LINK: u8 = b'K';
    pub(in crate::tar) const GNU_SPARSE: u8 = b'S';
    /// A directory with a list of its files, in incremental archives of GNU tar.
    pub(in crate::tar) const GNU_DUMP_DIRECTORY: u8 = b'D';
    pub(in crate::tar) const GNU_VOLUME_LABEL: u8 = b'V';
    pub(in crate::tar) const PAX: u8 = b'x';
    pub(in crate::tar) const PAX_GLOBAL: u8 = b'g';
    pub(in crate::tar) const PAX_SOLARIS: u8 = b'X';
}

/// The fields of a header that matter for an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) bytes: u64,
    /// Seconds since 1970.
    pub(super) mtime: i64,
}

impl Header {
    /// Decodes a header; `None` for a block of zeros, two of which end an archive.
    pub(super) fn decode(block: &Block) -> Result<Option<Self>, &'static str> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let stated = number(&block[CHECKSUM]);
        if !stated.is_some_and(|stated| checksums(block).contains(&stated)) {
            return Err("the checksum of a header does not match: not a tar archive, or damaged");
        }
        let mut name = text(&block[NAME]).to_vec();
        if &block[MAGIC] == USTAR && block[PREFIX.start] != 0 {
            name = [text(&block[PREFIX]), b"/", &name].concat();
        }
        let bytes = number(&block[SIZE]).and_then(|bytes| u64::try_from(bytes).ok());
        Ok(Some(Self {
            kind: block[KIND_AT],
            name,
            link: text(&block[LINK]).to_vec(),
            bytes: bytes.ok_or("the length in a header is not a number")?,
            mtime: number(&block[MTIME]).ok_or("the time in a header is not a number")?,
        }))
    }

    /// Encodes the header of a member that everyone may read and the owner may write. A longer name
    /// is cut; a PAX header states it.
    pub(super) fn encode(&self) -> Block {
        let mut block = [0; BLOCK_BYTES];
        let name = &self.name[..self.name.len().min(NAME_BYTES_MAX)];
        block[..name.len()].copy_from_slice(name);
        put_octal(&mut block[MODE], 0o644);
        put_octal(&mut block[UID], 0);
        put_octal(&mut block[GID], 0);
        if self.bytes > OCTAL_MAX {
            // The form of GNU tar, for programs that do not know PAX headers.
            block[SIZE.start] = 0x80;
            block[SIZE.end - 8..SIZE.end].copy_from_slice(&self.bytes.to_be_bytes());
        } else {
            put_octal(&mut block[SIZE], self.bytes);
        }
        put_octal(&mut block[MTIME], u64::try_from(self.mtime).unwrap_or(0).min(OCTAL_MAX));
        block[KIND_AT] = self.kind;
        block[MAGIC].copy_from_slice(USTAR);
        let [checksum, _signed] = checksums(&block);
        let checksum = format!("{checksum:06o}\0 ");
        block[CHECKSUM].copy_from_slice(checksum.as_bytes());
        block
    }

    /// Returns `true` if the header cannot state this length, or this time.
    pub(super) fn is_out_of_range(bytes: u64, mtime: i64) -> bool {
        bytes > OCTAL_MAX || !(0..=OCTAL_MAX.cast_signed()).contains(&mtime)
    }
}

/// Returns the checksums of a header with its bytes taken as unsigned and, as some old programs do,
/// as signed numbers.
fn checksums(block: &Block) -> [i64; 2] {
    let byte = |at: usize| if CHECKSUM.contains(&at) { b' ' } else { block[at] };
    let unsigned = (0..BLOCK_BYTES).map(|at| i64::from(byte(at))).sum();
    let signed = (0..BLOCK_BYTES).map(|at| i64::from(byte(at).cast_signed())).sum();
    [unsigned, signed]
}

/// Decodes a number in octal digits, or in the binary form of GNU tar. An empty field is 0.
fn number(field: &[u8]) -> Option<i64> {
    if let [first @ (0x80 | 0xff), rest @ ..] = field {
        let (high, low) = rest.split_at(rest.len() - rest.len().min(8));
        let sign: u8 = if *first == 0xff { 0xff } else { 0 };
        let value = low
            .iter()
            .fold(i128::from(sign.cast_signed()), |all, byte| all << 8 | i128::from(*byte));
        let is_short = high.iter().all(|byte| *byte == sign);
        return is_short.then_some(value).and_then(|value| i64::try_from(value).ok());
    }
    let digits = text(field).trim_ascii();
    let is_octal = digits.iter().all(|byte| (b'0'..=b'7').contains(byte));
    let digit =
        |all: Option<i64>, byte: &u8| all?.checked_mul(8)?.checked_add((byte - b'0').into());
    is_octal.then(|| digits.iter().fold(Some(0), digit)).flatten()
}

fn put_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    field[..digits].copy_from_slice(format!("{value:0digits$o}").as_bytes());
}

/// Returns the bytes up to the first NUL.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: kind::REGULAR,
            name: b"a/b".to_vec(),
            bytes: 7,
            mtime: 11,
            ..Header::default()
        }
    }

    #[test]
    fn header_decodes_as_it_was_encoded() {
        for bytes in [0, OCTAL_MAX, OCTAL_MAX + 1, i64::MAX.cast_unsigned()] {
            let header = Header { bytes, ..header() };
            assert_eq!(Header::decode(&header.encode()), Ok(Some(header)), "{bytes}");
        }
        assert_eq!(Header::decode(&[0; BLOCK_BYTES]), Ok(None));
    }

    #[test]
    fn every_changed_byte_is_found() {
        let good = header().encode();
        for at in 0..BLOCK_BYTES {
            let mut block = good;
            block[at] ^= 1;
            let decoded = Header::decode(&block);
            assert!(decoded.is_err() || CHECKSUM.contains(&at), "{at}: {decoded:?}");
        }
    }

    #[test]
    fn numbers_have_octal_and_binary_forms() {
        for (field, value) in [
            (&b"0000017\0"[..], Some(15)),
            (b"   17 \0\0", Some(15)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\0\0\0\x01\0\0\0\0\0\0\x02", Some((1 << 56) + 2)),
            (b"\x80\x01\0\0\0\0\0\0\0\0\0\0", None),
            (b"12x4567\0", None),
            (b"-000017\0", None),
        ] {
            assert_eq!(number(field), value, "{field:?}");
        }
    }

    #[test]
    fn prefix_of_ustar_is_part_of_the_name_and_that_of_gnu_is_not() {
        let with_magic = |magic: &[u8]| {
            let mut block = header().encode();
            block[MAGIC].copy_from_slice(magic);
            block[PREFIX.start..PREFIX.start + 3].copy_from_slice(b"p/q");
            let [checksum, _] = checksums(&block);
            block[CHECKSUM].copy_from_slice(format!("{checksum:06o}\0 ").as_bytes());
            Header::decode(&block).unwrap().unwrap().name
        };
        assert_eq!(with_magic(USTAR), b"p/q/a/b");
        assert_eq!(with_magic(b"ustar  \0"), b"a/b");
    }
}
