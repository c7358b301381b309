//! The encryption headers in requests and responses.

use crate::encryption::customer::{AES256, CustomerKey, OBJECT_KEY};
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::request::fields::Fields;

/// The header that requests encryption with an operator key.
pub(crate) const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// The value of [`ENCRYPTION`] for an operator key named in the request.
pub(crate) const KMS: &str = "aws:kms";

/// The header with this key's name.
pub(crate) const KEY_NAME: &str = "x-amz-server-side-encryption-aws-kms-key-id";

const CONTEXT: &str = "x-amz-server-side-encryption-context";

/// The headers that only requests with [`KMS`] may have. The last one lets AWS call its key service
/// less often, and has no effect on this server.
const OF_KMS: [&str; 3] = [KEY_NAME, CONTEXT, "x-amz-server-side-encryption-bucket-key-enabled"];

/// The encryption requested for a stored object.
#[derive(Debug)]
pub(crate) enum RequestedEncryption {
    /// The bucket's default.
    Default,
    Customer(CustomerKey),
    Operator,
    /// An operator key, by its name.
    Named(String),
}

impl RequestedEncryption {
    /// Reads the encryption in a request's headers.
    pub(crate) fn of(fields: &Fields) -> S3Result<Self> {
        let algorithm = fields.text(ENCRYPTION);
        let customer = CustomerKey::of(fields, OBJECT_KEY)?;
        if algorithm.is_some() && customer.is_some() {
            let message = "An object has a key of the customer, or one of the server";
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        if !algorithm.is_some_and(|name| name.starts_with(KMS))
            && let Some(name) = OF_KMS.into_iter().find(|name| fields.has(name))
        {
            let message = format!("{name} needs {ENCRYPTION}: {KMS}");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        match (algorithm, customer) {
            (None, None) => Ok(Self::Default),
            (None, Some(key)) => Ok(Self::Customer(key)),
            (Some(AES256), _) => Ok(Self::Operator),
            (Some(KMS), _) => Self::named(fields),
            (Some(other), _) => Err(unsupported(other)),
        }
    }

    fn named(fields: &Fields) -> S3Result<Self> {
        if fields.has(CONTEXT) {
            let message = format!("{CONTEXT} is not supported");
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
        let id = fields.given(KEY_NAME).ok_or_else(|| {
            let message = format!(
                "{KMS} needs {KEY_NAME}: there is no default key, except the one of {AES256}"
            );
            refuse(S3ErrorCode::InvalidArgument, message)
        })?;
        Ok(Self::Named(key_name(id).to_owned()))
    }
}

/// Returns the key name in a key ID: a name, an alias or an ARN.
pub(crate) fn key_name(id: &str) -> &str {
    let in_arn = id.strip_prefix("arn:").and_then(|arn| arn.rsplit(':').next());
    let id = in_arn.unwrap_or(id);
    id.strip_prefix("key/").or_else(|| id.strip_prefix("alias/")).unwrap_or(id)
}

/// Returns the error for an unsupported encryption.
pub(crate) fn unsupported(algorithm: &str) -> S3Error {
    if algorithm.starts_with(KMS) {
        let message = format!("{algorithm} is not supported: use {KMS} or {AES256}");
        return refuse(S3ErrorCode::NotImplemented, message);
    }
    refuse(S3ErrorCode::InvalidArgument, format!("{ENCRYPTION} must be {AES256} or {KMS}"))
}

/// Reads the customer key in a request for an existing object, part or upload.
pub(crate) fn customer_key(fields: &Fields) -> S3Result<Option<CustomerKey>> {
    CustomerKey::of(fields, OBJECT_KEY)
}

/// Like [`customer_key`], for a read of an object, which cannot choose an encryption.
pub(crate) fn key_of_read(fields: &Fields) -> S3Result<Option<CustomerKey>> {
    if fields.has(ENCRYPTION) {
        let message = format!("A request to read an object cannot have the header {ENCRYPTION}");
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    customer_key(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(fields: &[(&str, &str)]) -> S3Result<RequestedEncryption> {
        RequestedEncryption::of(&fields.iter().copied().collect())
    }

    #[test]
    fn request_wants_one_kind_of_encryption() {
        assert!(matches!(wanted(&[]), Ok(RequestedEncryption::Default)));
        assert!(matches!(wanted(&[(ENCRYPTION, "AES256")]), Ok(RequestedEncryption::Operator)));
        let customer = [
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            (
                "x-amz-server-side-encryption-customer-key",
                "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=",
            ),
            ("x-amz-server-side-encryption-customer-key-md5", "DWygnHRtgiJ77HCm+1rvHw=="),
        ];
        assert!(matches!(wanted(&customer), Ok(RequestedEncryption::Customer(_))));
        let both = [&customer[..], &[(ENCRYPTION, "AES256")]].concat();
        let with_kms = [&customer[..], &[(ENCRYPTION, "aws:kms")]].concat();
        let kms = (ENCRYPTION, "aws:kms");
        let kms_key = (KEY_NAME, "x");
        for id in ["x", "alias/x", "arn:aws:kms:us-east-1:1:key/x", "arn:aws:kms::1:alias/x"] {
            let named = wanted(&[kms, (KEY_NAME, id)]);
            assert!(
                matches!(&named, Ok(RequestedEncryption::Named(name)) if name == "x"),
                "{named:?}"
            );
        }
        for (fields, code) in [
            (&both[..], "InvalidArgument"),
            (&with_kms[..], "InvalidArgument"),
            (&[(ENCRYPTION, "AES192")], "InvalidArgument"),
            (&[kms], "InvalidArgument"),
            (&[kms, kms_key, (CONTEXT, "e30=")], "NotImplemented"),
            (&[(ENCRYPTION, "aws:kms:dsse")], "NotImplemented"),
            (&[kms_key], "InvalidArgument"),
            (&[(ENCRYPTION, "AES256"), kms_key], "InvalidArgument"),
        ] {
            assert_eq!(wanted(fields).unwrap_err().code().as_str(), code, "{fields:?}");
        }
    }
}
