//! Runs a session that relays bytes without parsing them.
//!
//! If one side is reset or fails in any other way, the session resets the other side: a truncated
//! stream never looks complete.

use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use haul_admin_endpoint::RecentRequests;
use haul_reactor::{Connection, Context, Next, RateLimit, Socket, SocketKind, TcpOptions};
use haul_tls::{Acceptor, Transport};

use crate::config::Limits;
use crate::connect::{Connector, Progress};
use crate::duplex::Duplex;
use crate::end_reason::EndReason;
use crate::flow::{Direction, Flow, Stream};
use crate::http_options::HttpOptions;
use crate::preamble::{Preamble, PreambleState};
use crate::proxy::{self, Endpoints, Version};
use crate::target::{ActiveTarget, Targets};
use crate::thread_context::ThreadContext;

/// State shared by all connections of a relay.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) targets: Arc<Targets>,
    pub(crate) limits: Limits,
    pub(crate) tcp: TcpOptions,
    pub(crate) proxy_out: Option<Version>,
    pub(crate) tls: Option<Acceptor>,
    /// The limit of HTTP requests of each client.
    pub(crate) peer_rate: Option<RateLimit>,
    pub(crate) http: Option<HttpOptions>,
    /// The recent HTTP requests with errors, and the slow ones; `None` without HTTP.
    pub(crate) recent: Option<Arc<RecentRequests>>,
}

/// A client's connection and the connection to a target, between which bytes are relayed.
#[derive(Debug)]
pub(crate) struct StreamSession {
    client: Transport,
    upstream: Option<Socket>,
    stage: Stage,
    end_reason: Option<EndReason>,
}

#[derive(Debug)]
enum Stage {
    /// The client's addresses are not known yet.
    Preamble(Preamble),
    /// Connecting to a target; the vector holds the bytes to send first.
    Connecting(Connector, Vec<u8>),
    Relaying {
        duplex: Duplex,
        _target: ActiveTarget,
    },
}

/// The result of one step: the next event to wait for, `None` to continue with the next stage, or
/// the reason why the session ends.
type Step = Result<Option<Next>, EndReason>;

impl StreamSession {
    /// Creates the session of a newly accepted connection.
    pub(crate) fn new(
        client: Transport,
        expects_header: bool,
        shared: &Shared,
        now: Instant,
    ) -> Self {
        let preamble = Preamble::new(expects_header, &shared.limits, now);
        Self { client, upstream: None, stage: Stage::Preamble(preamble), end_reason: None }
    }

    /// Advances the session as far as possible without blocking.
    pub(crate) fn advance<M>(
        &mut self,
        shared: &Shared,
        thread: &mut ThreadContext,
        reactor: &Context<'_, M>,
    ) -> Next {
        // The next write reports an error.
        self.client.flush().unwrap_or_default();
        let reason = loop {
            let step = match &mut self.stage {
                Stage::Preamble(_) => self.read_preamble(shared, thread, reactor),
                Stage::Connecting(..) => self.connect(thread, reactor),
                Stage::Relaying { duplex, .. } => match self.upstream.as_mut() {
                    Some(upstream) => {
                        let sockets: [&mut dyn Stream; 2] = [&mut self.client, upstream];
                        duplex.advance(sockets, &shared.limits, thread, reactor.now()).map(Some)
                    }
                    None => Err(EndReason::Reset),
                },
            };
            match step {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(reason) => break reason,
            }
        };
        self.end_reason = Some(reason);
        Next::Close
    }

    /// Returns `true` if the session waits for the rest of a PROXY header.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Preamble(_))
    }

    /// Ends the session in favor of a new connection of the same client.
    pub(crate) fn evict(&mut self) {
        self.end_reason = Some(EndReason::Evicted);
    }

    /// Closes both sockets; resets them unless both directions ended cleanly.
    pub(crate) fn close(self) -> EndReason {
        let reason = self.end_reason.unwrap_or(EndReason::Drained);
        if reason == EndReason::BadTls {
            // The alert that names the error must reach the client.
            drop(self.client);
        } else if reason != EndReason::Clean {
            self.client.reset();
            self.upstream.map(Socket::reset).unwrap_or_default();
        }
        reason
    }

    fn read_preamble<M>(
        &mut self,
        shared: &Shared,
        thread: &ThreadContext,
        reactor: &Context<'_, M>,
    ) -> Step {
        let Stage::Preamble(preamble) = &mut self.stage else { return Ok(None) };
        match preamble.advance(&mut self.client, reactor.now()) {
            Ok(PreambleState::Waiting(deadline)) => Ok(Some(Next::Wait(Some(deadline)))),
            Ok(PreambleState::Complete { endpoints, early }) => {
                if !early.is_empty() {
                    Flow::new(Direction::Up, thread).count_copied(early.len(), thread);
                }
                self.stage = connecting(&endpoints, &early, shared, reactor.now());
                Ok(None)
            }
            Err(reason) => Err(reason),
        }
    }

    fn connect<M>(&mut self, thread: &ThreadContext, reactor: &Context<'_, M>) -> Step {
        let Stage::Connecting(connector, first) = &mut self.stage else { return Ok(None) };
        match connector.advance(&mut self.upstream, reactor) {
            Progress::Waiting(deadline) => Ok(Some(Next::Wait(Some(deadline)))),
            Progress::NoTarget => Err(EndReason::NoTarget),
            Progress::Connected(target) => {
                let duplex = Duplex::new([take(first), Vec::new()], thread, reactor.now());
                self.stage = Stage::Relaying { duplex, _target: target };
                Ok(None)
            }
        }
    }
}

/// Begins to connect to a target for a client whose addresses and first bytes are known.
fn connecting(endpoints: &Endpoints, early: &[u8], shared: &Shared, now: Instant) -> Stage {
    let header = |version| proxy::encode(version, endpoints);
    let mut first = shared.proxy_out.map_or_else(Vec::new, header);
    first.extend_from_slice(early);
    let attempts = shared.targets.attempts(endpoints.client(), now);
    let connector = Connector::new(attempts, shared.tcp, shared.limits.connect_time_max);
    Stage::Connecting(connector, first)
}

impl Connection for StreamSession {
    fn socket(&mut self, side: SocketKind) -> Option<&mut Socket> {
        match side {
            SocketKind::Accepted => Some(self.client.socket_mut()),
            SocketKind::Connected => self.upstream.as_mut(),
        }
    }
}
