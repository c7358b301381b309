//! The client of a request as its rights were decided, for the access log of the bucket.

use std::sync::Arc;

use hyper::http::Extensions;
use parking_lot::Mutex;

use crate::access::authorize::Principal;
use crate::access::caller::{Basis, Caller};
use crate::access::keys::key::ADMINISTRATOR;

/// The client of a request whose signature was verified. An extension of a request that is logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct VerifiedClient(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    user: Option<String>,
    needs_list: bool,
}

impl VerifiedClient {
    /// Returns the user whose key signed the request; `None` also before that is verified.
    pub(crate) fn user(&self) -> Option<String> {
        self.0.lock().user.clone()
    }

    /// Returns `true` if only an access list allowed the request.
    pub(crate) fn needs_list(&self) -> bool {
        self.0.lock().needs_list
    }

    /// Notes a client, whose signature is verified.
    pub(super) fn note(extensions: &Extensions, caller: &Caller) {
        if let Some(Self(state)) = extensions.get()
            && let Principal::Key(key) = &caller.principal
        {
            let user = key.user.as_deref().unwrap_or(ADMINISTRATOR);
            state.lock().user = Some(user.to_owned());
        }
    }

    /// Notes the reason why the client may execute its operation.
    pub(super) fn note_basis(extensions: &Extensions, basis: Basis) {
        if basis == Basis::List
            && let Some(Self(state)) = extensions.get()
        {
            state.lock().needs_list = true;
        }
    }
}
