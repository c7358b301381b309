//! Website requests: anonymous reads of objects as web pages, at an address of their own.
//!
//! A read passes through the same pipeline as an S3 request for the object. What makes S3 requests
//! more than reads, a query and most header fields, is removed from the head first.

use std::sync::Arc;
use std::time::Instant;

use haul_http_engine::RequestBody;
use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, LAST_MODIFIED, LOCATION,
};
use http::{Method, StatusCode};

use crate::access::authorize::Principal;
use crate::access::facts::Connection;
use crate::answer::Answer;
use crate::auth::payload::Payload;
use crate::auth::verify::{Verified, verify};
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::front::Front;
use crate::front::accounts::Accounts;
use crate::front::cors;
use crate::front::pipeline::Received;
use crate::front::respond::{Outcome, add_error_headers};
use crate::front::visit::Visit;
use crate::memory::PeerMemory;
use crate::request::head::{Head, SELECTING_FIELDS};
use crate::request::operation::Operation;
use crate::settings::parsed;
use crate::settings::website::routing::{Step, Visited, directory, next_step};
use crate::stored::attributes::REDIRECT;

/// The client of a website, for which further objects are read.
struct Visitor<'a> {
    front: &'a Front,
    head: &'a Arc<Head>,
    principal: Principal,
    connection: Connection,
    memory: PeerMemory,
}

impl Front {
    /// Parses the head of a website request, and finds the object that it reads. Does no I/O.
    pub(crate) fn receive_visit(
        &self,
        head: Head,
        connection: Connection,
        memory: PeerMemory,
    ) -> Received {
        let started = Instant::now();
        let mut head = head.into_visit(&self.website_domains);
        let (visit, verified) = match head.method {
            // Preflight requests need CORS rules only, and no website.
            Method::OPTIONS => (None, Ok(Verified::anonymous())),
            _ => match self.find_website(&mut head, connection) {
                Ok(visit) => (Some(Box::new(visit)), verify(&self.haul.keys, &mut head)),
                Err(error) => (None, Err(error)),
            },
        };
        let operation = match head.method {
            Method::GET => Some(Operation::GetObject),
            Method::HEAD => Some(Operation::HeadObject),
            _ => None,
        };
        let received = Received::new(started, head, connection, memory, operation, verified);
        Received { visit, ..received }
    }

    /// Returns the request's website. If the website does not redirect the request, the name in the
    /// head becomes that of the object to send.
    fn find_website(&self, head: &mut Head, connection: Connection) -> S3Result<Visit> {
        if !head.is_read() {
            let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
            let message = "A website only has the methods GET, HEAD and OPTIONS";
            return Err(refuse(S3ErrorCode::MethodNotAllowed, message)
                .with_headers(HeaderMap::from_iter([(ALLOW, allowed)])));
        }
        if head.path.is_none() {
            let message = "The path of the request cannot be decoded";
            return Err(refuse(S3ErrorCode::InvalidURI, message));
        }
        let bucket = &head.name.bucket;
        if bucket.is_empty() {
            return Err(refuse(
                S3ErrorCode::NoSuchBucket,
                "The host of the request names no bucket",
            ));
        }
        let settings = match self.haul.store().bucket_settings(bucket) {
            Ok(settings) => settings,
            Err(error) => {
                let error = from_store(error);
                return Err(self.domain_redirect(head, connection, &error).unwrap_or(error));
            }
        };
        let website = parsed::website(&settings, bucket).map_err(|reason| {
            let message = format!("The website of {bucket} cannot be shown: {reason}");
            refuse(S3ErrorCode::InternalError, message)
        })?;
        let Some(website) = website else {
            let message = "The bucket has no website configuration";
            return Err(refuse(S3ErrorCode::NoSuchWebsiteConfiguration, message)
                .with_field("BucketName", bucket.as_str()));
        };
        let first = next_step(&website, &visited(head, connection), None);
        if let Step::Object(key) = &first {
            head.name.key.clone_from(key);
        }
        Ok(Visit { website, first })
    }

    /// Returns a redirect to the domain, if the request's host has several labels below the domain
    /// and is no bucket's. A name with one label is that of a bucket, which may be missing.
    fn domain_redirect(
        &self,
        head: &Head,
        connection: Connection,
        error: &S3Error,
    ) -> Option<S3Error> {
        let (bucket, host) = (&head.name.bucket, head.host.as_deref()?);
        let is_below = self.website_domains.bucket_of(host).is_some();
        if !is_below || !bucket.contains('.') || error.code() != S3ErrorCode::NoSuchBucket {
            return None;
        }
        let domain = host.get(bucket.len() + 1..)?;
        let location = format!("{}://{domain}/", scheme(connection));
        let location = HeaderValue::try_from(location).ok()?;
        let message = "The host of the request names no bucket";
        Some(
            refuse(S3ErrorCode::WebsiteRedirect, message)
                .with_headers(HeaderMap::from_iter([(LOCATION, location)])),
        )
    }

    /// Executes a website request.
    pub(super) async fn visit(
        &self,
        mut received: Received,
        body: RequestBody,
        accounts: &mut Accounts,
        id: &str,
    ) -> Outcome {
        let head = &Arc::clone(&received.head);
        if head.method == Method::OPTIONS {
            return Outcome::new(cors::preflight(&self.haul, head), head, id);
        }
        let visit = received.visit.take();
        if let Some(Step::Redirect(status, location)) = visit.as_ref().map(|visit| &visit.first) {
            return Outcome::success(redirect(*status, location));
        }
        let connection = received.connection;
        let visitor = received.verified.as_ref().ok().map(|verified| Visitor {
            front: self,
            head,
            principal: verified.principal.clone(),
            connection,
            memory: received.memory.clone(),
        });
        let error = match self.perform(received, Some(body), accounts).await {
            Ok(answer) => return Outcome::success(follow_object(answer)),
            Err(error) => error,
        };
        let (Some(visit), Some(visitor)) = (visit, visitor) else {
            return Outcome::new(Err(error), head, id);
        };
        let status = error.code().status();
        // A redirect applies regardless of conditions and ranges, which are about the object's bytes.
        if matches!(
            status,
            StatusCode::NOT_MODIFIED
                | StatusCode::PRECONDITION_FAILED
                | StatusCode::RANGE_NOT_SATISFIABLE
        ) && let Ok(object) = visitor.read(head.name.key.clone(), Method::HEAD, accounts).await
            && object.headers.contains_key(REDIRECT)
        {
            return Outcome::success(follow_object(object));
        }
        if matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN)
            && let Some((key, location)) = directory(&visit.website, &visited(head, connection))
            && visitor.read(key, Method::HEAD, accounts).await.is_ok()
        {
            return Outcome::success(redirect(StatusCode::FOUND, &location));
        }
        if !status.is_client_error() && !status.is_server_error() {
            // The client's copy is current.
            return Outcome::new(Err(error), head, id);
        }
        match next_step(&visit.website, &visited(head, connection), Some(status)) {
            Step::Redirect(status, location) => Outcome::success(redirect(status, &location)),
            Step::ErrorDocument(key) => {
                match visitor.read(key, head.method.clone(), accounts).await {
                    Ok(document) => {
                        let answer = error_document(document, &error);
                        Outcome { answer, error: Some(error) }
                    }
                    // As in S3, the client learns the first error only.
                    Err(_) => Outcome::new(Err(error), head, id),
                }
            }
            Step::Object(_) | Step::ErrorPage => Outcome::new(Err(error), head, id),
        }
    }
}

impl Visitor<'_> {
    /// Reads another whole object of the website, if the client may read it.
    async fn read(&self, key: String, method: Method, accounts: &mut Accounts) -> S3Result<Answer> {
        let mut head = Head::clone(self.head);
        head.fields.retain(|name| !SELECTING_FIELDS.contains(&name));
        head.name.key = key;
        let operation = match method {
            Method::HEAD => Operation::HeadObject,
            _ => Operation::GetObject,
        };
        head.method = method;
        let payload = Payload::Plain { sha256: None };
        let received = Received {
            started: Instant::now(),
            head: Arc::new(head),
            connection: self.connection,
            memory: self.memory.clone(),
            operation: Some(operation),
            verified: Ok(Verified { principal: self.principal.clone(), payload }),
            allowed: None,
            missed: None,
            visit: None,
        };
        self.front.perform(received, None, accounts).await
    }
}

/// Returns the parts of the URL in a head.
fn visited(head: &Head, connection: Connection) -> Visited<'_> {
    let path = head.path.as_deref().unwrap_or_default();
    Visited {
        scheme: scheme(connection),
        host: head.host.as_deref().unwrap_or_default(),
        path: head.raw_path(),
        key: path.strip_prefix('/').unwrap_or(path),
        query: head.target.split_once('?').map(|(_, query)| query),
    }
}

fn scheme(connection: Connection) -> &'static str {
    if connection.is_encrypted { "https" } else { "http" }
}

fn redirect(status: StatusCode, location: &str) -> Answer {
    Answer::empty(status).with(LOCATION.as_str(), location)
}

/// Returns the redirect in place of an object that has one.
fn follow_object(answer: Answer) -> Answer {
    let Some(location) = answer.headers.get(REDIRECT).cloned() else { return answer };
    let mut redirect = Answer::empty(StatusCode::MOVED_PERMANENTLY);
    if let Some(lifetime) = answer.headers.get(CACHE_CONTROL) {
        redirect.headers.insert(CACHE_CONTROL, lifetime.clone());
    }
    redirect.headers.insert(LOCATION, location);
    redirect
}

/// Returns the response with an error document.
fn error_document(document: Answer, error: &S3Error) -> Answer {
    let mut answer = Answer { status: error.code().status(), ..document };
    // They would describe the requested object, which was not sent.
    for name in [ACCEPT_RANGES, ETAG, LAST_MODIFIED] {
        answer.headers.remove(name);
    }
    answer.headers.remove(REDIRECT);
    add_error_headers(&mut answer.headers, error);
    answer
}
