//! A completed object's checksum, computed from its parts' checksums. Pure.

use haul_file_store::{Attributes, PartInfo};

use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, COMPOSITE, Checksum, FULL_OBJECT, TYPE_ATTRIBUTE, bad_digest,
};
use crate::body::part_checksums::{self, PartChecksum, whole};
use crate::encryption::lengths::content_bytes;
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::stored::attributes::fit;

/// Returns a part's length as clients see it, in bytes.
pub(super) fn part_bytes(part: &PartInfo) -> u64 {
    match part.etag.is_encoded() {
        true => content_bytes(part.bytes).unwrap_or(part.bytes),
        false => part.bytes,
    }
}

/// The checksum that an upload's object will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UploadChecksum {
    algorithm: Algorithm,
    kind: String,
    /// `true` if the client chose the algorithm when it created the upload.
    is_chosen: bool,
}

impl UploadChecksum {
    /// Returns the checksum for an upload with these attributes. If the client has chosen none, the
    /// object has the CRC64NVME of all its bytes, as in S3.
    pub(super) fn new(attributes: &Attributes) -> Self {
        let chosen = attributes.get(ALGORITHM_ATTRIBUTE).and_then(Algorithm::from_name);
        let default = if chosen.is_some() { COMPOSITE } else { FULL_OBJECT };
        Self {
            algorithm: chosen.unwrap_or(Algorithm::Crc64Nvme),
            kind: attributes.get(TYPE_ATTRIBUTE).unwrap_or(default).to_owned(),
            is_chosen: chosen.is_some(),
        }
    }

    /// Fails if a request names another checksum type.
    pub(super) fn check_kind(&self, named: Option<&str>) -> S3Result<()> {
        if named.is_none_or(|named| named == self.kind) {
            return Ok(());
        }
        let kind = if self.is_chosen { &*self.kind } else { "null" };
        let message = format!(
            "The upload was created using the {kind} checksum mode. The complete request must use \
             the same checksum mode."
        );
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    }

    /// Fails if the part checksums must be sent, because the object's checksum is computed from
    /// them, and `given` is `false`.
    pub(super) fn check_given(&self, given: bool) -> S3Result<()> {
        if given || !self.is_chosen || self.kind != COMPOSITE {
            return Ok(());
        }
        let message = format!(
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: \
             null",
            self.algorithm.name()
        );
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    }

    /// Fails if a part's checksum differs from the checksum in the request's list.
    pub(super) fn check_part(&self, part: &PartInfo, listed: &Checksum) -> S3Result<()> {
        let algorithm = listed.algorithm;
        if Checksum::stored(&part.attributes, algorithm).as_ref() == Some(listed) {
            return Ok(());
        }
        let number = part.number;
        if self.is_chosen && algorithm != self.algorithm {
            let message = format!(
                "The {} you specified for part {number} did not match what we received.",
                algorithm.name().to_lowercase()
            );
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        let message = format!("Part {number} has a different checksum");
        Err(refuse(S3ErrorCode::InvalidPart, message)
            .with_field("PartNumber", number.to_string())
            .with_field("ETag", part.etag.to_string()))
    }

    /// Returns `true` if `given` is a valid checksum for the object with these parts, whose own
    /// checksum is `computed`. If the client chose no algorithm for the upload, `given` may have
    /// either type, and any algorithm with which all parts were uploaded.
    fn holds(&self, given: &Checksum, computed: Option<&Checksum>, parts: &[&PartInfo]) -> bool {
        let is_same = |found: &Checksum| {
            // Some clients omit the number of parts, with which a composite checksum ends.
            given.algorithm == found.algorithm
                && (given.value == found.value || given.value == found.bare_value())
        };
        if self.is_chosen || given.algorithm == self.algorithm {
            return computed.is_some_and(is_same);
        }
        let parts = stored_checksums(parts, given.algorithm).unwrap_or_default();
        let possible = [COMPOSITE, FULL_OBJECT].into_iter().filter_map(|kind| whole(kind, &parts));
        possible.into_iter().any(|found| is_same(&found))
    }
}

/// Returns the object's attributes: the upload's attributes, and the checksums of the object and
/// its parts.
///
/// # Errors
/// If the object does not have the checksum `given`.
pub(super) fn object_attributes(
    mut attributes: Attributes,
    upload: &UploadChecksum,
    parts: &[&PartInfo],
    given: Option<&Checksum>,
) -> S3Result<Attributes> {
    let checksums = stored_checksums(parts, upload.algorithm).unwrap_or_default();
    let computed = whole(&upload.kind, &checksums);
    if let Some(given) = given
        && !upload.holds(given, computed.as_ref(), parts)
    {
        return Err(bad_digest(given.algorithm));
    }
    let Some(checksum) = computed else { return Ok(attributes) };
    checksum.set(&mut attributes);
    attributes.set(TYPE_ATTRIBUTE, &*upload.kind);
    if upload.is_chosen {
        part_checksums::set(&mut attributes, &checksums);
        fit(&mut attributes);
    }
    Ok(attributes)
}

/// Returns the parts' checksums, if all parts have one with this algorithm.
fn stored_checksums(parts: &[&PartInfo], algorithm: Algorithm) -> Option<Vec<PartChecksum>> {
    let checksum = |part: &&PartInfo| {
        let checksum = Checksum::stored(&part.attributes, algorithm)?;
        Some(PartChecksum { bytes: part_bytes(part), checksum })
    };
    parts.iter().map(checksum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::hasher::Hasher;
    use crate::body::part_checksums::PartChecksums;

    const PARTS: [&[u8]; 2] = [b"hello ", b"world"];

    fn checksum(algorithm: Algorithm, bytes: &[u8]) -> Checksum {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Returns an object's parts, with checksums by these algorithms.
    fn parts(algorithms: &[Algorithm]) -> Vec<PartInfo> {
        let part = |(number, content): (u16, &&[u8])| {
            let mut attributes = Attributes::new();
            for algorithm in algorithms {
                checksum(*algorithm, content).set(&mut attributes);
            }
            PartInfo {
                number,
                bytes: content.len() as u64,
                modified: std::time::SystemTime::UNIX_EPOCH,
                etag: "d41d8cd98f00b204e9800998ecf8427e".parse().unwrap(),
                attributes,
            }
        };
        (1..).zip(&PARTS).map(part).collect()
    }

    fn upload(algorithm: Algorithm, kind: &str) -> Attributes {
        Attributes::from_iter([(ALGORITHM_ATTRIBUTE, algorithm.name()), (TYPE_ATTRIBUTE, kind)])
    }

    fn complete(
        attributes: &Attributes,
        parts: &[PartInfo],
        given: Option<&Checksum>,
    ) -> S3Result<Attributes> {
        let (upload, parts) = (UploadChecksum::new(attributes), Vec::from_iter(parts));
        object_attributes(attributes.clone(), &upload, &parts, given)
    }

    #[test]
    fn object_has_the_checksum_of_its_upload() {
        for algorithm in Algorithm::ALL {
            for kind in [COMPOSITE, FULL_OBJECT] {
                let is_full = kind == FULL_OBJECT;
                if is_full != (algorithm == Algorithm::Crc64Nvme) && !algorithm.combines() {
                    continue;
                }
                let parts = parts(&[algorithm]);
                let object = complete(&upload(algorithm, kind), &parts, None).unwrap();
                let found = Checksum::from_attributes(&object).unwrap();
                assert_eq!(found.algorithm, algorithm);
                assert_eq!(found.value.ends_with("-2"), !is_full, "{algorithm:?}");
                let stored = PartChecksums::from_attributes(&object).unwrap();
                assert_eq!(stored.get(1), Some(checksum(algorithm, PARTS[1])));
                for value in [found.value.clone(), found.bare_value().to_owned()] {
                    let given = Checksum { algorithm, value };
                    assert!(complete(&upload(algorithm, kind), &parts, Some(&given)).is_ok());
                }
                let wrong = checksum(algorithm, PARTS[0]);
                let error = complete(&upload(algorithm, kind), &parts, Some(&wrong)).unwrap_err();
                assert_eq!(error.code(), S3ErrorCode::BadDigest, "{algorithm:?}");
            }
        }
    }

    #[test]
    fn object_of_an_upload_without_an_algorithm_has_a_crc64nvme() {
        let none = Attributes::new();
        let parts = parts(&[Algorithm::Crc64Nvme, Algorithm::Sha1, Algorithm::Crc32]);
        let object = complete(&none, &parts, None).unwrap();
        let all = checksum(Algorithm::Crc64Nvme, &PARTS.concat());
        assert_eq!(Checksum::from_attributes(&object), Some(all.clone()));
        assert_eq!(object.get(TYPE_ATTRIBUTE), Some(FULL_OBJECT));
        assert!(PartChecksums::from_attributes(&object).is_none());
        let sha1 = stored_checksums(&Vec::from_iter(&parts), Algorithm::Sha1).unwrap();
        let composite = whole(COMPOSITE, &sha1).unwrap();
        for given in [all, composite, checksum(Algorithm::Crc32, &PARTS.concat())] {
            assert!(complete(&none, &parts, Some(&given)).is_ok(), "{given:?}");
        }
        for (algorithm, content) in [
            (Algorithm::Crc64Nvme, PARTS[0]),
            (Algorithm::Sha1, &PARTS.concat()),
            (Algorithm::Sha256, &PARTS.concat()),
        ] {
            let wrong = checksum(algorithm, content);
            let error = complete(&none, &parts, Some(&wrong)).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::BadDigest, "{algorithm:?}");
        }
    }

    #[test]
    fn listed_checksum_is_that_of_the_part() {
        let chosen = UploadChecksum::new(&upload(Algorithm::Crc32, COMPOSITE));
        let default = UploadChecksum::new(&Attributes::new());
        for (upload, stored, listed, content, code) in [
            (&chosen, Algorithm::Crc32, Algorithm::Crc32, 0, None),
            (&chosen, Algorithm::Crc32, Algorithm::Crc32, 1, Some("InvalidPart")),
            (&chosen, Algorithm::Crc32, Algorithm::Sha1, 0, Some("BadDigest")),
            (&default, Algorithm::Crc32, Algorithm::Crc32, 0, None),
            (&default, Algorithm::Crc32, Algorithm::Crc32, 1, Some("InvalidPart")),
            (&default, Algorithm::Crc32, Algorithm::Sha1, 0, Some("InvalidPart")),
        ] {
            let parts = parts(&[stored]);
            let found = upload.check_part(&parts[0], &checksum(listed, PARTS[content]));
            assert_eq!(
                found.err().map(|error| error.code().as_str()),
                code,
                "{upload:?} {listed:?}"
            );
        }
    }

    #[test]
    fn request_names_the_type_of_the_upload() {
        let chosen = UploadChecksum::new(&upload(Algorithm::Crc32, FULL_OBJECT));
        let default = UploadChecksum::new(&Attributes::new());
        for upload in [&chosen, &default] {
            assert!(
                upload.check_kind(None).is_ok() && upload.check_kind(Some(FULL_OBJECT)).is_ok()
            );
            let error = upload.check_kind(Some(COMPOSITE)).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRequest);
        }
    }
}
