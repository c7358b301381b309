//! The encryption that a bucket has for new objects by default.

use haul_file_store::{Error, Store};
use s3s::dto::{ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration};
use s3s::{S3ErrorCode, S3Result};

use crate::buckets::settings::parse;
use crate::encryption::customer::AES256;
use crate::encryption::master::Master;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::{KMS, Wanted, key_name, unsupported};
use crate::errors::{from_store, refuse};

/// The name of the setting of a bucket whose new objects are encrypted.
pub(crate) const DEFAULT: &str = "encryption";

/// Returns `true` if new objects of the bucket are encrypted, or if that cannot be found out.
pub(crate) fn has_default(store: &Store, bucket: &str) -> bool {
    match store.bucket_settings(bucket) {
        Ok(settings) => settings.get(DEFAULT).is_some(),
        Err(error) => !matches!(error, Error::NoSuchBucket { .. }),
    }
}

/// Returns the key for a new object of the bucket; `None` if it is not encrypted.
pub(crate) fn master_for(
    store: &Store,
    keys: Option<&EncryptionKeys>,
    bucket: &str,
    wanted: Wanted,
) -> S3Result<Option<Master>> {
    match wanted {
        Wanted::Customer(key) => Ok(Some(Master::Customer(key))),
        Wanted::Operator => Master::of_operator(keys).map(Some),
        Wanted::Named(name) => Master::named(keys, &name).map(Some),
        Wanted::Default => match store.bucket_settings(bucket) {
            Ok(settings) => parse(&settings, bucket, DEFAULT)?
                .map(|default| master_of_default(keys, &default))
                .transpose(),
            // Without keys of its own, the server has accepted no default.
            Err(Error::Damaged { .. }) if keys.is_none() => Ok(None),
            Err(error) => Err(from_store(error)),
        },
    }
}

/// Returns the key for new objects of a bucket with this default.
///
/// # Errors
/// If the document is not one rule with an encryption that the server supports, or if the server has
/// no such key.
pub(crate) fn master_of_default(
    keys: Option<&EncryptionKeys>,
    document: &ServerSideEncryptionConfiguration,
) -> S3Result<Master> {
    let ServerSideEncryptionByDefault { kms_master_key_id, sse_algorithm } = default_of(document)?;
    match (sse_algorithm.as_str(), kms_master_key_id) {
        (AES256, None) => Master::of_operator(keys),
        (AES256, Some(_)) => {
            let message = format!("{AES256} has no KMSMasterKeyID");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
        (KMS, Some(id)) => Master::named(keys, key_name(id)),
        (KMS, None) => {
            let message = format!("{KMS} needs a KMSMasterKeyID: there is no default key");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
        (other, _) => Err(unsupported(other)),
    }
}

/// Returns the algorithm of the default of a bucket, and the ID of its key, if it has one.
pub(super) fn algorithm_and_key(
    store: &Store,
    bucket: &str,
) -> S3Result<Option<(String, Option<String>)>> {
    let settings = store.bucket_settings(bucket).map_err(from_store)?;
    let Some(document) = parse(&settings, bucket, DEFAULT)? else { return Ok(None) };
    let ServerSideEncryptionByDefault { kms_master_key_id, sse_algorithm } = default_of(&document)?;
    Ok(Some((sse_algorithm.as_str().to_owned(), kms_master_key_id.clone())))
}

fn default_of(
    document: &ServerSideEncryptionConfiguration,
) -> S3Result<&ServerSideEncryptionByDefault> {
    let [rule] = document.rules.as_slice() else {
        return Err(refuse(S3ErrorCode::MalformedXML, "Expected one rule"));
    };
    rule.apply_server_side_encryption_by_default.as_ref().ok_or_else(|| {
        let message = "The rule needs an ApplyServerSideEncryptionByDefault";
        refuse(S3ErrorCode::MalformedXML, message)
    })
}

#[cfg(test)]
mod tests {
    use s3s::dto::{ServerSideEncryption, ServerSideEncryptionRule};

    use super::*;
    use crate::encryption::operator::EncryptionKey;

    #[test]
    fn default_is_one_rule_with_a_key_of_the_server() {
        let rule = |algorithm: &'static str, key: Option<&str>| ServerSideEncryptionRule {
            apply_server_side_encryption_by_default: Some(ServerSideEncryptionByDefault {
                kms_master_key_id: key.map(str::to_owned),
                sse_algorithm: ServerSideEncryption::from_static(algorithm),
            }),
            ..ServerSideEncryptionRule::default()
        };
        let key = || EncryptionKey::generate().unwrap();
        let text = key().to_text() + &key().with_name("x").unwrap().to_text();
        let keys = EncryptionKeys::parse(&text).unwrap();
        for (rules, code) in [
            (vec![rule("AES256", None)], None),
            (vec![rule("aws:kms", Some("x"))], None),
            (vec![], Some("MalformedXML")),
            (vec![rule("AES256", None), rule("AES256", None)], Some("MalformedXML")),
            (vec![ServerSideEncryptionRule::default()], Some("MalformedXML")),
            (vec![rule("AES128", None)], Some("InvalidArgument")),
            (vec![rule("AES256", Some("x"))], Some("InvalidArgument")),
            (vec![rule("aws:kms", None)], Some("InvalidArgument")),
            (vec![rule("aws:kms", Some("y"))], Some("KMS.NotFoundException")),
            (vec![rule("aws:kms:dsse", Some("x"))], Some("NotImplemented")),
        ] {
            let document = ServerSideEncryptionConfiguration { rules };
            let refused = master_of_default(Some(&keys), &document).err();
            assert_eq!(refused.as_ref().map(|error| error.code().as_str()), code, "{document:?}");
            assert!(master_of_default(None, &document).is_err());
        }
    }
}
