//! The checksums that S3 defines: their names, and their values in requests and responses. Pure.

use base64_simd::STANDARD as BASE64;
use haul_file_store::Attributes;

use crate::errors::{S3Error, S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::fields::Fields;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// The object or upload attribute with a multipart checksum's type; also the header name.
pub(crate) const TYPE_ATTRIBUTE: &str = "x-amz-checksum-type";

/// The upload attribute with the checksum algorithm for its parts; also the header name.
pub(crate) const ALGORITHM_ATTRIBUTE: &str = "x-amz-checksum-algorithm";

/// The header with which a read requests checksums.
const MODE: &str = "x-amz-checksum-mode";

/// The prefix of checksum header names.
const PREFIX: &str = "x-amz-checksum-";

/// The checksum type of a checksum over the parts' checksums. Its value ends with the number of
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
    Sha512,
    Md5,
    Xxhash64,
    Xxhash3,
    Xxhash128,
}

impl Algorithm {
    pub(crate) const ALL: [Self; 10] = [
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Md5,
        Self::Xxhash64,
        Self::Xxhash3,
        Self::Xxhash128,
    ];

    /// Returns the algorithm's S3 name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
            Self::Md5 => "MD5",
            Self::Xxhash64 => "XXHASH64",
            Self::Xxhash3 => "XXHASH3",
            Self::Xxhash128 => "XXHASH128",
        }
    }

    /// Returns the checksum's header name, which is also the name of the attribute that stores it.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
            Self::Sha512 => "x-amz-checksum-sha512",
            Self::Md5 => "x-amz-checksum-md5",
            Self::Xxhash64 => "x-amz-checksum-xxhash64",
            Self::Xxhash3 => "x-amz-checksum-xxhash3",
            Self::Xxhash128 => "x-amz-checksum-xxhash128",
        }
    }

    /// Returns the name of the checksum's XML element.
    const fn element(self) -> &'static str {
        match self {
            Self::Crc32 => "ChecksumCRC32",
            Self::Crc32c => "ChecksumCRC32C",
            Self::Crc64Nvme => "ChecksumCRC64NVME",
            Self::Sha1 => "ChecksumSHA1",
            Self::Sha256 => "ChecksumSHA256",
            Self::Sha512 => "ChecksumSHA512",
            Self::Md5 => "ChecksumMD5",
            Self::Xxhash64 => "ChecksumXXHASH64",
            Self::Xxhash3 => "ChecksumXXHASH3",
            Self::Xxhash128 => "ChecksumXXHASH128",
        }
    }

    /// Returns the checksum's length in bytes.
    const fn bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme | Self::Xxhash64 | Self::Xxhash3 => 8,
            Self::Md5 | Self::Xxhash128 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Returns the algorithm with this name, ignoring case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// Returns the algorithm that a request names, ignoring case.
    ///
    /// # Errors
    /// `InvalidRequest` if no algorithm has this name.
    pub(crate) fn parse(name: &str) -> S3Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let mut names = Self::ALL.map(Self::name);
            names.sort_unstable();
            let message = format!(
                "Checksum algorithm provided is unsupported. Please try again with any of the \
                 valid types: [{}]",
                names.join(", ")
            );
            refuse(S3ErrorCode::InvalidRequest, message)
        })
    }

    /// Returns the algorithm of a checksum header, ignoring case.
    pub(crate) fn from_header(header: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.header().eq_ignore_ascii_case(header))
    }

    /// Returns `true` if an object's checksum can be computed from its parts' checksums.
    pub(crate) const fn combines(self) -> bool {
        matches!(self, Self::Crc32 | Self::Crc32c | Self::Crc64Nvme)
    }

    /// Returns `true` for a Base64 checksum with this algorithm's length.
    fn accepts(self, value: &str) -> bool {
        BASE64.decode_to_vec(value).is_ok_and(|bytes| bytes.len() == self.bytes())
    }
}

/// A checksum and its value in Base64, as in headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) algorithm: Algorithm,
    pub(crate) value: String,
}

impl Checksum {
    /// Encodes a checksum, whose bytes begin with the most significant one.
    pub(super) fn new(algorithm: Algorithm, bytes: &[u8]) -> Self {
        // A 32-bit CRC is computed as a 64-bit number.
        let bytes = &bytes[bytes.len().saturating_sub(algorithm.bytes())..];
        Self { algorithm, value: BASE64.encode_to_string(bytes) }
    }

    /// Returns the checksum that is stored in these attributes.
    pub(crate) fn from_attributes(attributes: &Attributes) -> Option<Self> {
        Algorithm::ALL.into_iter().find_map(|algorithm| Self::stored(attributes, algorithm))
    }

    /// Returns the checksum with this algorithm that is stored in these attributes.
    pub(crate) fn stored(attributes: &Attributes, algorithm: Algorithm) -> Option<Self> {
        let value = attributes.get(algorithm.header())?.to_owned();
        Some(Self { algorithm, value })
    }

    /// Returns the checksum in a request's headers.
    ///
    /// # Errors
    /// `InvalidRequest` if there are several, or if the algorithm is unknown or the value invalid.
    pub(crate) fn in_fields(fields: &Fields) -> S3Result<Option<Self>> {
        let Some(found) = Self::unchecked_in_fields(fields)? else { return Ok(None) };
        if !found.algorithm.accepts(&found.value) {
            return Err(invalid_header(found.algorithm.header()));
        }
        Ok(Some(found))
    }

    /// Like [`Self::in_fields`], for an object in parts: a composite checksum's value may end with
    /// the number of parts.
    ///
    /// # Errors
    /// Fails like [`Self::in_fields`].
    pub(crate) fn in_part_fields(fields: &Fields) -> S3Result<Option<Self>> {
        let Some(found) = Self::unchecked_in_fields(fields)? else { return Ok(None) };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (value, is_valid) = match found.value.split_once('-') {
            Some((value, parts)) => (value, is_number(parts)),
            None => (&*found.value, true),
        };
        if !is_valid || !found.algorithm.accepts(value) {
            return Err(invalid_header(found.algorithm.header()));
        }
        Ok(Some(found))
    }

    fn unchecked_in_fields(fields: &Fields) -> S3Result<Option<Self>> {
        let mut found = None;
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            if matches!(name, ALGORITHM_ATTRIBUTE | TYPE_ATTRIBUTE | MODE) {
                continue;
            }
            let Some(algorithm) = Algorithm::from_header(name) else {
                let message =
                    "The algorithm type you specified in x-amz-checksum- header is invalid.";
                return Err(refuse(S3ErrorCode::InvalidRequest, message));
            };
            if found.is_some() {
                return Err(several_checksums_error());
            }
            let value = String::from_utf8_lossy(value).trim().to_owned();
            found = Some(Self { algorithm, value });
        }
        Ok(found)
    }

    /// Returns the checksum with this algorithm in a body's trailer.
    ///
    /// # Errors
    /// `InvalidRequest` if the value is invalid.
    pub(super) fn in_trailer(trailer: &Fields, algorithm: Algorithm) -> S3Result<Option<Self>> {
        let Some(value) = trailer.first(algorithm.header()) else { return Ok(None) };
        let value = String::from_utf8_lossy(value).trim().to_owned();
        if !algorithm.accepts(&value) {
            let message = format!("Value for {} trailing header is invalid.", algorithm.header());
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        Ok(Some(Self { algorithm, value }))
    }

    /// Returns the checksum in a part's XML element.
    ///
    /// # Errors
    /// `InvalidArgument` if there are several, or if the value is invalid.
    pub(crate) fn in_element(element: &Element) -> S3Result<Option<Self>> {
        let mut all = Vec::new();
        for algorithm in Algorithm::ALL {
            if let Some(value) = element.word_of(algorithm.element())? {
                all.push(Self { algorithm, value: value.to_owned() });
            }
        }
        let is_valid = all.iter().all(|found| found.algorithm.accepts(&found.value));
        if all.len() <= 1 && is_valid {
            return Ok(all.pop());
        }
        let shown = match &*all {
            [one] => one.value.clone(),
            several_checksums_error => {
                let entry = |one: &Self| format!("{}:{};", one.algorithm.name(), one.value);
                several_checksums_error.iter().map(entry).collect()
            }
        };
        let message = "Invalid Base64 or multiple checksums present in request";
        Err(invalid_argument("Checksum", &shown, message))
    }

    /// Returns the names of the elements that [`Self::in_element`] reads.
    pub(crate) fn elements() -> [&'static str; Algorithm::ALL.len()] {
        Algorithm::ALL.map(Algorithm::element)
    }

    /// Returns the value without the number of parts at the end of a composite checksum.
    pub(crate) fn bare_value(&self) -> &str {
        self.value.split('-').next().unwrap_or_default()
    }

    /// Adds the checksum to the attributes of an object or a part.
    pub(crate) fn set(&self, attributes: &mut Attributes) {
        attributes.set(self.algorithm.header(), &*self.value);
    }

    /// Writes the checksum's XML element.
    pub(crate) fn write_xml(&self, xml: &mut Xml) {
        xml.element(self.algorithm.element(), &self.value);
    }
}

/// Returns the checksum type in an object's attributes. Default: [`FULL_OBJECT`].
pub(crate) fn kind_of(attributes: &Attributes) -> &str {
    attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT)
}

/// Returns the error for a checksum header whose value is invalid.
pub(crate) fn invalid_header(name: &str) -> S3Error {
    refuse(S3ErrorCode::InvalidRequest, format!("Value for {name} header is invalid."))
}

/// Returns the error for a request with more than one checksum.
pub(super) fn several_checksums_error() -> S3Error {
    let message = "Expecting a single x-amz-checksum- header. Multiple checksum Types are not \
                   allowed.";
    refuse(S3ErrorCode::InvalidRequest, message)
}

/// Returns the error for a checksum that does not match the content.
pub(crate) fn bad_digest(algorithm: Algorithm) -> S3Error {
    let name = algorithm.name();
    let message = format!("The {name} you specified did not match the calculated checksum.");
    refuse(S3ErrorCode::BadDigest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc32() -> Checksum {
        Checksum { algorithm: Algorithm::Crc32, value: "y/Q5Jg==".to_owned() }
    }

    fn in_fields(fields: &[(&str, &str)]) -> S3Result<Option<Checksum>> {
        Checksum::in_fields(&fields.iter().copied().collect())
    }

    #[test]
    fn names_and_headers_are_parsed_back() {
        let attributes: Attributes =
            Algorithm::ALL.into_iter().map(|algorithm| (algorithm.header(), "x")).collect();
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(&algorithm.name().to_lowercase()), Some(algorithm));
            assert_eq!(Algorithm::from_header(&algorithm.header().to_uppercase()), Some(algorithm));
            assert_eq!(algorithm.header(), format!("{PREFIX}{}", algorithm.name().to_lowercase()));
            assert_eq!(algorithm.element(), format!("Checksum{}", algorithm.name()));
            assert!(Checksum::stored(&attributes, algorithm).is_some());
        }
        assert_eq!(Algorithm::parse("MD4").unwrap_err().code(), S3ErrorCode::InvalidRequest);
    }

    #[test]
    fn request_has_one_valid_checksum_of_a_known_algorithm() {
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let found = in_fields(&[(ALGORITHM_ATTRIBUTE, "x"), (TYPE_ATTRIBUTE, "y"), (MODE, "z")]);
        assert_eq!(found.unwrap(), None);
        let found = in_fields(&[("X-Amz-Checksum-CRC32", crc.1)]).unwrap().unwrap();
        assert_eq!(found, crc32());
        for fields in [
            &[crc, ("x-amz-checksum-crc32c", "4waSgw==")][..],
            &[crc, crc],
            &[("x-amz-checksum-crc32", "")],
            &[("x-amz-checksum-crc32", "y/Q5Jg")],
            &[("x-amz-checksum-crc32", "!!!")],
            &[("x-amz-checksum-sha1", crc.1)],
            &[("x-amz-checksum-crc32", "y/Q5Jg==-2")],
            &[("x-amz-checksum-foo", crc.1)],
        ] {
            let error = in_fields(fields).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRequest, "{fields:?}");
        }
    }

    #[test]
    fn checksum_of_parts_may_have_their_number() {
        let found = |value| {
            let fields = [("x-amz-checksum-crc32", value)].into_iter().collect();
            Checksum::in_part_fields(&fields)
        };
        for value in ["y/Q5Jg==", "y/Q5Jg==-2"] {
            assert_eq!(found(value).unwrap().unwrap().value, value);
        }
        for value in ["", "-2", "y/Q5Jg==-", "y/Q5Jg==-a", "y/Q5Jg==-1-2", "y/Q5Jg==--3", "AA==-1"]
        {
            assert_eq!(found(value).unwrap_err().code(), S3ErrorCode::InvalidRequest, "{value}");
        }
    }

    #[test]
    fn element_of_a_part_has_one_valid_checksum() {
        let found = |content: &str| {
            let document = format!("<Part>{content}</Part>");
            Checksum::in_element(&Element::document(document.as_bytes(), "Part").unwrap())
        };
        assert_eq!(found("<ETag>a</ETag>").unwrap(), None);
        let crc = "<ChecksumCRC32>\n y/Q5Jg== </ChecksumCRC32>";
        assert_eq!(found(crc).unwrap().unwrap(), crc32());
        let sha = "<ChecksumSHA1>98O8HYCOBHMq32eZZczDTKeuNEE=</ChecksumSHA1>";
        for (content, value) in [
            (format!("{crc}{sha}"), "CRC32:y/Q5Jg==;SHA1:98O8HYCOBHMq32eZZczDTKeuNEE=;"),
            ("<ChecksumMD5>y/Q5Jg==</ChecksumMD5>".to_owned(), "y/Q5Jg=="),
        ] {
            let error = found(&content).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{content}");
            assert_eq!(error.field("ArgumentValue"), Some(value));
        }
    }

    #[test]
    fn document_has_the_checksum() {
        let xml = Xml::plain("A", |xml| crc32().write_xml(xml));
        assert!(xml.contains("<ChecksumCRC32>y/Q5Jg==</ChecksumCRC32>"), "{xml}");
        let composite = Checksum { value: "y/Q5Jg==-2".to_owned(), ..crc32() };
        assert_eq!((composite.bare_value(), crc32().bare_value()), ("y/Q5Jg==", "y/Q5Jg=="));
    }
}
