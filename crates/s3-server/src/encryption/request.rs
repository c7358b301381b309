//! The headers of requests for encryption, and those of the responses.

use hyper::header::HeaderMap;
use s3s::{S3ErrorCode, S3Result};

use crate::encryption::customer::{AES256, ALGORITHM, CustomerKey, KEY_MD5, PREFIX};
use crate::encryption::master::Master;
use crate::errors::refuse;
use crate::output::Output;

/// The header of the encryption with a key of the operator.
pub(crate) const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// The beginning of the names of headers of the key management service, which does not exist.
const KMS: [&str; 3] = [
    "x-amz-server-side-encryption-aws-kms-",
    "x-amz-server-side-encryption-context",
    "x-amz-server-side-encryption-bucket-key-enabled",
];

/// The encryption that a request to store an object wants.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The one of the bucket.
    Default,
    Customer(CustomerKey),
    Operator,
}

impl Wanted {
    /// Reads the headers of a request.
    pub(crate) fn of(headers: &HeaderMap) -> S3Result<Self> {
        let algorithm = headers.get(ENCRYPTION).map(|value| value.to_str().unwrap_or_default());
        let customer = CustomerKey::of(headers, PREFIX)?;
        if algorithm.is_some() && customer.is_some() {
            let message = "An object has a key of the customer, or one of the server";
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        check_kms(headers, algorithm)?;
        match (algorithm, customer) {
            (None, None) => Ok(Self::Default),
            (None, Some(key)) => Ok(Self::Customer(key)),
            (Some(AES256), _) => Ok(Self::Operator),
            (Some(_), _) => {
                let message = format!("{ENCRYPTION} must be {AES256}");
                Err(refuse(S3ErrorCode::InvalidArgument, message))
            }
        }
    }
}

/// Refuses keys of a key management service.
fn check_kms(headers: &HeaderMap, algorithm: Option<&str>) -> S3Result<()> {
    if algorithm.is_some_and(|name| name.starts_with("aws:kms")) {
        let message = "There is no key management service: use AES256, or a key of the customer";
        return Err(refuse(S3ErrorCode::NotImplemented, message));
    }
    let is_kms = |name: &str| KMS.iter().any(|prefix| name.starts_with(prefix));
    if let Some(name) = headers.keys().find(|name| is_kms(name.as_str())) {
        let message =
            format!("{name} is only for the key management service, which does not exist");
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    Ok(())
}

/// Reads the key in a request for an object, part or upload that exists.
pub(crate) fn customer_key(headers: &HeaderMap) -> S3Result<Option<CustomerKey>> {
    CustomerKey::of(headers, PREFIX)
}

/// Like [`customer_key`], for a request to read an object, which cannot choose an encryption.
pub(crate) fn key_of_read(headers: &HeaderMap) -> S3Result<Option<CustomerKey>> {
    if headers.contains_key(ENCRYPTION) {
        let message = format!("A request to read an object cannot have the header {ENCRYPTION}");
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    customer_key(headers)
}

/// Adds the headers of a response that describe the encryption of an object with this key.
pub(crate) fn described<T>(output: impl Into<Output<T>>, master: Option<&Master>) -> Output<T> {
    let mut output = output.into();
    match master {
        None => {}
        Some(Master::Operator(_)) => output.add(ENCRYPTION, AES256),
        Some(Master::Customer(key)) => {
            output.add(&format!("{PREFIX}{ALGORITHM}"), AES256);
            output.add(&format!("{PREFIX}{KEY_MD5}"), &key.md5);
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(fields: &[(&'static str, &'static str)]) -> S3Result<Wanted> {
        let fields = fields.iter();
        let headers = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Wanted::of(&headers.collect())
    }

    #[test]
    fn request_wants_one_kind_of_encryption() {
        assert!(matches!(wanted(&[]), Ok(Wanted::Default)));
        assert!(matches!(wanted(&[(ENCRYPTION, "AES256")]), Ok(Wanted::Operator)));
        let customer = [
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            (
                "x-amz-server-side-encryption-customer-key",
                "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=",
            ),
            ("x-amz-server-side-encryption-customer-key-md5", "DWygnHRtgiJ77HCm+1rvHw=="),
        ];
        assert!(matches!(wanted(&customer), Ok(Wanted::Customer(_))));
        let both = [&customer[..], &[(ENCRYPTION, "AES256")]].concat();
        let with_kms = [&customer[..], &[(ENCRYPTION, "aws:kms")]].concat();
        let kms_key = ("x-amz-server-side-encryption-aws-kms-key-id", "x");
        for (fields, code) in [
            (&both[..], "InvalidArgument"),
            (&with_kms[..], "InvalidArgument"),
            (&[(ENCRYPTION, "AES192")], "InvalidArgument"),
            (&[(ENCRYPTION, "aws:kms")], "NotImplemented"),
            (&[(ENCRYPTION, "aws:kms:dsse"), kms_key], "NotImplemented"),
            (&[kms_key], "InvalidArgument"),
        ] {
            assert_eq!(wanted(fields).unwrap_err().code().as_str(), code, "{fields:?}");
        }
    }
}
