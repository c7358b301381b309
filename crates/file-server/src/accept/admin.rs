//! The pages of the admin address: metrics and health.

use std::sync::Arc;

use haul_admin_endpoint::StatusSource;

use super::handle::Handle;

/// The status of a server, for its admin address.
pub(crate) struct ServerStatus(pub(crate) Arc<Handle>);

impl StatusSource for ServerStatus {
    fn metrics(&self) -> String {
        self.0.stats().to_prometheus()
    }

    fn unready_reason(&self) -> Option<&'static str> {
        self.0.is_stopping().then_some("The server is draining")
    }

    fn failure_reason(&self) -> Option<&'static str> {
        let reason = "The served directory was removed: restart the server";
        (!self.0.has_root()).then_some(reason)
    }

    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        self.0.allows_host(host)
    }
}
