//! The encryption that a bucket has for new objects by default.

use haul_file_store::{Error, Store};
use s3s::S3Result;

use crate::encryption::master::Master;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::Wanted;
use crate::errors::from_store;

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
        Wanted::Default => match store.bucket_settings(bucket) {
            Ok(settings) if settings.get(DEFAULT).is_none() => Ok(None),
            Ok(_) => Master::of_operator(keys).map(Some),
            // Without keys of its own, the server has accepted no default.
            Err(Error::Damaged { .. }) if keys.is_none() => Ok(None),
            Err(error) => Err(from_store(error)),
        },
    }
}
