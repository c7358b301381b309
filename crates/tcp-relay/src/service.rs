//! Accepts, drives and closes the sessions of one relay thread, as the service of its reactor.

use std::sync::Arc;
use std::time::Instant;

use haul_http_engine::ThreadLog;
use haul_http1::CONNECTION_REFUSED;
use haul_reactor::{AcceptInfo, Connection, Context, Event, Next, Service, Socket, SocketKind};
use haul_tls::Transport;

use crate::end_reason::EndReason;
use crate::http::{HttpContext, HttpSession, IdlePool, LogContext, log_refusal};
use crate::proxy::Trusted;
use crate::stream_session::{Shared, StreamSession};
use crate::thread_context::ThreadContext;

/// The state of one relay thread.
#[derive(Debug)]
pub(crate) struct RelayService {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: ThreadContext,
    pub(crate) proxy_in: Option<Trusted>,
    pub(crate) idle_pool: IdlePool,
    /// The access log of HTTP requests.
    pub(crate) log: Option<ThreadLog>,
}

/// A client's session, with or without HTTP.
#[derive(Debug)]
pub(crate) enum Session {
    /// Relays bytes without parsing them.
    Stream(Box<StreamSession>),
    /// Relays HTTP messages.
    Http(Box<HttpSession>),
}

impl Service for RelayService {
    type Connection = Session;
    type Message = ();

    fn on_accept(
        &mut self,
        socket: Socket,
        from: AcceptInfo,
        reactor: &mut Context<'_, ()>,
    ) -> Option<Session> {
        self.thread.counters.accepted.add(1);
        let peer = from.peer.map(|peer| peer.ip());
        if self.proxy_in.as_ref().is_some_and(|trusted| !trusted.allows(peer)) {
            self.thread.counters.ended(EndReason::BadProxy);
            socket.reset();
            return None;
        }
        let client = match &self.shared.tls {
            None => Transport::from(socket),
            Some(acceptor) => acceptor.accept(socket).ok()?,
        };
        let expects_header = self.proxy_in.is_some();
        let (shared, thread, now) = (&self.shared, &self.thread, reactor.now());
        Some(match shared.http {
            None => {
                let session = StreamSession::new(client, expects_header, shared, now);
                Session::Stream(Box::new(session))
            }
            Some(_) => {
                let session = HttpSession::new(client, expects_header, shared, thread, now);
                Session::Http(Box::new(session))
            }
        })
    }

    fn drive(
        &mut self,
        connection: &mut Session,
        _why: Event<()>,
        reactor: &mut Context<'_, ()>,
    ) -> Next {
        match (connection, &self.shared.http) {
            (Session::Stream(session), _) => {
                session.advance(&self.shared, &mut self.thread, reactor)
            }
            (Session::Http(session), Some(options)) => {
                let mut context = HttpContext {
                    shared: &self.shared,
                    options,
                    thread: &mut self.thread,
                    idle_pool: &mut self.idle_pool,
                    log: &mut self.log,
                    reactor,
                };
                session.advance(&mut context)
            }
            (Session::Http(_), None) => Next::Close,
        }
    }

    fn is_waiting(&self, connection: &Session) -> bool {
        match connection {
            Session::Stream(session) => session.is_waiting(),
            Session::Http(session) => session.is_waiting(),
        }
    }

    fn on_evict(&mut self, connection: &mut Session) {
        match connection {
            Session::Stream(session) => session.evict(),
            Session::Http(session) => session.evict(),
        }
    }

    fn on_refuse(&mut self, socket: Socket, from: AcceptInfo) {
        match (&self.shared.http, &self.shared.tls) {
            (Some(_), None) => {
                let sent_bytes = socket.close_with(CONNECTION_REFUSED);
                let client = from.peer.map(|peer| peer.ip());
                let now = Instant::now();
                log_refusal(&mut self.log, client, CONNECTION_REFUSED, sent_bytes, now);
            }
            _ => socket.reset(),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.idle_pool.due()
    }

    fn on_deadline(&mut self, now: Instant) {
        self.idle_pool.sweep(now);
    }

    fn on_close(&mut self, connection: Session) {
        let recent = self.shared.recent.as_deref();
        let log = LogContext { log: &mut self.log, recent, targets: &self.shared.targets };
        self.thread.counters.ended(match connection {
            Session::Stream(session) => session.close(),
            Session::Http(session) => session.close(&mut self.idle_pool, log),
        });
    }
}

impl Connection for Session {
    fn socket(&mut self, side: SocketKind) -> Option<&mut Socket> {
        match self {
            Self::Stream(session) => session.socket(side),
            Self::Http(session) => session.socket(side),
        }
    }
}
