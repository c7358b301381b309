//! The admin address: metrics and health. Nothing can be changed there.

use std::sync::Arc;

use crate::answer::Page;
use crate::server::Handle;

const ROOT_REMOVED: &str = "The directory that is served was removed: start the server again\n";

/// What is told about.
#[derive(Debug)]
pub(crate) struct Admin {
    handle: Arc<Handle>,
}

impl Admin {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    pub(crate) fn page(&self, path: &[u8]) -> Page {
        let page = match path {
            b"/health" if !self.handle.has_root() => Page::plain(503, ROOT_REMOVED.to_owned()),
            b"/health" => Page::plain(200, "ok\n".to_owned()),
            b"/metrics" => {
                let content_type = "text/plain; version=0.0.4; charset=utf-8";
                Page { content_type, ..Page::plain(200, self.handle.stats().to_prometheus()) }
            }
            _ => Page::plain(404, "There are /metrics and /health\n".to_owned()),
        };
        page.with("Cache-Control", "no-store")
    }
}
