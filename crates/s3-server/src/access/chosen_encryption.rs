//! The encryption that a request selects for the object that it stores, as compared by policy
//! conditions.

use haul_store_pool::Pool;

use crate::encryption::customer::AES256;
use crate::encryption::default::algorithm_and_key;
use crate::encryption::request::{ENCRYPTION, KEY_NAME, KMS, RequestedEncryption, key_name};
use crate::policy::condition::EncryptionPart;
use crate::request::fields::Fields;

/// An encryption with an operator key; no encryption if it has no values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// `AES256` or `aws:kms`.
    algorithm: Option<String>,
    /// The key name, without the alias or ARN that contains it.
    key: Option<String>,
}

impl Chosen {
    /// Returns the encryption in the request headers. A request that stores an object in a bucket,
    /// and has none of these headers, uses the bucket's default.
    pub(crate) fn from_request(fields: &Fields, stores_in: Option<(&Pool, &str)>) -> Self {
        let text = |name: &str| fields.text(name).map(str::to_owned);
        match (RequestedEncryption::of(fields), stores_in) {
            (Ok(RequestedEncryption::Default), Some((store, bucket))) => {
                Self::bucket_default(store, bucket)
            }
            (Ok(RequestedEncryption::Default | RequestedEncryption::Customer(_)), _) => {
                Self::default()
            }
            (Ok(RequestedEncryption::Operator), _) => Self::new(AES256.to_owned(), None),
            (Ok(RequestedEncryption::Named(name)), _) => Self::new(KMS.to_owned(), Some(&name)),
            // The request is rejected later: nothing is stored with these headers.
            (Err(_), _) => {
                let key = text(KEY_NAME).map(|id| key_name(&id).to_owned());
                Self { algorithm: text(ENCRYPTION), key }
            }
        }
    }

    /// Returns a bucket's default encryption. If the default cannot be read, nothing is stored.
    pub(crate) fn bucket_default(store: &Pool, bucket: &str) -> Self {
        match algorithm_and_key(store, bucket) {
            Ok(Some((algorithm, key))) => Self::new(algorithm, key.as_deref()),
            Ok(None) | Err(_) => Self::default(),
        }
    }

    fn new(algorithm: String, key: Option<&str>) -> Self {
        Self { algorithm: Some(algorithm), key: key.map(|id| key_name(id).to_owned()) }
    }

    pub(crate) fn part(self, part: EncryptionPart) -> Option<String> {
        match part {
            EncryptionPart::Algorithm => self.algorithm,
            EncryptionPart::KeyName => self.key,
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_file_store::Options;

    use super::*;
    use crate::encryption::default::DEFAULT;

    #[test]
    fn encryption_is_that_of_the_headers_or_the_default_of_the_bucket() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        let of = |fields: &[(&str, &str)], stores_in| {
            let chosen = Chosen::from_request(&fields.iter().copied().collect(), stores_in);
            (chosen.algorithm.unwrap_or_default(), chosen.key.unwrap_or_default())
        };
        let pair = |algorithm: &str, key: &str| (algorithm.to_owned(), key.to_owned());
        let here = Some((&store, "bucket"));
        assert_eq!(of(&[], here), pair("", ""));
        let default = "<ServerSideEncryptionConfiguration><Rule>\
                       <ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm>\
                       <KMSMasterKeyID>alias/tax</KMSMasterKeyID>\
                       </ApplyServerSideEncryptionByDefault></Rule>\
                       </ServerSideEncryptionConfiguration>";
        store.set_bucket_setting("bucket", DEFAULT, Some(default)).unwrap();
        assert_eq!(of(&[], here), pair("aws:kms", "tax"));
        assert_eq!(of(&[], None), pair("", ""));
        assert_eq!(of(&[], Some((&store, "absent"))), pair("", ""));
        assert_eq!(of(&[(ENCRYPTION, "AES256")], here), pair("AES256", ""));
        let customer = [
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            (
                "x-amz-server-side-encryption-customer-key",
                "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=",
            ),
            ("x-amz-server-side-encryption-customer-key-md5", "DWygnHRtgiJ77HCm+1rvHw=="),
        ];
        assert_eq!(of(&customer, here), pair("", ""));
        for id in ["x", "alias/x", "arn:aws:kms:us-east-1:1:key/x"] {
            let named = of(&[(ENCRYPTION, "aws:kms"), (KEY_NAME, id)], here);
            assert_eq!(named, pair("aws:kms", "x"), "{id}");
            // The request is rejected: there is no such algorithm.
            let refused = of(&[(ENCRYPTION, "AES192"), (KEY_NAME, id)], here);
            assert_eq!(refused, pair("AES192", "x"), "{id}");
        }
    }
}
