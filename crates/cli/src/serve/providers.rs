//! Reads the configuration of OpenID Connect providers, and fetches their documents.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haul_s3_server::{FetchDocument, Providers};
use reqwest::Client;
use tokio::runtime;

use crate::report::{OrFail, Result};

/// The time after which a provider has failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum length of a document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Reads the file with the providers.
pub(super) fn load(path: &Path) -> Result<Arc<Providers>> {
    let cannot = || format!("cannot use the providers in {}", path.display());
    let text = std::fs::read_to_string(path).or_not_start(cannot)?;
    // Another implementation that the process selected stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    Providers::parse(&text, Arc::new(HttpFetcher)).map(Arc::new).or_not_start(cannot)
}

/// Fetches documents by HTTP.
#[derive(Debug)]
struct HttpFetcher;

impl FetchDocument for HttpFetcher {
    fn fetch(&self, url: &str) -> std::result::Result<Vec<u8>, String> {
        // A fetch is rare: it has a runtime of its own, on the thread that waits for it.
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(fetch(url))
    }
}

async fn fetch(url: &str) -> std::result::Result<Vec<u8>, String> {
    let fail = |error: reqwest::Error| format!("cannot read {url}: {}", innermost(&error));
    // A redirect could lead to an address without TLS.
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
    let mut response = client.build().map_err(fail)?.get(url).send().await.map_err(fail)?;
    if !response.status().is_success() {
        return Err(format!("cannot read {url}: the response is {}", response.status()));
    }
    let mut document = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(fail)? {
        document.extend_from_slice(&piece);
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("cannot read {url}: it has more than {DOCUMENT_BYTES_MAX} bytes"));
        }
    }
    Ok(document)
}

/// Returns the innermost cause of an error.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
