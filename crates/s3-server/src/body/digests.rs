//! The claims of a client about the body that it sends (length aside), and their verification.

use std::sync::{Arc, OnceLock};

use base64_simd::STANDARD as BASE64;
use hyper::header::HeaderMap;
use s3s::crypto::{Checksum as _, Md5, Sha256};
use s3s::{S3ErrorCode, S3Request, S3Result, TrailingHeaders};

use crate::body::checksum::{Algorithm, Checksum, Hasher};
use crate::errors::{refuse, sha256_mismatch};

/// The headers that follow the last chunk of a body. Empty until that chunk is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailer(pub(crate) Arc<OnceLock<HeaderMap>>);

/// The parts of a removed signature that concern the body. The front leaves them on a request that
/// has no credentials to verify.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unverified {
    pub(crate) trailer: Option<Trailer>,
    pub(crate) content_sha256: Option<[u8; 32]>,
}

/// The claims of a client about a body.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    md5: Option<[u8; 16]>,
    sha256: Option<[u8; 32]>,
    checksum: Option<Claim>,
    trailer: Option<Trailer>,
    verified_trailer: Option<TrailingHeaders>,
}

/// The checksum of a body: its value, or the source of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    Given(Checksum),
    InTrailer(Algorithm),
    /// Not claimed, but computed and stored.
    Wanted(Algorithm),
}

impl Claims {
    /// Reads the headers of a request.
    pub(crate) fn of<T>(request: &S3Request<T>) -> S3Result<Self> {
        let unverified = request.extensions.get::<Unverified>().cloned().unwrap_or_default();
        let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let claims = Self::of_fields(text, unverified.content_sha256)?;
        let verified_trailer = request.trailing_headers.clone();
        Ok(Self { trailer: unverified.trailer, verified_trailer, ..claims })
    }

    /// Reads the fields of a request, whose values `text` returns by their names.
    pub(crate) fn of_fields<'a>(
        text: impl Fn(&str) -> Option<&'a str>,
        sha256: Option<[u8; 32]>,
    ) -> S3Result<Self> {
        let md5 = text("content-md5").map(md5).transpose()?;
        Ok(Self { md5, sha256, checksum: claim(text)?, ..Self::default() })
    }

    /// Returns `true` if nothing is claimed.
    pub(crate) fn is_empty(&self) -> bool {
        self.md5.is_none() && self.sha256.is_none() && self.checksum.is_none()
    }

    /// Sets the place of the trailer.
    pub(crate) fn with_trailer(self, trailer: Trailer) -> Self {
        Self { trailer: Some(trailer), ..self }
    }

    /// Computes the checksum also if the client does not claim one.
    pub(crate) fn want(&mut self, algorithm: Algorithm) -> S3Result<()> {
        let given = match &self.checksum {
            None => {
                self.checksum = Some(Claim::Wanted(algorithm));
                return Ok(());
            }
            Some(Claim::Given(checksum)) => checksum.algorithm,
            Some(Claim::InTrailer(given) | Claim::Wanted(given)) => *given,
        };
        if given == algorithm {
            return Ok(());
        }
        let message = format!(
            "The upload was started with checksums of type {}, and this part has {}",
            algorithm.name(),
            given.name()
        );
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    }

    /// Starts the hashes that verify the claims. MD5 only with `with_md5`, because the store
    /// computes it, too.
    pub(crate) fn digests(&self, with_md5: bool) -> Digests {
        let checksum = self.checksum.as_ref().map(|claim| match claim {
            Claim::Given(checksum) => checksum.algorithm,
            Claim::InTrailer(algorithm) | Claim::Wanted(algorithm) => *algorithm,
        });
        Digests {
            md5: (with_md5 && self.md5.is_some()).then(Md5::new),
            sha256: self.sha256.map(|_| Sha256::new()),
            checksum: checksum.map(Algorithm::hasher),
        }
    }

    /// Compares the claims with the body, after its last byte, and returns its checksum. `md5` is
    /// the hash of the body if the digests do not compute it.
    pub(crate) fn verify(
        &self,
        digests: Digests,
        md5: Option<[u8; 16]>,
    ) -> S3Result<Option<Checksum>> {
        if self.sha256.is_some() && self.sha256 != digests.sha256.map(Sha256::finalize) {
            return Err(sha256_mismatch());
        }
        let md5 = md5.or_else(|| digests.md5.map(Md5::finalize));
        if self.md5.is_some() && self.md5 != md5 {
            let message = "The Content-MD5 does not match the received body";
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        let (Some(claim), Some(hasher)) = (&self.checksum, digests.checksum) else {
            return Ok(None);
        };
        let computed = hasher.finish();
        let given = match claim {
            Claim::Given(checksum) => Some(checksum.value.clone()),
            Claim::InTrailer(algorithm) => Some(self.trailing(algorithm.header())?),
            Claim::Wanted(_) => None,
        };
        if given.is_some_and(|given| given != computed.value) {
            let name = computed.algorithm.name();
            let message = format!("The {name} does not match the received body");
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        Ok(Some(computed))
    }

    fn trailing(&self, name: &str) -> S3Result<String> {
        let value = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let decoded = self.trailer.as_ref().and_then(|trailer| trailer.0.get()).and_then(value);
        let verified = || self.verified_trailer.as_ref()?.read(value).flatten();
        decoded.or_else(verified).ok_or_else(|| {
            let message = format!("The trailer announced in x-amz-trailer is missing: {name}");
            refuse(S3ErrorCode::InvalidRequest, message)
        })
    }
}

/// Hashes of the bytes of a body so far.
pub(crate) struct Digests {
    md5: Option<Md5>,
    sha256: Option<Sha256>,
    checksum: Option<Hasher>,
}

impl Digests {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.update(bytes);
        }
    }
}

fn md5(text: &str) -> S3Result<[u8; 16]> {
    let decoded = BASE64.decode_to_vec(text.as_bytes()).ok();
    decoded
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| refuse(S3ErrorCode::InvalidDigest, "The Content-MD5 is not a Base64 MD5"))
}

/// Returns the checksum that a request announces.
fn claim<'a>(text: impl Fn(&str) -> Option<&'a str>) -> S3Result<Option<Claim>> {
    let invalid = |message: &str| Err(refuse(S3ErrorCode::InvalidRequest, message));
    let mut given = Algorithm::ALL.into_iter().filter_map(|algorithm| {
        let value = text(algorithm.header())?.to_owned();
        Some(Checksum { algorithm, value })
    });
    let claim = match (given.next(), text("x-amz-trailer").and_then(Algorithm::from_header)) {
        (Some(_), Some(_)) => return invalid("Give a checksum as a header or as a trailer, once"),
        (Some(_), None) if given.next().is_some() => return invalid("Give one checksum only"),
        (Some(checksum), None) => Claim::Given(checksum),
        (None, Some(algorithm)) => Claim::InTrailer(algorithm),
        (None, None) => match text("x-amz-sdk-checksum-algorithm").and_then(Algorithm::from_name) {
            Some(algorithm) => Claim::Wanted(algorithm),
            None => return Ok(None),
        },
    };
    Ok(Some(claim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn claim_of(pairs: &[(&'static str, &'static str)]) -> S3Result<Option<Claim>> {
        claim(|name| pairs.iter().find(|(found, _)| *found == name).map(|(_, value)| *value))
    }

    #[test]
    fn second_checksum_is_refused() {
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let sha = ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=");
        let trailer = ("x-amz-trailer", "x-amz-checksum-crc32c");
        let sdk = ("x-amz-sdk-checksum-algorithm", "SHA256");
        assert!(matches!(claim_of(&[crc, sdk]), Ok(Some(Claim::Given(_)))));
        let in_trailer = Some(Claim::InTrailer(Algorithm::Crc32c));
        assert_eq!(claim_of(&[trailer]).unwrap(), in_trailer);
        assert_eq!(claim_of(&[sdk]).unwrap(), Some(Claim::Wanted(Algorithm::Sha256)));
        assert_eq!(claim_of(&[]).unwrap(), None);
        assert!(claim_of(&[crc, sha]).is_err());
        assert!(claim_of(&[crc, trailer]).is_err());
    }

    #[test]
    fn body_that_does_not_match_its_claims_is_refused() {
        let md5 = Some(Md5::checksum(b"123456789"));
        let sha256 = Some(Sha256::checksum(b"123456789"));
        let value = "y/Q5Jg==".to_owned();
        let crc = Checksum { algorithm: Algorithm::Crc32, value };
        let checksum = || Some(Claim::Given(crc.clone()));
        for (claims, code) in [
            (Claims { md5, ..Claims::default() }, "BadDigest"),
            (Claims { sha256, ..Claims::default() }, "XAmzContentSHA256Mismatch"),
            (Claims { checksum: checksum(), ..Claims::default() }, "BadDigest"),
        ] {
            let digest = |bytes: &[u8]| {
                let mut digests = claims.digests(true);
                digests.update(&bytes[..4]);
                digests.update(&bytes[4..]);
                claims.verify(digests, None)
            };
            let kept = digest(b"123456789").unwrap();
            assert_eq!(kept.is_some(), claims.checksum.is_some());
            assert_eq!(digest(b"123456780").unwrap_err().code().as_str(), code);
        }
    }

    #[test]
    fn missing_trailer_is_refused() {
        let trailer = Trailer::default();
        let claims = Claims {
            checksum: Some(Claim::InTrailer(Algorithm::Crc32)),
            trailer: Some(trailer.clone()),
            ..Claims::default()
        };
        let mut digests = claims.digests(false);
        digests.update(b"123456789");
        let error = claims.verify(digests, None).unwrap_err();
        assert_eq!(error.code().as_str(), "InvalidRequest");

        trailer.0.set(headers(&[("x-amz-checksum-crc32", "y/Q5Jg==")])).unwrap();
        let mut digests = claims.digests(false);
        digests.update(b"123456789");
        assert_eq!(claims.verify(digests, None).unwrap().unwrap().value, "y/Q5Jg==");
    }
}
