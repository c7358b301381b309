//! Passes the requests of a reactor thread to S3 and to the admin page.

use std::sync::Arc;

use haul_http_engine::{
    BoxError, Handler, Inline, Origin, RequestBody, RequestIdentity, ResponseFuture, ResponseHead,
};
use hyper::{Request, Response};

use crate::access::facts::Connection;
use crate::admin::keys::KeyLog;
use crate::admin::operation::confine;
use crate::admin::{Admin, Answer};
use crate::body::memory::PeerMemory;
use crate::front::Front;
use crate::front::response::Counted;

/// The index of the listener of S3 and plain HTTP.
pub(crate) const S3: usize = 0;

/// The handler of one thread.
pub(crate) struct Requests {
    pub(crate) front: Arc<Front>,
    pub(crate) page: Arc<Admin>,
}

impl Handler for Requests {
    type Body = Counted;
    type Peer = PeerMemory;
    type Connection = ();

    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        origin: &Origin<'_, PeerMemory>,
        _connection: &mut (),
        head: &mut ResponseHead<'_>,
    ) -> Inline<Counted> {
        if origin.listener != S3 || !request.framing.is_empty() {
            return Inline::Deferred;
        }
        self.front.respond_inline(request, origin, head).unwrap_or(Inline::Deferred)
    }

    fn respond_parsed(
        &mut self,
        request: &haul_http1::Request<'_>,
        body: RequestBody,
        origin: &Origin<'_, PeerMemory>,
    ) -> Result<ResponseFuture<Counted>, RequestBody> {
        match origin.listener {
            S3 => self.front.put(request, body, origin),
            _ => Err(body),
        }
    }

    fn respond(
        &mut self,
        mut request: Request<RequestBody>,
        origin: &Origin<'_, PeerMemory>,
    ) -> ResponseFuture<Counted> {
        let (front, peer) = (Arc::clone(&self.front), origin.peer);
        if origin.listener == S3 {
            request.extensions_mut().insert(origin.peer_state.clone());
            let connection = Connection { peer, is_encrypted: front.is_encrypted };
            return Box::pin(async move { front.answer(request, connection).await });
        }
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
            Answer::S3(mut request) => {
                request.extensions_mut().insert(origin.peer_state.clone());
                let is_encrypted = self.page.addresses.admin_has_tls();
                let connection = Connection { peer, is_encrypted };
                Box::pin(async move {
                    let mut response = front.answer(request, connection).await?;
                    confine(response.headers_mut());
                    Ok(response)
                })
            }
        }
    }
}
