//! The changes of one request, reported by its operation.

use std::sync::Arc;

use haul_file_store::Etag;
use hyper::http::Extensions;
use parking_lot::Mutex;

/// One change of a request.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The key that changed; `None`: the key of the request.
    pub(super) key: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) etag: Option<String>,
    /// The error code for this key.
    pub(super) error: Option<String>,
}

/// The changes of one request. An extension of the request if the server has an audit log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    form: Option<FormNames>,
    changes: Vec<Change>,
}

/// The names in a form, which are not known when its record begins.
#[derive(Debug)]
pub(super) struct FormNames {
    pub(super) key: String,
    pub(super) access_key: Option<Arc<str>>,
}

impl Changes {
    /// Returns the changes of a request, if it is audited.
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

    /// Adds a key that was deleted, or that could not be deleted because of the error with this
    /// code.
    pub(crate) fn deleted(&self, key: &str, error: Option<&str>) {
        let (key, error) = (Some(key.to_owned()), error.map(str::to_owned));
        self.0.lock().changes.push(Change { key, error, ..Change::default() });
    }

    pub(super) fn take(&self) -> (Option<FormNames>, Vec<Change>) {
        let State { form, changes } = std::mem::take(&mut *self.0.lock());
        (form, changes)
    }
}
