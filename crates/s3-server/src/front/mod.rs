//! Receives all S3 requests, and passes each through one pipeline: head, verify, bucket, authorize,
//! operation, respond, account.
//!
//! `pipeline` is that path. `inline` ends it early for objects in memory; `accounts` counts and
//! logs. `forms` and `cors` serve web pages, and `website` sends objects as web pages.

mod accounts;
mod cors;
pub(crate) mod forms;
pub(crate) mod handler;
mod health;
mod inline;
mod origin;
pub(crate) mod pipeline;
mod respond;
pub(crate) mod response;
mod visit;
mod website;

use std::sync::Arc;

use crate::audit::AuditLog;
use crate::bucket_logs::queue::LogQueue;
use crate::request::domains::Domains;
use crate::request::ids::RequestIds;
use crate::service::Haul;

/// The state that the pipeline needs in addition to the operations' context.
pub(crate) struct Front {
    pub(crate) haul: Haul,
    pub(crate) domains: Domains,
    pub(crate) website_domains: Domains,
    pub(crate) audit: Option<AuditLog>,
    /// The queue for access log records; a read-only server writes none.
    pub(crate) logs: Arc<LogQueue>,
    /// `true` if only GET and HEAD are allowed.
    pub(crate) is_read_only: bool,
    /// `true` if the server terminates TLS.
    pub(crate) is_encrypted: bool,
    pub(crate) ids: RequestIds,
}
