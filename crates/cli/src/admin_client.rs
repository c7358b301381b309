//! Asks the admin address of a server.

use std::error::Error;
use std::time::Duration;

use haul_s3_server::Credentials;
use reqwest::{Client, Method, StatusCode, Url};

use crate::report::{Exit, Failure, OrFail, Result};

/// The longest response that is read.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The address of a server's admin page, and the path of a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AdminAddress {
    url: Url,
    /// `true` if the URL named HTTP or HTTPS.
    has_scheme: bool,
}

/// How a server is asked.
pub(crate) struct Question {
    pub(crate) method: Method,
    /// The key with which the client logs in.
    pub(crate) credentials: Option<Credentials>,
    pub(crate) timeout: Duration,
    /// `true` to accept any certificate.
    pub(crate) is_insecure: bool,
}

impl AdminAddress {
    /// Parses a URL, which has `path` unless it has another one.
    pub(crate) fn parse(text: &str, path: &str) -> Result<Self> {
        let invalid =
            |why: &str| Failure::new(format!("invalid URL {text}: {why}")).exit(Exit::Usage);
        let has_scheme = text.contains("://");
        let whole = if has_scheme { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&whole).map_err(|error| invalid(&error.to_string()))?;
        // A URL library would take the first name of such a path for the host.
        let has_no_host = whole.contains(":///");
        if has_no_host || !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("use http://HOST:PORT or https://HOST:PORT"));
        }
        if url.path() == "/" {
            url.set_path(path);
        }
        Ok(Self { url, has_scheme })
    }

    /// Returns the status and the text of the response. An address without a scheme is asked by
    /// HTTP, and by HTTPS if its server has TLS.
    ///
    /// # Errors
    /// If there is no response. `cannot` describes the failure.
    pub(crate) fn ask(
        &self,
        question: &Question,
        cannot: &dyn Fn() -> String,
    ) -> Result<(StatusCode, String)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let asked = runtime.or_fail(cannot)?.block_on(self.ask_any(question));
        asked.map_err(|error| Failure::new(format!("{}: {}", cannot(), reason(&error))))
    }

    async fn ask_any(&self, question: &Question) -> reqwest::Result<(StatusCode, String)> {
        let client = self.client(question)?;
        let answer = ask_once(&client, question, self.url.clone()).await?;
        let mut with_tls = self.url.clone();
        // What a server with TLS answers to plain HTTP.
        if answer.0 == StatusCode::BAD_REQUEST
            && !self.has_scheme
            && with_tls.set_scheme("https").is_ok()
        {
            return ask_once(&client, question, with_tls).await;
        }
        Ok(answer)
    }

    fn client(&self, question: &Question) -> reqwest::Result<Client> {
        // Another provider that the process selected stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(question.timeout)
            // Certificates have the name that clients use, not that of this machine.
            .tls_danger_accept_invalid_certs(question.is_insecure || self.is_local())
            .build()
    }

    /// `true` if no other machine can answer.
    fn is_local(&self) -> bool {
        match self.url.host_str() {
            Some("localhost" | "[::1]") => true,
            Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|it| it.is_loopback()),
            None => false,
        }
    }
}

async fn ask_once(
    client: &Client,
    question: &Question,
    url: Url,
) -> reqwest::Result<(StatusCode, String)> {
    let mut request = client.request(question.method.clone(), url).header("x-haul-console", "1");
    if let Some(Credentials { access_key, secret_key }) = &question.credentials {
        request = request.basic_auth(access_key, Some(secret_key));
    }
    let mut response = request.send().await?;
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await? {
        text.extend_from_slice(&piece);
        if text.len() > RESPONSE_BYTES_MAX {
            break;
        }
    }
    Ok((response.status(), String::from_utf8_lossy(&text).into_owned()))
}

/// Returns why a request failed: the innermost cause.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_has_an_address_and_a_path() {
        let parsed = |url: &str| {
            AdminAddress::parse(url, "/health").ok().map(|address| address.url.to_string())
        };
        let expected = |url: &str| Some(url.to_owned());
        assert_eq!(parsed("http://localhost:9001"), expected("http://localhost:9001/health"));
        assert_eq!(parsed("https://[::1]:9001/"), expected("https://[::1]:9001/health"));
        assert_eq!(parsed("haul/ready"), expected("http://haul/ready"));
        for url in ["ftp://a", "http://", "/health", "http://a b", "a:b"] {
            assert_eq!(parsed(url), None, "{url:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for (url, is_local) in [
            ("localhost:1", true),
            ("127.9.0.1", true),
            ("https://[::1]/ready", true),
            ("10.0.0.1", false),
            ("localhost.example.com", false),
        ] {
            assert_eq!(AdminAddress::parse(url, "/health").unwrap().is_local(), is_local, "{url}");
        }
    }
}
