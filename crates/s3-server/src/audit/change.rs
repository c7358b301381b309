//! The changes of one request, reported by its operation.

use std::sync::Arc;

use haul_file_store::Etag;
use hyper::StatusCode;
use hyper::http::Extensions;
use parking_lot::Mutex;
use s3s::S3Error;

/// One change of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    /// The key that changed; `None`: the key of the request.
    pub(super) key: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) etag: Option<String>,
    /// The error code for this key.
    pub(super) error: Option<String>,
    /// Of a deletion: the version ID in the request, and the status for this key.
    deleted: Option<(Option<String>, u16)>,
}

/// A key of a multi-object delete, for the access log of its bucket.
pub(crate) struct DeletedKey {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
}

/// The changes of one request. An extension of the request if the server has an audit log, or its
/// bucket an access log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    form: Option<FormNames>,
    changes: Vec<Change>,
}

/// The names in a form, which are not known when its record begins.
#[derive(Debug, Clone)]
pub(super) struct FormNames {
    pub(super) key: String,
    pub(super) access_key: Option<Arc<str>>,
}

impl Changes {
    /// Returns the changes of a request, if it is audited or logged.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Sets the key of an upload by form, and the access key that signed the form.
    pub(crate) fn of_form(&self, key: &str, access_key: Option<Arc<str>>) {
        self.0.lock().form = Some(FormNames { key: key.to_owned(), access_key });
    }

    /// Adds an object or part that was stored.
    pub(crate) fn stored(&self, bytes: u64, etag: Etag) {
        let (bytes, etag) = (Some(bytes), Some(etag.to_string()));
        self.0.lock().changes.push(Change { bytes, etag, ..Change::default() });
    }

    /// Adds a key that was deleted, or that could not be deleted because of an error.
    pub(crate) fn deleted(&self, key: &str, version: Option<&str>, error: Option<&S3Error>) {
        let status = error.map_or(Some(StatusCode::NO_CONTENT), |error| {
            error.status_code().or_else(|| error.code().status_code())
        });
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).as_u16();
        let (key, error) = (Some(key.to_owned()), error.map(|e| e.code().as_str().to_owned()));
        let deleted = Some((version.map(str::to_owned), status));
        self.0.lock().changes.push(Change { key, error, deleted, ..Change::default() });
    }

    /// Returns the keys of a multi-object delete.
    pub(crate) fn deleted_keys(&self) -> Vec<DeletedKey> {
        let of_key = |change: &Change| {
            let (version, status) = change.deleted.clone()?;
            let (key, error) = (change.key.clone()?, change.error.clone());
            Some(DeletedKey { key, version, status, error })
        };
        self.0.lock().changes.iter().filter_map(of_key).collect()
    }

    /// Returns the length of the object or part that was stored.
    pub(crate) fn stored_bytes(&self) -> Option<u64> {
        self.0.lock().changes.first()?.bytes
    }

    /// Returns the key of an upload by form.
    pub(crate) fn form_key(&self) -> Option<String> {
        self.0.lock().form.as_ref().map(|names| names.key.clone())
    }

    pub(super) fn all(&self) -> (Option<FormNames>, Vec<Change>) {
        let state = self.0.lock();
        (state.form.clone(), state.changes.clone())
    }
}
