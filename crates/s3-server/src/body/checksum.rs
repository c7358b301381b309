//! The checksums that S3 defines: their names, and the combination of part checksums. Pure.

use base64_simd::STANDARD as BASE64;
use crc_fast::{CrcAlgorithm, checksum_combine};
use haul_file_store::Attributes;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};

/// The attribute of an object or upload with the type of a multipart checksum.
pub(crate) const TYPE_ATTRIBUTE: &str = "x-amz-checksum-type";

/// The attribute of an upload with the checksum algorithm of its parts.
pub(crate) const ALGORITHM_ATTRIBUTE: &str = "x-amz-checksum-algorithm";

/// The checksum type of a checksum over the checksums of the parts. It ends with the number of
/// parts.
pub(crate) const COMPOSITE: &str = "COMPOSITE";

/// The checksum type of a checksum over all bytes of the object.
pub(crate) const FULL_OBJECT: &str = "FULL_OBJECT";

/// A checksum algorithm of S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    /// All algorithms.
    pub(crate) const ALL: [Self; 5] =
        [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Returns the name of the algorithm in S3.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Returns the header of the checksum, which is also the name of the attribute that stores it.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Returns the algorithm with this name, ignoring case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// Returns the algorithm whose checksum this header has.
    pub(crate) fn from_header(header: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.header().eq_ignore_ascii_case(header))
    }

    /// Creates a hasher of this algorithm.
    pub(crate) fn hasher(self) -> Hasher {
        let mut hasher = ChecksumHasher::default();
        match self {
            Self::Crc32 => hasher.crc32 = Some(Crc32::new()),
            Self::Crc32c => hasher.crc32c = Some(Crc32c::new()),
            Self::Crc64Nvme => hasher.crc64nvme = Some(Crc64Nvme::new()),
            Self::Sha1 => hasher.sha1 = Some(Sha1::new()),
            Self::Sha256 => hasher.sha256 = Some(Sha256::new()),
        }
        Hasher { algorithm: self, hasher }
    }

    /// Returns `true` if the checksum of an object can be computed from the checksums of its parts.
    pub(crate) const fn combines(self) -> bool {
        self.crc().is_some()
    }

    const fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Sha1 | Self::Sha256 => None,
        }
    }
}

/// A checksum under computation.
pub(crate) struct Hasher {
    algorithm: Algorithm,
    hasher: ChecksumHasher,
}

impl Hasher {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Returns the checksum of all added bytes.
    pub(crate) fn finish(self) -> Checksum {
        let all = self.hasher.finalize();
        let value = match self.algorithm {
            Algorithm::Crc32 => all.checksum_crc32,
            Algorithm::Crc32c => all.checksum_crc32c,
            Algorithm::Crc64Nvme => all.checksum_crc64nvme,
            Algorithm::Sha1 => all.checksum_sha1,
            Algorithm::Sha256 => all.checksum_sha256,
        };
        Checksum { algorithm: self.algorithm, value: value.unwrap_or_default() }
    }
}

/// A checksum and its value in Base64, as in headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) algorithm: Algorithm,
    pub(crate) value: String,
}

impl Checksum {
    /// Returns the checksum that is stored in these attributes.
    pub(crate) fn from_attributes(attributes: &Attributes) -> Option<Self> {
        Algorithm::ALL.into_iter().find_map(|algorithm| {
            let value = attributes.get(algorithm.header())?.to_owned();
            Some(Self { algorithm, value })
        })
    }

    /// Returns the checksum of an object whose parts have these lengths and checksums, all of the
    /// same algorithm. `None` if the checksum of a part is malformed.
    pub(crate) fn of_parts(kind: &str, parts: &[(u64, Self)]) -> Option<Self> {
        let algorithm = parts.first()?.1.algorithm;
        if kind == FULL_OBJECT { combine(algorithm, parts) } else { compose(algorithm, parts) }
    }
}

/// Returns the composite checksum: the checksum of the concatenated checksums.
fn compose(algorithm: Algorithm, parts: &[(u64, Checksum)]) -> Option<Checksum> {
    let mut hasher = algorithm.hasher();
    for (_, checksum) in parts {
        hasher.update(&BASE64.decode_to_vec(&checksum.value).ok()?);
    }
    let value = format!("{}-{}", hasher.finish().value, parts.len());
    Some(Checksum { algorithm, value })
}

/// Returns the checksum of the concatenated parts, computed with the linearity of CRCs.
fn combine(algorithm: Algorithm, parts: &[(u64, Checksum)]) -> Option<Checksum> {
    let crc = algorithm.crc()?;
    let mut whole: Option<u64> = None;
    let mut width = 0;
    for (bytes, checksum) in parts {
        let value = BASE64.decode_to_vec(&checksum.value).ok()?;
        width = value.len();
        let value = value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        whole = Some(match whole {
            None => value,
            Some(before) => checksum_combine(crc, before, value, *bytes),
        });
    }
    let bytes = whole?.to_be_bytes();
    let value = BASE64.encode_to_string(&bytes[bytes.len().checked_sub(width)?..]);
    Some(Checksum { algorithm, value })
}

/// Sets the field of an output that belongs to the algorithm of the checksum.
macro_rules! show_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some($crate::body::checksum::Checksum { algorithm, value }) = $checksum {
            use $crate::body::checksum::Algorithm;
            match algorithm {
                Algorithm::Crc32 => $output.checksum_crc32 = Some(value),
                Algorithm::Crc32c => $output.checksum_crc32c = Some(value),
                Algorithm::Crc64Nvme => $output.checksum_crc64nvme = Some(value),
                Algorithm::Sha1 => $output.checksum_sha1 = Some(value),
                Algorithm::Sha256 => $output.checksum_sha256 = Some(value),
            }
        }
    };
}

/// Returns the checksum in the fields of an input, if it has one.
macro_rules! given_checksum {
    ($input:expr) => {{
        use $crate::body::checksum::{Algorithm, Checksum};
        let fields = [
            (Algorithm::Crc32, &$input.checksum_crc32),
            (Algorithm::Crc32c, &$input.checksum_crc32c),
            (Algorithm::Crc64Nvme, &$input.checksum_crc64nvme),
            (Algorithm::Sha1, &$input.checksum_sha1),
            (Algorithm::Sha256, &$input.checksum_sha256),
        ];
        fields
            .into_iter()
            .find_map(|(algorithm, value)| value.clone().map(|value| Checksum { algorithm, value }))
    }};
}

pub(crate) use {given_checksum, show_checksum};

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(algorithm: Algorithm, bytes: &[u8]) -> Checksum {
        let mut hasher = algorithm.hasher();
        hasher.update(bytes);
        hasher.finish()
    }

    #[test]
    fn checksums_have_the_catalogued_check_values() {
        for (algorithm, value) in [
            (Algorithm::Crc32, "y/Q5Jg=="),
            (Algorithm::Crc32c, "4waSgw=="),
            (Algorithm::Crc64Nvme, "rosUhgp5mIg="),
            (Algorithm::Sha1, "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ] {
            assert_eq!(checksum(algorithm, b"123456789").value, value, "{algorithm:?}");
        }
    }

    #[test]
    fn names_and_headers_are_parsed_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(&algorithm.name().to_lowercase()), Some(algorithm));
            assert_eq!(Algorithm::from_header(algorithm.header()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("MD5"), None);
    }

    #[test]
    fn combined_checksum_is_that_of_all_bytes() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7 % 251) as u8).collect();
        for algorithm in Algorithm::ALL {
            let parts: Vec<_> = [&bytes[..4000], &bytes[4000..4001], &bytes[4001..]]
                .into_iter()
                .map(|part| (part.len() as u64, checksum(algorithm, part)))
                .collect();
            let whole = Checksum::of_parts(FULL_OBJECT, &parts);
            let expected = algorithm.combines().then(|| checksum(algorithm, &bytes));
            assert_eq!(whole, expected, "{algorithm:?}");
        }
    }

    #[test]
    fn composite_checksum_covers_the_part_checksums() {
        let parts = [(1, checksum(Algorithm::Crc32, b"a")), (1, checksum(Algorithm::Crc32, b"b"))];
        let mut both = Vec::new();
        for (_, part) in &parts {
            both.extend(BASE64.decode_to_vec(&part.value).unwrap());
        }
        let expected = format!("{}-2", checksum(Algorithm::Crc32, &both).value);
        assert_eq!(Checksum::of_parts(COMPOSITE, &parts).unwrap().value, expected);
    }

    #[test]
    fn malformed_part_checksum_yields_none() {
        let part = (1, Checksum { algorithm: Algorithm::Crc32, value: "?".into() });
        assert_eq!(Checksum::of_parts(COMPOSITE, std::slice::from_ref(&part)), None);
        assert_eq!(Checksum::of_parts(FULL_OBJECT, &[part]), None);
    }
}
