//! Sends signed requests to an S3 server.

mod encode;
mod retry;
mod sign;

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::{Body, Method, Response, redirect};
use time::OffsetDateTime;
use url::Url;

pub(crate) use encode::{hex, md5_from_hex};
pub(crate) use retry::retry;

use crate::error::{Error, Result};
use crate::options::Endpoint;
use crate::xml::Element;

/// The time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for a request without a body, apart from that of its bytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The rate in bytes per second below which a request is cancelled.
const RATE_MIN: u64 = 64 << 10;

/// The maximum length of a document that is read into memory.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// A request for a bucket or an object.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// The bucket; empty for the list of all buckets.
    pub(crate) bucket: &'a str,
    /// The key; empty for the bucket itself.
    pub(crate) key: &'a str,
    pub(crate) query: Vec<(&'a str, &'a str)>,
    pub(crate) headers: HeaderMap,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: Method, bucket: &'a str, key: &'a str) -> Self {
        Self { method, bucket, key, query: Vec::new(), headers: HeaderMap::new() }
    }

    pub(crate) fn get(bucket: &'a str, key: &'a str) -> Self {
        Self::new(Method::GET, bucket, key)
    }

    pub(crate) fn put(bucket: &'a str, key: &'a str) -> Self {
        Self::new(Method::PUT, bucket, key)
    }

    /// Adds a parameter of the query.
    #[must_use]
    pub(crate) fn with(mut self, name: &'a str, value: &'a str) -> Self {
        self.query.push((name, value));
        self
    }

    /// Adds a parameter of the query if it has a value.
    #[must_use]
    pub(crate) fn with_some(self, name: &'a str, value: Option<&'a str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a header whose value is plain text.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// The body of a request.
pub(crate) enum Payload {
    /// Bytes in memory, whose hash is signed.
    Bytes(Bytes),
    /// A stream of this length, whose bytes are not signed.
    Stream(Body, u64),
}

/// A client of one server. Its connections stay open for further requests.
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    /// The header `Host`.
    host: String,
    endpoint: Endpoint,
}

impl Client {
    /// Creates a client, without a connection.
    pub(crate) fn new(endpoint: &Endpoint, connections: usize) -> Result<Self> {
        let (base, host) = parse(&endpoint.url)?;
        let is_local = base.host().is_some_and(|host| match host {
            url::Host::Domain(name) => name == "localhost",
            url::Host::Ipv4(address) => address.is_loopback(),
            url::Host::Ipv6(address) => address.is_loopback(),
        });
        let builder = reqwest::Client::builder()
            .http1_only()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(connections)
            .user_agent("haul");
        // A proxy of the environment cannot reach the servers of this machine.
        let builder = if is_local { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| Error::Start(error.into()))?;
        Ok(Self { http, base, host, endpoint: endpoint.clone() })
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns the method and the URL of a request, for messages.
    pub(crate) fn describe(&self, request: &Request<'_>) -> String {
        let Request { method, bucket, key, query, .. } = request;
        let query: Vec<_> = query.iter().map(|(name, _)| *name).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let slash = if key.is_empty() { "" } else { "/" };
        let key = key.escape_debug();
        format!("{method} {}/{bucket}{slash}{key}{query}", self.url())
    }

    /// Sends a request with a body in memory, and repeats it after errors that may pass.
    pub(crate) async fn send(&self, request: &Request<'_>, body: &Bytes) -> Result<Response> {
        retry(async || self.send_once(request, Payload::Bytes(body.clone())).await).await
    }

    /// Sends a request without a body, and returns the document of the response. Both are repeated.
    pub(crate) async fn document(&self, request: &Request<'_>) -> Result<Element> {
        let bytes = self.bytes(request).await?;
        self.parsed(request, &bytes)
    }

    /// Sends a request without a body, and returns the body of the response. Both are repeated.
    pub(crate) async fn bytes(&self, request: &Request<'_>) -> Result<Vec<u8>> {
        let send = async || {
            let response = self.send_once(request, Payload::Bytes(Bytes::new())).await?;
            self.body(request, response, DOCUMENT_BYTES_MAX).await
        };
        retry(send).await
    }

    /// Parses the document of a response.
    pub(crate) fn parsed(&self, request: &Request<'_>, bytes: &[u8]) -> Result<Element> {
        let unexpected = |why| Error::Response { request: self.describe(request), why };
        Element::parse(bytes).map_err(unexpected)
    }

    /// Sends a request once. A status other than 2xx is an error.
    pub(crate) async fn send_once(
        &self,
        request: &Request<'_>,
        payload: Payload,
    ) -> Result<Response> {
        let Request { method, bucket, key, query, .. } = request;
        let query = encode::query(query);
        let mut headers = request.headers.clone();
        let (body, length, hash) = match payload {
            Payload::Bytes(bytes) => {
                let (hash, length) = (sign::body_hash(&bytes), bytes.len() as u64);
                (Body::from(bytes), length, hash)
            }
            Payload::Stream(body, length) => (body, length, sign::UNSIGNED.to_owned()),
        };
        if let Some(keys) = &self.endpoint.credentials {
            let (method, host, query) = (method.as_str(), &*self.host, &*query);
            let target = sign::Target { method, host, bucket, key, query, body_hash: &hash };
            sign::sign(
                &mut headers,
                &target,
                keys,
                &self.endpoint.region,
                OffsetDateTime::now_utc(),
            );
        }
        if length > 0 || method == Method::PUT || method == Method::POST {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        let mut url = self.base.clone();
        url.set_path(&encode::sent_path(bucket, key));
        url.set_query(Some(&*query).filter(|query| !query.is_empty()));
        let time = REQUEST_TIMEOUT + Duration::from_secs(length / RATE_MIN);
        let sent = self.http.request(method.clone(), url).headers(headers).body(body);
        // The limit of a GET must not include the time for the body of the response.
        let sent = if method == Method::GET { sent } else { sent.timeout(time) };
        let Ok(response) = tokio::time::timeout(time, sent.send()).await else {
            return Err(self.silent(request));
        };
        let response = response.map_err(|error| self.unconnected(request, error))?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.rejected(request, response).await),
        }
    }

    /// Reads the body of a response of at most `bytes_max`.
    pub(crate) async fn body(
        &self,
        request: &Request<'_>,
        mut response: Response,
        bytes_max: usize,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece(request, &mut response).await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > bytes_max {
                let why = format!("its body has more than {bytes_max} bytes");
                return Err(Error::Response { request: self.describe(request), why });
            }
        }
        Ok(bytes)
    }

    /// Reads the next piece of a body. A server that sends nothing for a minute is an error.
    async fn piece(&self, request: &Request<'_>, response: &mut Response) -> Result<Option<Bytes>> {
        match tokio::time::timeout(REQUEST_TIMEOUT, response.chunk()).await {
            Ok(piece) => piece.map_err(|error| self.unconnected(request, error)),
            Err(_elapsed) => Err(self.silent(request)),
        }
    }

    fn silent(&self, request: &Request<'_>) -> Error {
        let source = "the server sends nothing".into();
        Error::Connection { request: self.describe(request), source }
    }

    fn unconnected(&self, request: &Request<'_>, error: reqwest::Error) -> Error {
        // The URL is named by the request.
        let source = Box::new(error.without_url());
        Error::Connection { request: self.describe(request), source }
    }

    async fn rejected(&self, request: &Request<'_>, response: Response) -> Error {
        let status = response.status().as_u16();
        let body = self.body(request, response, DOCUMENT_BYTES_MAX).await.unwrap_or_default();
        let document = Element::parse(&body).unwrap_or_default();
        let text = |name: &str| document.text(&[name]).to_owned();
        let (code, message) = (text("Code"), text("Message"));
        Error::Rejected { request: self.describe(request), status, code, message }
    }
}

/// Returns the URL of a server, and its header `Host`.
fn parse(text: &str) -> Result<(Url, String)> {
    let invalid = |why: &str| Error::Url { url: text.to_owned(), why: why.to_owned() };
    let base = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(invalid("use http:// or https://"));
    }
    if !matches!(base.path(), "" | "/") || base.query().is_some() {
        return Err(invalid("name the server without a bucket or path"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(invalid("keys are in a file or in environment variables, not in the URL"));
    }
    let host = base.host_str().ok_or_else(|| invalid("it has no host"))?;
    let host = match base.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Ok((base, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_server() {
        let host = |url: &str| parse(url).ok().map(|(_, host)| host);
        assert_eq!(host("http://127.0.0.1:9000").as_deref(), Some("127.0.0.1:9000"));
        assert_eq!(host("https://s3.example.com/").as_deref(), Some("s3.example.com"));
        assert_eq!(host("http://[::1]:80").as_deref(), Some("[::1]"));
        for url in ["", "s3://b", "http://a/bucket", "http://u:p@a", "127.0.0.1:9000"] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
