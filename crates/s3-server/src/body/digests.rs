//! A client's claims about the body that it sends, except its length, and their verification.

use base64_simd::forgiving_decode_to_vec;
use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA256};

use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, Checksum, bad_digest, invalid_header, several_checksums_error,
};
use crate::body::hasher::Hasher;
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse, sha256_mismatch};
use crate::request::fields::{Fields, SDK_ALGORITHM};
use crate::request::trailer::Trailer;
use crate::service::request::Request;

/// The header that announces the checksum in the trailer.
const TRAILER: &str = "x-amz-trailer";

/// The trailer field with the trailer's signature, which is verified elsewhere.
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// The headers that name the checksum algorithm: one is sent by SDKs, the other by forms.
const ALGORITHMS: [&str; 2] = [SDK_ALGORITHM, ALGORITHM_ATTRIBUTE];

/// A client's claims about a body.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    md5: Option<[u8; 16]>,
    sha256: Option<[u8; 32]>,
    checksum: Option<Claim>,
    /// The algorithm of the checksum that `x-amz-trailer` announces. The trailer must have the
    /// checksum, unless a header has it.
    announced: Option<Algorithm>,
    trailer: Option<Trailer>,
    /// `true` if a CRC64NVME is computed in addition.
    with_crc64nvme: bool,
}

/// A body's checksum: its value, or the source of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    Given(Checksum),
    InTrailer(Algorithm),
    /// Not claimed, but computed and stored, because the request names the algorithm.
    Wanted(Algorithm),
    /// A CRC64NVME, because the client names no algorithm, as in S3.
    Default,
}

impl Claim {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Given(checksum) => checksum.algorithm,
            Self::InTrailer(algorithm) | Self::Wanted(algorithm) => *algorithm,
            Self::Default => Algorithm::Crc64Nvme,
        }
    }
}

impl Claims {
    /// Reads the claims about the content of an object or part. Its checksum is computed even
    /// without claims.
    ///
    /// # Errors
    /// If a claim is malformed, or if there are several checksums or an unknown one.
    pub(crate) fn for_object(request: &Request) -> S3Result<Self> {
        let claims = Self::for_document(request)?;
        let checksum = claims.checksum.or(Some(Claim::Default));
        Ok(Self { checksum, ..claims })
    }

    /// Reads the claims about a document.
    ///
    /// # Errors
    /// Fails like [`Self::for_object`].
    pub(crate) fn for_document(request: &Request) -> S3Result<Self> {
        let fields = &request.head.fields;
        let given = Checksum::in_fields(fields)?;
        Ok(Self { checksum: claim(fields, given)?, ..Self::md5_only(request)? })
    }

    /// Reads the claims about a document whose request headers have an object's checksum: only the
    /// trailer can have the document's own checksum.
    ///
    /// # Errors
    /// If a claim is malformed, or if the trailer would have an unknown checksum.
    pub(crate) fn md5_only(request: &Request) -> S3Result<Self> {
        let fields = &request.head.fields;
        let announced = announced(fields)?;
        Ok(Self {
            md5: fields.first("content-md5").map(md5).transpose()?,
            sha256: request.sha256,
            checksum: announced.map(Claim::InTrailer),
            announced,
            trailer: request.trailer.clone(),
            with_crc64nvme: false,
        })
    }

    /// Returns only the claim about the signed hash.
    pub(super) fn hash_only(request: &Request) -> Self {
        Self { sha256: request.sha256, ..Self::default() }
    }

    /// Requires the checksum with this algorithm to be computed even if the client claims none.
    ///
    /// # Errors
    /// `InvalidRequest` if the client claims a checksum with another algorithm.
    pub(crate) fn require(&mut self, algorithm: Algorithm) -> S3Result<()> {
        let claimed = match &self.checksum {
            None | Some(Claim::Default) => {
                self.checksum = Some(Claim::Wanted(algorithm));
                return Ok(());
            }
            Some(claim) => claim.algorithm(),
        };
        if claimed == algorithm {
            return Ok(());
        }
        let message = format!(
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
            algorithm.name(),
            claimed.name()
        );
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    }

    /// Requires a CRC64NVME to be computed in addition to the client's checksum, unless the latter
    /// is a CRC64NVME itself.
    pub(crate) fn require_crc64nvme(&mut self) {
        let is_claimed = |claim: &Claim| claim.algorithm() == Algorithm::Crc64Nvme;
        self.with_crc64nvme = !self.checksum.as_ref().is_some_and(is_claimed);
    }

    /// Returns `true` if the client claims a checksum, or names its algorithm.
    pub(crate) fn has_checksum(&self) -> bool {
        !matches!(self.checksum, None | Some(Claim::Default))
    }

    /// Starts the hashes that verify the claims. Computes the MD5 only with `with_md5`, because the
    /// store may already compute it.
    pub(crate) fn digests(&self, with_md5: bool) -> Digests {
        let algorithm = self.checksum.as_ref().map(Claim::algorithm);
        Digests {
            md5: (with_md5 && self.md5.is_some()).then(Md5::new),
            sha256: self.sha256.map(|_| Context::new(&SHA256)),
            checksum: algorithm.map(Hasher::new),
            crc64nvme: self.with_crc64nvme.then(|| Hasher::new(Algorithm::Crc64Nvme)),
        }
    }

    /// Compares the claims with the body, after its last byte, and returns the body's checksum.
    /// `md5` is the body's MD5, if `digests` does not compute it.
    ///
    /// # Errors
    /// If a claim does not match, or if the trailer is not the announced one.
    pub(crate) fn verify(
        &self,
        digests: Digests,
        md5: Option<[u8; 16]>,
    ) -> S3Result<Option<Checksum>> {
        let sha256 = digests.sha256.map(Context::finish);
        if let Some(claimed) = &self.sha256
            && sha256.as_ref().map(AsRef::as_ref) != Some(&claimed[..])
        {
            return Err(sha256_mismatch());
        }
        let md5 = md5.or_else(|| digests.md5.map(|md5| md5.finalize().into()));
        if self.md5.is_some() && self.md5 != md5 {
            let message = "The Content-MD5 you specified did not match what we received.";
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        let trailing = self.trailing()?;
        let (Some(claim), Some(hasher)) = (&self.checksum, digests.checksum) else {
            return Ok(None);
        };
        let computed = hasher.finish();
        let claimed = match claim {
            Claim::Given(checksum) => Some(checksum),
            Claim::InTrailer(_) => trailing.as_ref(),
            Claim::Wanted(_) | Claim::Default => None,
        };
        if claimed.is_some_and(|claimed| *claimed != computed) {
            return Err(bad_digest(computed.algorithm));
        }
        Ok(Some(computed))
    }

    /// Returns the checksum in the trailer. Fails if the trailer lacks an announced checksum, or
    /// has any other field.
    fn trailing(&self) -> S3Result<Option<Checksum>> {
        let fields = self.trailer.as_ref().and_then(Trailer::fields);
        let mut names = fields.into_iter().flat_map(Fields::iter).map(|(name, _)| name);
        let expected = self.announced.map(Algorithm::header);
        if names.any(|name| name != TRAILER_SIGNATURE && Some(name) != expected) {
            return Err(malformed_trailer("it has a field that x-amz-trailer does not announce"));
        }
        let Some(algorithm) = self.announced else { return Ok(None) };
        let found = fields.map(|fields| Checksum::in_trailer(fields, algorithm)).transpose()?;
        match (found.flatten(), &self.checksum) {
            // Some clients announce a checksum that is already in a header, and send no trailer.
            (None, Some(Claim::Given(_))) => Ok(None),
            (Some(_), Some(Claim::Given(_))) => Err(several_checksums_error()),
            (None, _) => {
                Err(malformed_trailer("it lacks the checksum that x-amz-trailer announces"))
            }
            (found, _) => Ok(found),
        }
    }
}

/// The hashes of a body's bytes so far.
pub(crate) struct Digests {
    md5: Option<Md5>,
    sha256: Option<Context>,
    checksum: Option<Hasher>,
    crc64nvme: Option<Hasher>,
}

impl Digests {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        for hasher in self.checksum.iter_mut().chain(&mut self.crc64nvme) {
            hasher.update(bytes);
        }
    }

    /// Returns the CRC64NVME computed in addition to the client's checksum, after the last byte.
    pub(crate) fn take_crc64nvme(&mut self) -> Option<Checksum> {
        self.crc64nvme.take().map(Hasher::finish)
    }
}

fn md5(value: &[u8]) -> S3Result<[u8; 16]> {
    // As in S3, the unused bits at the end may have any value.
    let decoded = forgiving_decode_to_vec(value.trim_ascii()).ok();
    decoded.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        refuse(S3ErrorCode::InvalidDigest, "The Content-MD5 you specified is not valid.")
    })
}

fn malformed_trailer(why: &str) -> S3Error {
    let message = format!(
        "The request contained trailing data that was not well-formed or did not conform to our \
         published schema: {why}"
    );
    refuse(S3ErrorCode::MalformedTrailerError, message)
}

/// Returns the checksum algorithm that `x-amz-trailer` announces.
fn announced(fields: &Fields) -> S3Result<Option<Algorithm>> {
    let Some(name) = fields.joined(TRAILER) else { return Ok(None) };
    let name = name.trim();
    let algorithm = Algorithm::from_header(name);
    if algorithm.is_none() && !name.is_empty() {
        let message = "The value specified in the x-amz-trailer header is not supported";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    Ok(algorithm)
}

/// Returns the claim in a request's headers. `given` is the checksum in them.
fn claim(fields: &Fields, given: Option<Checksum>) -> S3Result<Option<Claim>> {
    let claim = match (given, announced(fields)?) {
        (Some(given), Some(announced)) if given.algorithm != announced => {
            return Err(several_checksums_error());
        }
        (Some(given), _) => Some(Claim::Given(given)),
        (None, announced) => announced.map(Claim::InTrailer),
    };
    let mut wanted = None;
    for name in ALGORITHMS {
        let Some(text) = fields.given(name) else { continue };
        let algorithm = Algorithm::parse(text.trim())?;
        let expected = claim.as_ref().map(Claim::algorithm).or(wanted);
        if expected.is_some_and(|expected| expected != algorithm) {
            return Err(invalid_header(name));
        }
        wanted = Some(algorithm);
    }
    if claim.is_none() && fields.given(SDK_ALGORITHM).is_some() {
        let message = "x-amz-sdk-checksum-algorithm specified, but no corresponding \
                       x-amz-checksum-* or x-amz-trailer headers were found.";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    Ok(claim.or(wanted.map(Claim::Wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC: (&str, &str) = ("x-amz-checksum-crc32", "y/Q5Jg==");
    const SHA: (&str, &str) = ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=");
    const SDK: &str = SDK_ALGORITHM;

    fn claim_in(pairs: &[(&str, &str)]) -> S3Result<Option<Claim>> {
        let fields = pairs.iter().copied().collect();
        claim(&fields, Checksum::in_fields(&fields)?)
    }

    /// Returns the claims in these headers about a body with this trailer.
    fn claims(pairs: &[(&str, &str)], trailer: Option<&[(&str, &str)]>) -> Claims {
        let fields: Fields = pairs.iter().copied().collect();
        let trailer = trailer.map(|pairs| {
            let trailer = Trailer::default();
            assert!(!trailer.is_set());
            trailer.set(pairs.iter().copied().collect());
            assert!(trailer.is_set());
            trailer
        });
        let (checksum, announced) = (claim_in(pairs).unwrap(), announced(&fields).unwrap());
        Claims { checksum, announced, trailer, ..Claims::default() }
    }

    fn verify(claims: &Claims, bytes: &[u8]) -> Result<Option<Checksum>, &'static str> {
        let mut digests = claims.digests(true);
        digests.update(&bytes[..4]);
        digests.update(&bytes[4..]);
        claims.verify(digests, None).map_err(|error| error.code().as_str())
    }

    #[test]
    fn checksum_in_a_header_prevails_over_the_same_one_in_the_trailer() {
        let given = Claim::Given(Checksum { algorithm: Algorithm::Crc32, value: CRC.1.to_owned() });
        let in_trailer = Claim::InTrailer(Algorithm::Crc32);
        for (fields, expected) in [
            (&[][..], None),
            (&[CRC], Some(given.clone())),
            (&[CRC, (SDK, "crc32")], Some(given.clone())),
            (&[CRC, (TRAILER, "X-Amz-Checksum-Crc32")], Some(given.clone())),
            (&[CRC, (TRAILER, CRC.0), (SDK, "CRC32")], Some(given)),
            (&[(TRAILER, CRC.0)], Some(in_trailer.clone())),
            (&[(TRAILER, CRC.0), (SDK, "Crc32")], Some(in_trailer)),
            (&[(TRAILER, "")], None),
            (&[(ALGORITHM_ATTRIBUTE, "md5")], Some(Claim::Wanted(Algorithm::Md5))),
            (&[(SDK, "")], None),
        ] {
            assert_eq!(claim_in(fields).unwrap(), expected, "{fields:?}");
        }
    }

    #[test]
    fn second_and_unknown_checksums_are_refused() {
        for fields in [
            &[CRC, SHA][..],
            &[CRC, (TRAILER, SHA.0)],
            &[CRC, (SDK, "SHA1")],
            &[(TRAILER, CRC.0), (SDK, "SHA1")],
            &[(SDK, "SHA1"), (ALGORITHM_ATTRIBUTE, "CRC32")],
            &[CRC, (SDK, "CRC")],
            &[(SDK, "CRC")],
            &[(SDK, "SHA256")],
            &[(ALGORITHM_ATTRIBUTE, "CRC")],
            &[(TRAILER, "x-amz-checksum-foo")],
            &[(TRAILER, "x-amz-checksum-crc32,x-amz-checksum-sha1")],
            &[(TRAILER, CRC.0), (TRAILER, SHA.0)],
            &[(TRAILER, "x-foo")],
            &[("x-amz-checksum-foo", "AAAA")],
        ] {
            assert_eq!(
                claim_in(fields).unwrap_err().code(),
                S3ErrorCode::InvalidRequest,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn body_that_does_not_match_its_claims_is_refused() {
        let md5 = Some(Md5::digest(b"123456789").into());
        let sha256 = ring::digest::digest(&SHA256, b"123456789").as_ref().try_into().ok();
        for (claims, code) in [
            (Claims { md5, ..Claims::default() }, "BadDigest"),
            (Claims { sha256, ..Claims::default() }, "XAmzContentSHA256Mismatch"),
            (claims(&[CRC], None), "BadDigest"),
            (claims(&[SHA, (TRAILER, SHA.0)], Some(&[])), "BadDigest"),
            (claims(&[(TRAILER, CRC.0)], Some(&[CRC])), "BadDigest"),
        ] {
            let kept = verify(&claims, b"123456789").unwrap();
            assert_eq!(kept.is_some(), claims.checksum.is_some());
            assert_eq!(verify(&claims, b"123456780").unwrap_err(), code);
        }
    }

    #[test]
    fn malformed_md5_is_refused() {
        // The unused bits may have any value, and the padding may be missing.
        for value in
            ["XUFAKrxLKna5cZ2REBfFkg==", "XUFAKrxLKna5cZ2REBfFks==", "XUFAKrxLKna5cZ2REBfFkg"]
        {
            assert!(md5(value.as_bytes()).is_ok(), "{value}");
        }
        for value in ["", "AAAA", "!", "XUFAKrxLKna5cZ2REBfFkg=", "XUFAKrxLKna5cZ2REBfFkgAA"] {
            let error = md5(value.as_bytes()).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidDigest, "{value}");
        }
    }

    #[test]
    fn trailer_has_what_is_announced() {
        let signature = (TRAILER_SIGNATURE, "ab");
        for (fields, trailer, expected) in [
            (&[(TRAILER, CRC.0)][..], Some(&[CRC][..]), Ok(true)),
            (&[(TRAILER, CRC.0)], Some(&[CRC, signature]), Ok(true)),
            (&[(TRAILER, CRC.0)], Some(&[]), Err("MalformedTrailerError")),
            (&[(TRAILER, CRC.0)], None, Err("MalformedTrailerError")),
            (&[(TRAILER, CRC.0)], Some(&[SHA]), Err("MalformedTrailerError")),
            (&[(TRAILER, CRC.0)], Some(&[CRC, SHA]), Err("MalformedTrailerError")),
            (&[(TRAILER, CRC.0)], Some(&[CRC, ("x-foo", "a")]), Err("MalformedTrailerError")),
            (&[(TRAILER, CRC.0)], Some(&[(CRC.0, "AAAA")]), Err("InvalidRequest")),
            (&[], Some(&[CRC]), Err("MalformedTrailerError")),
            (&[], Some(&[]), Ok(false)),
            (&[CRC], Some(&[SHA]), Err("MalformedTrailerError")),
            (&[CRC, (TRAILER, CRC.0)], Some(&[]), Ok(true)),
            (&[CRC, (TRAILER, CRC.0)], Some(&[CRC]), Err("InvalidRequest")),
        ] {
            let found = verify(&claims(fields, trailer), b"123456789");
            assert_eq!(found.map(|found| found.is_some()), expected, "{fields:?} {trailer:?}");
        }
    }

    #[test]
    fn wanted_checksum_is_computed_unless_another_one_is_claimed() {
        let default = || Claims { checksum: Some(Claim::Default), ..Claims::default() };
        let found = verify(&default(), b"123456789").unwrap().unwrap();
        assert_eq!((found.algorithm, &*found.value), (Algorithm::Crc64Nvme, "rosUhgp5mIg="));
        for mut claims in [Claims::default(), default(), claims(&[CRC], None)] {
            let had_checksum = claims.has_checksum();
            assert_eq!(claims.require(Algorithm::Sha1).is_err(), had_checksum);
            claims.require(Algorithm::Crc32).unwrap_or_default();
            let expected = if had_checksum { CRC.1 } else { SHA.1 };
            assert_eq!(verify(&claims, b"123456789").unwrap().unwrap().value, expected);
        }
        let mut both = claims(&[CRC], None);
        both.require_crc64nvme();
        let mut digests = both.digests(false);
        digests.update(b"123456789");
        assert_eq!(digests.take_crc64nvme().unwrap().value, "rosUhgp5mIg=");
        assert_eq!(both.verify(digests, None).unwrap().unwrap().value, CRC.1);
    }
}
