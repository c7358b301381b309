//! A request's path: head, verify, bucket, authorize, operation, respond, account.
//!
//! 1. `receive` parses the head and verifies the signature. It does no I/O, because the
//!    connection's thread calls it.
//! 2. `respond` does the rest. `inline` may have responded before, from memory.

use std::sync::Arc;
use std::time::Instant;

use haul_file_store::ObjectLocation;
use haul_http_engine::{BoxError, RequestBody, RequestIdentity};
use http::{Method, Response};
use tracing::Instrument;

use crate::access::authorize::Principal;
use crate::access::bucket_policy::policy_compares_tags;
use crate::access::check::{Allowed, Asked, authorize};
use crate::access::facts::Connection;
use crate::answer::Answer;
use crate::auth::claimed::claimed_key;
use crate::auth::payload::Payload;
use crate::auth::verify::{Verified, check_form, verify};
use crate::body::Body;
use crate::body::aws_chunked::{DecodedBody, Signatures};
use crate::body::receive::Receiver;
use crate::bucket_logs::logged::LoggedRequest;
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::front::Front;
use crate::front::accounts::Accounts;
use crate::front::cors::{self, PageRequest};
use crate::front::forms::upload::Upload;
use crate::front::health;
use crate::front::origin::check_origin;
use crate::front::respond::Outcome;
use crate::front::response::Counted;
use crate::front::visit::Visit;
use crate::memory::PeerMemory;
use crate::operations;
use crate::request::head::Head;
use crate::request::name::is_bucket_name;
use crate::request::operation::Operation;
use crate::request::trailer::Trailer;
use crate::service::request::Request;
use crate::sts;

/// A request whose head was received.
pub(crate) struct Received {
    pub(super) started: Instant,
    pub(super) head: Arc<Head>,
    pub(super) connection: Connection,
    pub(super) memory: PeerMemory,
    /// `None` if the server does not support the request's operation.
    pub(super) operation: Option<Operation>,
    /// The client, or the reason to reject the request.
    pub(super) verified: S3Result<Verified>,
    /// The decision about the request, if it was already made.
    pub(super) allowed: Option<Allowed>,
    /// The location of the object that the request reads, if the object is not in memory.
    pub(super) missed: Option<ObjectLocation>,
    /// The website that the request visits; `None` for S3 requests, and for a host without one.
    pub(super) visit: Option<Box<Visit>>,
}

impl Received {
    /// Returns a request about which nothing else is known yet.
    pub(super) fn new(
        started: Instant,
        head: Head,
        connection: Connection,
        memory: PeerMemory,
        operation: Option<Operation>,
        verified: S3Result<Verified>,
    ) -> Self {
        let (head, allowed, missed, visit) = (Arc::new(head), None, None, None);
        Self { started, head, connection, memory, operation, verified, allowed, missed, visit }
    }
}

impl Front {
    /// Parses a request's head, and verifies its signature.
    pub(crate) fn receive(
        &self,
        mut head: Head,
        connection: Connection,
        memory: PeerMemory,
    ) -> Received {
        let started = Instant::now();
        let verified = match head.method {
            // A preflight request, which a browser sends without a signature.
            Method::OPTIONS => Ok(Verified::anonymous()),
            // The signature covers the body, which has not arrived yet.
            _ if head.is_for_sts() => self.check(&head).map(|()| Verified::anonymous()),
            _ => self.check(&head).and_then(|()| self.verify(&mut head)),
        };
        // A presigned URL may contain headers that select the operation: `head` has them only now.
        let (operation, verified) = match (operation_of(&head), verified) {
            (Err(error), Ok(_)) => (None, Err(error)),
            (operation, verified) => (operation.ok().flatten(), verified),
        };
        Received::new(started, head, connection, memory, operation, verified)
    }

    /// Returns a console request. Its client was authenticated by other means.
    pub(crate) fn receive_verified(
        &self,
        head: Head,
        principal: Principal,
        connection: Connection,
        memory: PeerMemory,
    ) -> Received {
        let payload = Payload::Plain { sha256: None };
        let operation = operation_of(&head);
        let (operation, verified) = match self.check(&head).and(operation) {
            Ok(operation) => (operation, Ok(Verified { principal, payload })),
            Err(error) => (operation_of(&head).ok().flatten(), Err(error)),
        };
        Received::new(Instant::now(), head, connection, memory, operation, verified)
    }

    /// Rejects requests that no client may send.
    fn check(&self, head: &Head) -> S3Result<()> {
        // A temporary key changes nothing in the store.
        if self.is_read_only && !head.is_read() && !head.is_for_sts() {
            let message = "This server is read-only: send changes to the server of the store";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
        check_names(head)
    }

    /// Verifies the signature of a request.
    fn verify(&self, head: &mut Head) -> S3Result<Verified> {
        if self.haul.keys.is_empty() {
            let is_allowed = PageRequest::of(head)
                .is_some_and(|page| cors::allow_page(&self.haul, &page).is_some());
            check_origin(head, is_allowed)?;
        }
        if head.is_form() && operation_of(head).ok().flatten() == Some(Operation::PostObject) {
            // The form has the signature.
            return Ok(Verified::anonymous());
        }
        verify(&self.haul.keys, head)
    }

    /// Executes a request, and returns its response. An error closes the connection.
    pub(crate) async fn respond(
        &self,
        received: Received,
        body: RequestBody,
    ) -> Result<Response<Counted>, BoxError> {
        let id = self.ids.next();
        let user = match &received.verified {
            Ok(verified) => verified.principal.access_key(),
            Err(_) => None,
        };
        let user = user.or_else(|| claimed_key(&self.haul.keys, &received.head));
        let identity = RequestIdentity { id, user };
        let head = Arc::clone(&received.head);
        let mut accounts = self.begin_accounts(&received, identity);
        let arrival = body.arrival();
        let page = PageRequest::of(&head);
        let page = page.as_ref().and_then(|page| cors::allow_page(&self.haul, page));
        let id = str::from_utf8(&id).unwrap_or_default();
        let execution = async {
            match head.is_website {
                // Boxed, so that the futures of S3 requests stay small.
                true => Box::pin(self.visit(received, body, &mut accounts, id)).await,
                false => {
                    Outcome::new(self.execute(received, body, &mut accounts, id).await, &head, id)
                }
            }
        };
        // The span gives log lines about failures the identifier, too. It costs a thirtieth of a
        // PUT.
        let outcome = execution.instrument(tracing::debug_span!("request", id)).await;
        accounts.end(&head, outcome, page.as_ref(), &arrival)
    }

    fn begin_accounts(&self, received: &Received, identity: RequestIdentity) -> Accounts {
        let Received { started, head, connection, operation, .. } = received;
        let audit = self.audit.as_ref();
        // A website request changes nothing, whatever its method.
        let audit = audit.filter(|_| !head.is_website);
        let audited = audit.and_then(|log| log.begin(head, *operation, &identity, connection.peer));
        let logged = (!self.is_read_only).then(|| {
            let store = self.haul.store();
            LoggedRequest::begin(
                &self.logs, &store, head, *operation, &identity, connection, *started,
            )
        });
        let metrics = &self.haul.metrics;
        Accounts::begin(metrics, head, *operation, *started, identity, audited, logged.flatten())
    }

    /// Executes an S3 request.
    async fn execute(
        &self,
        received: Received,
        body: RequestBody,
        accounts: &mut Accounts,
        id: &str,
    ) -> S3Result<Answer> {
        let head = &received.head;
        if head.method == Method::OPTIONS {
            return cors::preflight(&self.haul, head);
        }
        if let Some(answer) = health::answer(&self.haul.store(), head) {
            return Ok(answer);
        }
        if head.is_for_sts() {
            received.verified?;
            let temporary = sts::answer::answer(&self.haul, head, body, accounts.changes(), id);
            return Box::pin(temporary).await;
        }
        if received.operation == Some(Operation::PostObject) {
            let Received { head, connection, memory, verified, .. } = received;
            verified?;
            return self.store_form(&head, body, connection, memory, accounts).await;
        }
        self.perform(received, Some(body), accounts).await
    }

    /// Authorizes a request, and executes its operation.
    pub(super) async fn perform(
        &self,
        received: Received,
        body: Option<RequestBody>,
        accounts: &mut Accounts,
    ) -> S3Result<Answer> {
        let Received { head, connection, memory, operation, verified, allowed, missed, .. } =
            received;
        let Verified { principal, payload } = verified?;
        let requester = accounts.requester(&principal, &connection);
        let Some(operation) = operation else { return Err(no_operation()) };
        accounts.note_client(&principal);
        let allowed = match allowed {
            Some(allowed) => allowed,
            None => {
                let asked = Asked { principal, operation, head: &head, connection };
                authorize(&self.haul.shared_store(), asked).await?
            }
        };
        accounts.note_basis(allowed.caller().basis());
        let (body, sha256, trailer) = match body {
            Some(body) => body_of(payload, body),
            None => (Body::empty(), None, None),
        };
        let request = Request {
            head,
            operation,
            allowed,
            memory: Some(memory),
            changes: accounts.changes(),
            sha256,
            trailer,
            is_encrypted: connection.is_encrypted,
            missed,
            requester,
            is_form: false,
        };
        let outcome = self.operate(&request, body).await;
        outcome.map_err(|error| self.without_hidden_names(error, &request))
    }

    async fn operate(&self, request: &Request, body: Body) -> S3Result<Answer> {
        let body = match request.operation.reads_body() {
            true => body,
            false => Receiver::unread(&self.haul, request, body).await?,
        };
        operations::execute(&self.haul, request, body).await
    }

    /// Stores the file in a form as PutObject does.
    async fn store_form(
        &self,
        head: &Arc<Head>,
        body: RequestBody,
        connection: Connection,
        memory: PeerMemory,
        accounts: &mut Accounts,
    ) -> S3Result<Answer> {
        check_form(&self.haul.keys, head)?;
        let changes = accounts.changes();
        let is_encrypted = connection.is_encrypted;
        let upload =
            Upload::receive(&self.haul, head, body, changes.as_ref(), is_encrypted).await?;
        let Upload { head, principal, body, answer } = upload;
        let (head, operation) = (Arc::new(head), Operation::PutObject);
        accounts.note_client(&principal);
        let requester = accounts.requester(&principal, &connection);
        let asked = Asked { principal, operation, head: &head, connection };
        let allowed = authorize(&self.haul.shared_store(), asked).await?;
        accounts.note_basis(allowed.caller().basis());
        let request = Request {
            head,
            operation,
            allowed,
            memory: Some(memory),
            changes,
            sha256: None,
            trailer: None,
            is_encrypted,
            missed: None,
            requester,
            is_form: true,
        };
        let stored = operations::execute(&self.haul, &request, body).await;
        answer.apply(stored.map_err(|error| self.without_hidden_names(error, &request))?)
    }

    /// Returns an operation's error, or `AccessDenied` if the error would disclose to the client
    /// that an object is missing, and the client may not know this.
    fn without_hidden_names(&self, error: S3Error, request: &Request) -> S3Error {
        let is_head = request.head.method == Method::HEAD;
        let reveals = error.code() == S3ErrorCode::NoSuchKey
            || is_head && error.code().status() == http::StatusCode::NOT_FOUND;
        if !reveals || !request.hides_missing(&self.haul.store()) {
            return error;
        }
        // A client that may read every key with the name learns nothing from the error, and a
        // website needs its status. With tags in the policy, the right depends on the object.
        let bucket = &request.name().bucket;
        if request.head.is_website && !policy_compares_tags(&self.haul.store(), bucket) {
            return error;
        }
        let message = "Access denied: the object is missing, which only clients with the right list \
                       may learn, or the right is missing";
        refuse(S3ErrorCode::AccessDenied, message)
    }
}

/// Returns the operation that a request asks for; `None` for a preflight request, and for one to
/// STS.
fn operation_of(head: &Head) -> S3Result<Option<Operation>> {
    match head.method {
        Method::OPTIONS => Ok(None),
        _ if head.is_for_sts() => Ok(None),
        _ => Operation::from_request(head).map(Some),
    }
}

/// Rejects a path that cannot be decoded, and an invalid bucket name.
fn check_names(head: &Head) -> S3Result<()> {
    if head.path.is_none() {
        return Err(refuse(S3ErrorCode::InvalidURI, "The path of the request cannot be decoded"));
    }
    let bucket = &head.name.bucket;
    if bucket.is_empty() && !head.name.key.is_empty()
        || !bucket.is_empty() && !is_bucket_name(bucket)
    {
        let message = "A bucket name has 3 to 63 lowercase letters, digits, dots and hyphens";
        return Err(refuse(S3ErrorCode::InvalidBucketName, message));
    }
    Ok(())
}

fn no_operation() -> S3Error {
    refuse(S3ErrorCode::NotImplemented, "This server has no such operation")
}

/// Returns the request body without its framing, the body's signed hash, and its trailer.
fn body_of(payload: Payload, body: RequestBody) -> (Body, Option<[u8; 32]>, Option<Trailer>) {
    let signatures = match payload {
        Payload::Plain { sha256 } => return (Body::Plain(body), sha256, None),
        Payload::Chunks | Payload::SignedChunks { verifier: None, .. } => Signatures::Unverified,
        Payload::SignedChunks { has_trailer, verifier: Some(verifier) } => {
            Signatures::Of { verifier, with_trailer: has_trailer }
        }
    };
    let trailer = Trailer::default();
    let decoded = DecodedBody::new(body, signatures, trailer.clone());
    (Body::Chunks(Box::new(decoded)), None, Some(trailer))
}
