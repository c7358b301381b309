//! The pages of the admin address: metrics, health and the console.

use std::io;
use std::sync::Arc;

use haul_admin_endpoint::{Admin, Overview, RecentRequests, StatusSource};
use haul_reactor::Address;

use super::handle::Handle;

impl Handle {
    /// Serves the pages of the admin address at `address`, in place of
    /// [`Config::admin`](crate::Config::admin), until the returned value is dropped.
    ///
    /// # Errors
    /// The address is in use or invalid, or the kernel refuses a thread.
    pub fn bind_admin(self: &Arc<Self>, address: &Address) -> io::Result<Admin> {
        Admin::bind(address, ServerStatus(Arc::clone(self)))
    }
}

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

    fn overview(&self) -> Option<Overview> {
        Some(self.0.stats().to_overview())
    }

    fn recent_requests(&self) -> Option<&RecentRequests> {
        Some(self.0.recent())
    }

    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        self.0.allows_host(host)
    }
}
