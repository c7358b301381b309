//! Reads the configuration of OpenID Connect providers, and sends requests to them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haul_s3_server::{ProviderClient, Providers};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use tokio::runtime;

use crate::report::{OrFail, Result};
use crate::secrets;

/// The time after which a provider has failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum length of a document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// The longest part of a refusal that is reported, in characters.
const REFUSAL_CHARACTERS_MAX: usize = 300;

/// Reads the file with the providers, which other users cannot read if it has secrets.
pub(super) fn load(path: &Path) -> Result<Arc<Providers>> {
    let cannot = || format!("cannot use the providers in {}", path.display());
    let text = std::fs::read_to_string(path).or_not_start(cannot)?;
    // Another implementation that the process selected stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    let providers = Providers::parse(&text, Arc::new(HttpClient)).or_not_start(cannot)?;
    if providers.has_secrets() {
        secrets::file::read(path, &cannot)?;
    }
    Ok(Arc::new(providers))
}

/// Sends requests by HTTP.
#[derive(Debug)]
struct HttpClient;

impl ProviderClient for HttpClient {
    fn get(&self, url: &str) -> std::result::Result<Vec<u8>, String> {
        send(url, |client| client.get(url))
    }

    fn post(
        &self,
        url: &str,
        form: &str,
        authorization: Option<&str>,
    ) -> std::result::Result<Vec<u8>, String> {
        send(url, |client| {
            let request = client
                .post(url)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(ACCEPT, "application/json");
            let request = match authorization {
                Some(authorization) => request.header(AUTHORIZATION, authorization),
                None => request,
            };
            request.body(form.to_owned())
        })
    }
}

/// Sends a request, which is rare: it has a runtime of its own, on the thread that waits for it.
fn send(
    url: &str,
    request: impl FnOnce(Client) -> RequestBuilder,
) -> std::result::Result<Vec<u8>, String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(exchange(url, request))
}

async fn exchange(
    url: &str,
    request: impl FnOnce(Client) -> RequestBuilder,
) -> std::result::Result<Vec<u8>, String> {
    let fail = |error: reqwest::Error| format!("no response of {url}: {}", innermost(&error));
    // A redirect could lead to an address without TLS.
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
    let mut response = request(client.build().map_err(fail)?).send().await.map_err(fail)?;
    let status = response.status();
    let mut document = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(fail)? {
        document.extend_from_slice(&piece);
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("the response of {url} has more than {DOCUMENT_BYTES_MAX} bytes"));
        }
    }
    match status.is_success() {
        true => Ok(document),
        false => {
            let text = String::from_utf8_lossy(&document);
            let text: String = text.chars().take(REFUSAL_CHARACTERS_MAX).collect();
            Err(format!("the response of {url} is {status}: {}", text.trim()))
        }
    }
}

/// Returns the innermost cause of an error.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
