//! The pages of the admin address: metrics and health.

use std::sync::Arc;

use haul_admin_endpoint::StatusSource;

use crate::server::Handle;

/// A server, as its admin address sees it.
pub(crate) struct Telling(pub(crate) Arc<Handle>);

impl StatusSource for Telling {
    fn metrics(&self) -> String {
        self.0.stats().to_prometheus()
    }

    fn unready_reason(&self) -> Option<&'static str> {
        self.0.is_ending().then_some("The server is draining")
    }

    fn failure_reason(&self) -> Option<&'static str> {
        let why = "The served directory was removed: restart the server";
        (!self.0.has_root()).then_some(why)
    }

    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        self.0.answers_to(host)
    }
}
