//! The changes made by one request, as reported by its operation.

use std::sync::Arc;

use haul_file_store::Etag;
use http::StatusCode;
use parking_lot::Mutex;

use crate::errors::{S3Error, S3ErrorCode};

/// One change that a request makes.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    /// The changed key; `None` means the request's key.
    pub(super) key: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) etag: Option<String>,
    /// The error code for this key.
    pub(super) error: Option<S3ErrorCode>,
    /// For a deletion: the version ID in the request, and the status for this key.
    deleted: Option<(Option<String>, u16)>,
}

/// A key in a multi-object delete, for the bucket's access log.
pub(crate) struct DeletedKey {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) status: u16,
    pub(crate) error: Option<S3ErrorCode>,
}

/// The changes that one request makes. The operation reports them if the server has an audit log,
/// or the bucket an access log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    form: Option<FormNames>,
    changes: Vec<Change>,
}

/// The names in a POST form, which are unknown when the record begins.
#[derive(Debug, Clone)]
pub(super) struct FormNames {
    pub(super) key: String,
    pub(super) access_key: Option<Arc<str>>,
}

impl Changes {
    /// Sets a form upload's key, and the access key that signed the form.
    pub(crate) fn set_form(&self, key: &str, access_key: Option<Arc<str>>) {
        self.0.lock().form = Some(FormNames { key: key.to_owned(), access_key });
    }

    /// Adds an object or part that was stored.
    pub(crate) fn stored(&self, bytes: u64, etag: Etag) {
        let (bytes, etag) = (Some(bytes), Some(etag.to_string()));
        self.0.lock().changes.push(Change { bytes, etag, ..Change::default() });
    }

    /// Adds a key that was deleted, or that could not be deleted because of an error.
    pub(crate) fn deleted(&self, key: &str, version: Option<&str>, error: Option<&S3Error>) {
        let error = error.map(S3Error::code);
        let status = error.map_or(StatusCode::NO_CONTENT, S3ErrorCode::status).as_u16();
        let key = Some(key.to_owned());
        let deleted = Some((version.map(str::to_owned), status));
        self.0.lock().changes.push(Change { key, error, deleted, ..Change::default() });
    }

    /// Returns the keys in a multi-object delete, with their outcomes.
    pub(crate) fn deleted_keys(&self) -> Vec<DeletedKey> {
        let deleted = |change: &Change| {
            let (version, status) = change.deleted.clone()?;
            Some(DeletedKey { key: change.key.clone()?, version, status, error: change.error })
        };
        self.0.lock().changes.iter().filter_map(deleted).collect()
    }

    /// Returns the length of the stored object or part, in bytes.
    pub(crate) fn stored_bytes(&self) -> Option<u64> {
        self.0.lock().changes.first()?.bytes
    }

    /// Returns a form upload's key.
    pub(crate) fn form_key(&self) -> Option<String> {
        self.0.lock().form.as_ref().map(|names| names.key.clone())
    }

    pub(super) fn all(&self) -> (Option<FormNames>, Vec<Change>) {
        let state = self.0.lock();
        (state.form.clone(), state.changes.clone())
    }
}
