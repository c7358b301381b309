//! Websites of buckets: their configuration, their pages, and requests that are more than reads.

mod configuration;
mod hostile;
mod pages;
mod redirects;

use haul_s3_server::Credentials;

use crate::client::{Client, Header, Reply, Running, assert_refused};
use crate::signing::{Signer, hash};

/// The website's host.
const HOST: Header<'static> = ("host", "bucket.localhost:80");

const INDEX: &str = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>";
const ERROR: &str = "<ErrorDocument><Key>error.html</Key></ErrorDocument>";

/// A server with an administrator, whose bucket `bucket` has a website at [`HOST`].
struct Site {
    server: Running,
}

impl Site {
    /// Starts a server without a website.
    fn bare() -> Self {
        let credentials =
            Credentials { access_key: "root".into(), secret_key: "root-secret".into() };
        Self { server: Running::with_websites(&["localhost"], Some(credentials)) }
    }

    /// Starts a server with this website, whose objects everybody may read.
    fn new(configuration: &str) -> Self {
        let site = Self::bare();
        site.configure("bucket", configuration);
        site.allow_reads("bucket");
        for (key, text) in [
            ("index.html", "home"),
            ("error.html", "sorry"),
            ("docs/index.html", "docs"),
            ("docs/page.html", "page"),
            ("a%20b%25.txt", "encoded"),
        ] {
            site.put(&format!("/bucket/{key}"), text);
        }
        site
    }

    fn client(&self) -> Client {
        self.server.website.unwrap()
    }

    /// Sends a signed request to the S3 address.
    fn root(&self, method: &str, target: &str, more: &[Header], body: &[u8]) -> Reply {
        let (access_key, secret_key) = ("root", "root-secret");
        let signer = Signer { client: self.server.s3, access_key, secret_key };
        signer.send_with(method, target, &hash(body), more, |_| body.to_vec())
    }

    #[track_caller]
    fn put(&self, target: &str, body: &str) {
        assert_refused(&self.root("PUT", target, &[], body.as_bytes()), 200, "");
    }

    #[track_caller]
    fn configure(&self, bucket: &str, content: &str) {
        let document = format!("<WebsiteConfiguration>{content}</WebsiteConfiguration>");
        self.put(&format!("/{bucket}?website="), &document);
    }

    #[track_caller]
    fn allow_reads(&self, bucket: &str) {
        let policy = format!(
            r#"{{"Statement":{{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
            "Resource":"arn:aws:s3:::{bucket}/*"}}}}"#
        );
        let put = self.root("PUT", &format!("/{bucket}?policy="), &[], policy.as_bytes());
        assert_refused(&put, 204, "");
    }

    /// Sends an anonymous request to the website.
    fn send(&self, method: &str, target: &str, more: &[Header]) -> Reply {
        self.client().send(method, target, &[&[HOST], more].concat(), b"")
    }

    fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[])
    }

    /// Sends an anonymous GET to another host.
    fn get_at(&self, host: &str, target: &str) -> Reply {
        self.client().send("GET", target, &[("host", host)], b"")
    }
}

/// Fails unless the response is this error, as an HTML page.
#[track_caller]
fn assert_page(reply: &Reply, status: u16, code: &str) {
    let text = reply.text();
    assert_eq!((reply.status, reply.header("x-amz-error-code")), (status, Some(code)), "{text}");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{text}");
    let id = reply.header("x-amz-request-id").unwrap();
    for part in ["<!DOCTYPE html>", &format!("<li>Code: {code}</li>"), &format!("Id: {id}</li>")] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Fails unless the response redirects to this location, without a body.
#[track_caller]
fn assert_redirect(reply: &Reply, status: u16, location: &str) {
    assert_eq!((reply.status, reply.header("location")), (status, Some(location)));
    assert_eq!(reply.text(), "");
}
