//! A request's properties, and the encryption of the object that it stores, which may be the
//! bucket's default.

use std::borrow::Cow;

use crate::access::chosen_encryption::Chosen;
use crate::access::facts::RequestFacts;
use crate::policy::condition::{Facts, Key};
use haul_store_pool::Pool;

/// The operations that store objects or parts of them.
const STORING: [&str; 6] = [
    "PutObject",
    "CopyObject",
    "CreateMultipartUpload",
    "UploadPart",
    "UploadPartCopy",
    "CompleteMultipartUpload",
];

/// A request's properties, with the operation and the bucket that they concern.
pub(super) struct StoredFacts<'a> {
    pub(super) facts: &'a RequestFacts,
    pub(super) store: &'a Pool,
    pub(super) operation: &'a str,
    pub(super) bucket: &'a str,
}

impl Facts for StoredFacts<'_> {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        let Key::Encryption(part) = key else { return self.facts.value(key) };
        let stores = STORING.contains(&self.operation);
        let stores_in = stores.then_some((self.store, self.bucket));
        Chosen::from_request(&self.facts.head.fields, stores_in).part(*part).map(Cow::Owned)
    }
}
