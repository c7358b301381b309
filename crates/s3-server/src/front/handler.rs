//! Passes a reactor thread's requests to S3 and to the admin page.

use std::sync::Arc;

use haul_http_engine::{
    BoxError, Handler, Inline, Origin, RequestBody, RequestIdentity, ResponseFuture, ResponseHead,
};
use http::{Request, Response};

use crate::access::facts::Connection;
use crate::admin::keys::KeyLog;
use crate::admin::operation::confine;
use crate::admin::{Admin, Answer};
use crate::front::Front;
use crate::front::pipeline::Received;
use crate::front::response::Counted;
use crate::memory::PeerMemory;
use crate::request::head::Head;

/// The index of the listener for S3 and plain HTTP.
pub(crate) const S3: usize = 0;

/// The index of the listener for websites, if there is one.
const WEBSITES: usize = 1;

/// One thread's handler.
pub(crate) struct Requests {
    pub(crate) front: Arc<Front>,
    pub(crate) page: Arc<Admin>,
    /// `true` if there is a listener for websites, before that of the admin page.
    pub(crate) has_websites: bool,
}

impl Handler for Requests {
    type Body = Counted;
    type Peer = PeerMemory;
    /// The request that was received and has no response yet.
    type Connection = Option<Box<Received>>;

    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        origin: &Origin<'_, PeerMemory>,
        connection: &mut Self::Connection,
        head: &mut ResponseHead<'_>,
    ) -> Inline<Counted> {
        // Left by a request that was not passed to `respond_parsed`.
        *connection = None;
        let is_website = self.has_websites && origin.listener == WEBSITES;
        if origin.listener != S3 && !is_website {
            return Inline::Deferred;
        }
        let Some(parsed) = Head::new(request, &self.front.domains) else { return Inline::Deferred };
        let (peer, memory) = (origin.peer, origin.peer_state.clone());
        let mut received = match is_website {
            true => {
                let is_encrypted = self.page.addresses.website_has_tls();
                self.front.receive_visit(parsed, Connection { peer, is_encrypted }, memory)
            }
            false => {
                let is_encrypted = self.front.is_encrypted;
                self.front.receive(parsed, Connection { peer, is_encrypted }, memory)
            }
        };
        if request.framing.is_empty()
            && let Some(inline) = self.front.respond_now(&mut received, origin, head)
        {
            return inline;
        }
        *connection = Some(Box::new(received));
        Inline::Deferred
    }

    fn respond_parsed(
        &mut self,
        _request: &haul_http1::Request<'_>,
        body: RequestBody,
        _origin: &Origin<'_, PeerMemory>,
        connection: &mut Self::Connection,
    ) -> Result<ResponseFuture<Counted>, RequestBody> {
        let Some(received) = connection.take() else { return Err(body) };
        let front = Arc::clone(&self.front);
        Ok(Box::pin(async move { front.respond(*received, body).await }))
    }

    /// Responds to an admin request.
    fn respond(
        &mut self,
        request: Request<RequestBody>,
        origin: &Origin<'_, PeerMemory>,
    ) -> ResponseFuture<Counted> {
        let (front, peer) = (Arc::clone(&self.front), origin.peer);
        match self.page.answer(request) {
            Answer::Page(response) => {
                Box::pin(async { Ok::<Response<Counted>, BoxError>(response.map(Counted::page)) })
            }
            Answer::Volumes => {
                let page = Arc::clone(&self.page);
                Box::pin(async move { Ok(page.volumes().await.map(Counted::page)) })
            }
            Answer::Keys(request, caller) => {
                let page = Arc::clone(&self.page);
                let identity = RequestIdentity { id: front.ids.next(), user: caller.access_key() };
                let log = KeyLog { audit: front.audit.clone(), identity, client: peer };
                Box::pin(async move {
                    Ok(page.change_keys(request, caller, log).await.map(Counted::page))
                })
            }
            Answer::LogIn(step, request) => {
                let page = Arc::clone(&self.page);
                let identity = RequestIdentity { id: front.ids.next(), user: None };
                let log = KeyLog { audit: front.audit.clone(), identity, client: peer };
                Box::pin(
                    async move { Ok(page.log_in(step, request, log).await.map(Counted::page)) },
                )
            }
            Answer::S3(request, principal) => {
                let from = Connection { peer, is_encrypted: self.page.addresses.admin_has_tls() };
                let head = Head::from_http(&request, &front.domains);
                let memory = origin.peer_state.clone();
                let received = front.receive_verified(head, principal, from, memory);
                Box::pin(async move {
                    let mut response = front.respond(received, request.into_body()).await?;
                    confine(response.headers_mut());
                    Ok(response)
                })
            }
        }
    }
}
