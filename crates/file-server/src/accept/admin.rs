//! The pages of the admin address: metrics, health and the console.

use std::io;
use std::sync::Arc;

use haul_admin_endpoint::{Admin, AllowedHosts, Overview, RecentRequests, StatusSource};
use haul_reactor::Address;

use super::handle::Handle;

impl Handle {
    /// Serves the pages of the admin address at `address`, in place of
    /// [`Config::admin`](crate::Config::admin), until the returned value is dropped.
    ///
    /// # Errors
    /// The address is in use or invalid, or the kernel refuses a thread.
    pub fn bind_admin(self: &Arc<Self>, address: &Address) -> io::Result<Admin> {
        let hosts = self.admin_hosts(address);
        Admin::bind(address, ServerStatus { server: Arc::clone(self), hosts })
    }
}

/// The status of a server, for its admin address.
struct ServerStatus {
    server: Arc<Handle>,
    hosts: AllowedHosts,
}

impl StatusSource for ServerStatus {
    fn metrics(&self) -> String {
        self.server.stats().to_prometheus()
    }

    fn unready_reason(&self) -> Option<&'static str> {
        self.server.is_stopping().then_some("The server is draining")
    }

    fn failure_reason(&self) -> Option<&'static str> {
        let reason = "The served directory was removed: restart the server";
        (!self.server.has_root()).then_some(reason)
    }

    fn overview(&self) -> Option<Overview> {
        Some(self.server.stats().to_overview())
    }

    fn recent_requests(&self) -> Option<&RecentRequests> {
        Some(self.server.recent())
    }

    fn is_allowed_host(&self, host: Option<&str>) -> bool {
        self.hosts.allows(host)
    }
}
