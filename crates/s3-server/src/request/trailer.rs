//! The trailer of a chunked body.

use std::sync::{Arc, OnceLock};

use crate::request::fields::Fields;

/// The fields that follow a body's last chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailer(Arc<OnceLock<Fields>>);

impl Trailer {
    /// Returns `true` once the body was read to its end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Sets the fields; may be called only once.
    pub(crate) fn set(&self, fields: Fields) {
        let is_first = self.0.set(fields).is_ok();
        debug_assert!(is_first, "a body ends only once");
    }

    /// Returns the fields, once the body was read to its end.
    pub(crate) fn fields(&self) -> Option<&Fields> {
        self.0.get()
    }
}
