//! An upload's name in a request.

use haul_file_store::{Error, PartInfo, UploadInfo};
use haul_store_pool::Pool;

use crate::body::checksum::{ALGORITHM_ATTRIBUTE, Algorithm};
use crate::errors::{S3Error, S3Result, from_store};
use crate::request::name::ObjectName;
use crate::service::request::Request;

/// The bucket, key and upload ID that a request names.
#[derive(Debug, Clone)]
pub(super) struct UploadName {
    pub(super) object: ObjectName,
    pub(super) id: String,
}

impl UploadName {
    pub(super) fn new(request: &Request) -> Self {
        let id = request.head.query.get("uploadId").unwrap_or_default().to_owned();
        Self { object: request.name().clone(), id }
    }

    /// Returns the upload. Waits while another request changes the object, and reads the disk.
    pub(super) fn find(&self, store: &Pool) -> S3Result<UploadInfo> {
        let ObjectName { bucket, key } = &self.object;
        store.upload(bucket, key, &self.id).map_err(|error| self.map_error(error))
    }

    /// Returns the parts, sorted by number. Reads the disk.
    pub(super) fn parts(&self, store: &Pool) -> S3Result<Vec<PartInfo>> {
        let ObjectName { bucket, key } = &self.object;
        store.parts(bucket, key, &self.id).map_err(|error| self.map_error(error))
    }

    /// Translates a store error; a missing upload's error has the ID.
    pub(super) fn map_error(&self, error: Error) -> S3Error {
        let is_missing = matches!(error, Error::NoSuchUpload { .. });
        let error = from_store(error);
        if is_missing { error.with_field("UploadId", &*self.id) } else { error }
    }
}

/// Returns the checksum algorithm that the client chose when it created the upload.
pub(super) fn algorithm(upload: &UploadInfo) -> Option<Algorithm> {
    upload.attributes.get(ALGORITHM_ATTRIBUTE).and_then(Algorithm::from_name)
}
