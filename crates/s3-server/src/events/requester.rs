//! The requester of a change, as events name it.

use std::net::IpAddr;
use std::sync::Arc;

/// The requester of a change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requester {
    pub(crate) request_id: [u8; 16],
    /// `None` for the administrator, and for a client without a signature.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) peer: Option<IpAddr>,
}
