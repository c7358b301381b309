//! The trailer of a body of chunks.

use std::sync::{Arc, OnceLock};

use crate::request::fields::Fields;

/// The fields that follow the last chunk of a body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailer(Arc<OnceLock<Fields>>);

impl Trailer {
    /// Returns `true` once the end of the body was read.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Sets the fields, once.
    pub(crate) fn set(&self, fields: Fields) {
        let is_first = self.0.set(fields).is_ok();
        debug_assert!(is_first, "a body ends only once");
    }

    /// Returns the fields, once the end of the body was read.
    pub(crate) fn fields(&self) -> Option<&Fields> {
        self.0.get()
    }
}
