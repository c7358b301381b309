//! What the admin address tells: metrics and health.

use std::sync::Arc;

use haul_admin_endpoint::Told;

use crate::server::Handle;

/// A server, as its admin address sees it.
pub(crate) struct Telling(pub(crate) Arc<Handle>);

impl Told for Telling {
    fn metrics(&self) -> String {
        self.0.stats().to_prometheus()
    }

    fn trouble(&self) -> Option<&'static str> {
        if self.0.is_ending() {
            return Some("It is told to stop");
        }
        let why = "The directory that is served was removed: start the server again";
        (!self.0.has_root()).then_some(why)
    }

    fn answers_to(&self, host: Option<&str>) -> bool {
        self.0.answers_to(host)
    }
}
