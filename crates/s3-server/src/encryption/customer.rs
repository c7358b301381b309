//! The customer key in a request's headers (SSE-C). It is never stored.

use std::fmt;

use base64_simd::STANDARD as BASE64;
use md5::{Digest, Md5};

use crate::encryption::data_key::KEY_BYTES;
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::fields::Fields;

/// The only supported algorithm for server-side encryption.
pub(crate) const AES256: &str = "AES256";

/// The names of the headers with a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHeaders {
    pub(crate) algorithm: &'static str,
    key: &'static str,
    pub(crate) md5: &'static str,
}

/// The headers with the key for the request's object.
pub(crate) const OBJECT_KEY: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-server-side-encryption-customer-algorithm",
    key: "x-amz-server-side-encryption-customer-key",
    md5: "x-amz-server-side-encryption-customer-key-md5",
};

/// The headers with the key for a copy's source.
pub(crate) const SOURCE_KEY: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-copy-source-server-side-encryption-customer-algorithm",
    key: "x-amz-copy-source-server-side-encryption-customer-key",
    md5: "x-amz-copy-source-server-side-encryption-customer-key-md5",
};

#[derive(Clone)]
pub(crate) struct CustomerKey {
    pub(super) bytes: [u8; KEY_BYTES],
    /// The key's MD5 in Base64, which responses repeat.
    pub(crate) md5: String,
}

impl CustomerKey {
    /// Reads the key in these headers, if there is one.
    pub(crate) fn of(fields: &Fields, names: KeyHeaders) -> S3Result<Option<Self>> {
        let names = [names.algorithm, names.key, names.md5];
        // An empty header asks for encryption, too: without a key, nothing may be stored.
        if !names.iter().any(|name| fields.has(name)) {
            return Ok(None);
        }
        let [algorithm, key, md5] = names.map(|name| fields.given(name));
        let invalid = |why: &str| {
            let message = format!("A request with a key of the customer needs {why}");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        };
        match algorithm {
            None => return invalid("the encryption algorithm of the key, AES256"),
            Some(AES256) => {}
            Some(_) => {
                let message = "The only encryption algorithm is AES256";
                return Err(refuse(S3ErrorCode::InvalidEncryptionAlgorithmError, message));
            }
        }
        let Some(key) = key else { return invalid("the key") };
        let Some(md5) = md5 else { return invalid("the MD5 of the key") };
        let bytes = BASE64.decode_to_vec(key).ok();
        let bytes = bytes.and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
        let Some(bytes) = bytes else { return invalid("a key of 32 bytes in Base64") };
        if BASE64.encode_to_string(Md5::digest(bytes)) != md5 {
            return invalid("the MD5 of the key: the given one is another");
        }
        Ok(Some(Self { bytes, md5: md5.to_owned() }))
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomerKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=";
    const MD5: &str = "DWygnHRtgiJ77HCm+1rvHw==";

    const ALGORITHM: &str = OBJECT_KEY.algorithm;
    const KEY: &str = OBJECT_KEY.key;
    const KEY_MD5: &str = OBJECT_KEY.md5;

    fn of(pairs: &[(&str, &str)]) -> S3Result<Option<CustomerKey>> {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        CustomerKey::of(&fields, OBJECT_KEY)
    }

    #[test]
    fn key_is_read_from_its_three_headers() {
        let key = of(&[(ALGORITHM, AES256), (KEY, TEXT), (KEY_MD5, MD5)]).unwrap().unwrap();
        assert_eq!(key.md5, MD5);
        assert_eq!(BASE64.encode_to_string(key.bytes), TEXT);
        assert!(of(&[]).unwrap().is_none());
        assert!(!format!("{key:?}").contains("164"));
    }

    #[test]
    fn incomplete_and_wrong_headers_are_refused() {
        let short = BASE64.encode_to_string([1; 16]);
        for (fields, code) in [
            (&[(KEY, TEXT), (KEY_MD5, MD5)][..], "InvalidArgument"),
            (&[(ALGORITHM, AES256)], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY_MD5, MD5)], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY, TEXT)], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY, ""), (KEY_MD5, MD5)], "InvalidArgument"),
            (&[(ALGORITHM, ""), (KEY, ""), (KEY_MD5, "")], "InvalidArgument"),
            (&[(KEY, "")], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY, &short), (KEY_MD5, MD5)], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY, "?"), (KEY_MD5, MD5)], "InvalidArgument"),
            (&[(ALGORITHM, AES256), (KEY, TEXT), (KEY_MD5, "AAAA")], "InvalidArgument"),
            (
                &[(ALGORITHM, "AES192"), (KEY, TEXT), (KEY_MD5, MD5)],
                "InvalidEncryptionAlgorithmError",
            ),
        ] {
            assert_eq!(of(fields).unwrap_err().code().as_str(), code, "{fields:?}");
        }
    }
}
