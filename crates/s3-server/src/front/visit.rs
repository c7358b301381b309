//! A request to a website, once its head was received.

use std::sync::Arc;

use crate::settings::website::configuration::WebsiteConfiguration;
use crate::settings::website::routing::Step;

/// A request to a bucket that has a website.
pub(super) struct Visit {
    pub(super) website: Arc<WebsiteConfiguration>,
    /// What the website does before an object is read.
    pub(super) first: Step,
}

impl Visit {
    /// Returns `true` if the website redirects the request without reading an object.
    pub(super) fn is_redirect(&self) -> bool {
        matches!(self.first, Step::Redirect(..))
    }
}
