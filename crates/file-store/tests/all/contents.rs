//! The content of a store, as the API returns it.

use std::collections::BTreeMap;

use haul_file_store::{Attributes, Etag, Lifecycle, Store};

use crate::{Dump, dump, uploads_of};

/// An upload without its ID: bucket, key, attributes, parts.
pub(crate) type UploadContents = (String, String, Vec<(String, String)>, Vec<(u16, u64, Etag)>);

/// The content of a store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contents {
    pub(crate) objects: Dump,
    pub(crate) uploads: Vec<UploadContents>,
    pub(crate) lifecycles: BTreeMap<String, Lifecycle>,
    /// The settings of buckets that have some.
    pub(crate) settings: BTreeMap<String, Attributes>,
}

impl Contents {
    /// Removes a bucket and returns the number of its objects.
    pub(crate) fn take_bucket(&mut self, bucket: &str) -> usize {
        self.objects.remove(bucket).map_or(0, |objects| objects.len())
    }

    /// Reads the whole content, and checks invariants of every store.
    pub(crate) fn of(store: &Store) -> Self {
        let objects = dump(store);
        let mut uploads = Vec::new();
        for bucket in objects.keys() {
            for upload in uploads_of(store, bucket).unwrap() {
                let parts = store.parts(bucket, &upload.key, &upload.id).unwrap();
                let parts = parts.into_iter().map(|part| (part.number, part.bytes, part.etag));
                let attributes = pairs(&upload.attributes);
                uploads.push((bucket.clone(), upload.key, attributes, parts.collect()));
            }
        }
        assert_eq!(store.stats().uploads, uploads.len() as u64);
        uploads.sort_by(order);
        let lifecycle = |bucket: &String| (bucket.clone(), store.lifecycle(bucket).unwrap());
        let lifecycles = objects.keys().map(lifecycle);
        let lifecycles = lifecycles.filter(|(_, found)| !found.rules.is_empty()).collect();
        let setting = |bucket: &String| {
            (bucket.clone(), Attributes::clone(&store.bucket_settings(bucket).unwrap()))
        };
        let settings = objects.keys().map(setting).filter(|(_, found)| found.bytes() > 0).collect();
        Self { objects, uploads, lifecycles, settings }
    }
}

/// Orders uploads by everything except their IDs.
pub(crate) fn order(a: &UploadContents, b: &UploadContents) -> std::cmp::Ordering {
    let key = |upload: &UploadContents| {
        let parts: Vec<(u16, u64, [u8; 16])> =
            upload.3.iter().map(|(number, bytes, etag)| (*number, *bytes, etag.md5)).collect();
        (upload.0.clone(), upload.1.clone(), upload.2.clone(), parts)
    };
    key(a).cmp(&key(b))
}

/// Returns the attributes as pairs, which can be ordered.
pub(crate) fn pairs(attributes: &Attributes) -> Vec<(String, String)> {
    attributes.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
