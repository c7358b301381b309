//! What a client says of the bytes it sends, and the proof that they are those.

use std::sync::{Arc, OnceLock};

use base64_simd::STANDARD as BASE64;
use hyper::header::HeaderMap;
use s3s::crypto::{Checksum as _, Md5, Sha256};
use s3s::{S3ErrorCode, S3Request, S3Result, TrailingHeaders};

use crate::body::checksum::{Algorithm, Checksum, Hasher};
use crate::errors::{refuse, sha256_mismatch};

/// The headers that follow the last chunk of a body. Empty until that chunk was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailer(pub(crate) Arc<OnceLock<HeaderMap>>);

/// Left on a request by the front when it took the signature away, and so the verification of the
/// body that comes with one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unverified {
    pub(crate) trailer: Option<Trailer>,
    pub(crate) content_sha256: Option<[u8; 32]>,
}

/// What is said of a body.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    md5: Option<[u8; 16]>,
    sha256: Option<[u8; 32]>,
    checksum: Option<Claim>,
    trailer: Option<Trailer>,
    verified_trailer: Option<TrailingHeaders>,
}

/// The checksum of a body: its value, or where the value is to come from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    Given(Checksum),
    InTrailer(Algorithm),
    /// Not said, but to be computed and kept.
    Wanted(Algorithm),
}

impl Claims {
    /// Reads the headers of a request.
    pub(crate) fn of<T>(request: &S3Request<T>) -> S3Result<Self> {
        let unverified = request.extensions.get::<Unverified>().cloned().unwrap_or_default();
        Ok(Self {
            md5: content_md5(&request.headers)?,
            sha256: unverified.content_sha256,
            checksum: claim(&request.headers)?,
            trailer: unverified.trailer,
            verified_trailer: request.trailing_headers.clone(),
        })
    }

    /// Has the checksum computed even if the client does not say one.
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

    /// Starts to compute what is needed to verify the claims. The MD5 only on request: the store
    /// computes it as well.
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

    /// Compares what was said with what came. To be called after the last byte. `md5` is the
    /// hash of the bytes, where the digests do not hold it.
    pub(crate) fn verify(
        &self,
        digests: Digests,
        md5: Option<[u8; 16]>,
    ) -> S3Result<Option<Checksum>> {
        let md5 = md5.or_else(|| digests.md5.map(Md5::finalize));
        if self.md5.is_some() && self.md5 != md5 {
            let message = "The Content-MD5 you specified is not that of what was received";
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        if self.sha256.is_some() && self.sha256 != digests.sha256.map(Sha256::finalize) {
            return Err(sha256_mismatch());
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
            let message = format!("The {name} you specified is not that of what was received");
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
        Ok(Some(computed))
    }

    fn trailing(&self, name: &str) -> S3Result<String> {
        let value = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let ours = self.trailer.as_ref().and_then(|trailer| trailer.0.get()).and_then(value);
        let theirs = || self.verified_trailer.as_ref()?.read(value).flatten();
        ours.or_else(theirs).ok_or_else(|| {
            let message = format!("The trailer announced in x-amz-trailer did not come: {name}");
            refuse(S3ErrorCode::InvalidRequest, message)
        })
    }
}

/// Hashes being computed.
pub(crate) struct Digests {
    md5: Option<Md5>,
    sha256: Option<Sha256>,
    checksum: Option<Hasher>,
}

impl Digests {
    /// Takes more bytes.
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

fn content_md5(headers: &HeaderMap) -> S3Result<Option<[u8; 16]>> {
    let Some(value) = headers.get("content-md5") else { return Ok(None) };
    let decoded = BASE64.decode_to_vec(value.as_bytes()).ok();
    match decoded.and_then(|bytes| bytes.try_into().ok()) {
        Some(md5) => Ok(Some(md5)),
        None => Err(refuse(S3ErrorCode::InvalidDigest, "The Content-MD5 is not a Base64 MD5")),
    }
}

/// The checksum a request announces.
fn claim(headers: &HeaderMap) -> S3Result<Option<Claim>> {
    let invalid = |message: &str| Err(refuse(S3ErrorCode::InvalidRequest, message));
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
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

    #[test]
    fn a_checksum_is_announced_once() {
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let sha = ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=");
        let trailer = ("x-amz-trailer", "x-amz-checksum-crc32c");
        let sdk = ("x-amz-sdk-checksum-algorithm", "SHA256");
        assert!(matches!(claim(&headers(&[crc, sdk])), Ok(Some(Claim::Given(_)))));
        let in_trailer = Some(Claim::InTrailer(Algorithm::Crc32c));
        assert_eq!(claim(&headers(&[trailer])).unwrap(), in_trailer);
        assert_eq!(claim(&headers(&[sdk])).unwrap(), Some(Claim::Wanted(Algorithm::Sha256)));
        assert_eq!(claim(&headers(&[])).unwrap(), None);
        assert!(claim(&headers(&[crc, sha])).is_err());
        assert!(claim(&headers(&[crc, trailer])).is_err());
    }

    #[test]
    fn bytes_that_are_not_those_announced_are_refused() {
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
    fn an_announced_trailer_must_come() {
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
