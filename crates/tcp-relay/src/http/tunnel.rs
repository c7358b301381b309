//! Relays bytes in both directions without parsing them, after an upgrade of the connection.

use haul_reactor::Next;

use super::context::HttpContext;
use super::peers::{Peers, SessionEnd};
use crate::duplex::Duplex;
use crate::end_reason::EndReason;
use crate::flow::Stream;

/// The relayed directions of an upgraded session.
#[derive(Debug)]
pub(super) struct Tunnel(Duplex);

impl Tunnel {
    /// Begins a tunnel. The client gets `head`, the head of the 101 response, first; then the bytes
    /// received behind the heads of the request and the response are forwarded.
    pub(super) fn begin<M>(
        mut head: Vec<u8>,
        peers: &mut Peers,
        cx: &HttpContext<'_, '_, M>,
    ) -> Self {
        cx.thread.counters.http.tunnels.add(1);
        peers.down.received.take_into(&mut head, u64::MAX);
        let mut early = Vec::new();
        peers.up.received.take_into(&mut early, u64::MAX);
        Self(Duplex::new([early, head], cx.thread, cx.reactor.now()))
    }

    /// Returns the number of bytes written to the client, the head of the response included.
    pub(super) fn written_bytes(&self) -> u64 {
        self.0.written_bytes()
    }

    /// Relays bytes as far as possible without blocking.
    ///
    /// # Errors
    /// Returns the end of the session once both directions have ended or one side failed.
    pub(super) fn advance<M>(
        &mut self,
        peers: &mut Peers,
        cx: &mut HttpContext<'_, '_, M>,
    ) -> Result<Next, SessionEnd> {
        let Peers { client, upstream: Some(upstream), .. } = peers else {
            return Err(SessionEnd::abort(EndReason::Reset));
        };
        let limits = &cx.shared.limits;
        let sockets: [&mut dyn Stream; 2] = [client, &mut upstream.socket];
        match self.0.advance(sockets, limits, cx.thread, cx.reactor.now()) {
            Ok(next) => Ok(next),
            Err(EndReason::Clean) => Err(SessionEnd::clean(EndReason::Clean)),
            Err(reason) => Err(SessionEnd::abort(reason)),
        }
    }
}
