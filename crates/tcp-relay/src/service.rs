//! What a thread of the relay does with its connections.

use std::sync::Arc;
use std::time::Instant;

use haul_reactor::{Accepted, Connection, Event, Hub, Next, Service, Side, Socket};

use crate::flow::Core;
use crate::http::{Around, HttpRelayed, Spares};
use crate::proxy::Trusted;
use crate::relayed::{Relayed, Shared};
use crate::stats::Ended;

/// One thread's part of the relay.
#[derive(Debug)]
pub(crate) struct Relaying {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: Core,
    pub(crate) proxy_in: Option<Trusted>,
    pub(crate) spares: Spares,
}

/// A connection, in one of the two ways.
#[derive(Debug)]
pub(crate) enum Carried {
    /// Bytes, whatever they mean.
    Bytes(Box<Relayed>),
    /// Messages of HTTP.
    Http(Box<HttpRelayed>),
}

impl Service for Relaying {
    type Connection = Carried;
    type Message = ();

    fn accepted(
        &mut self,
        socket: Socket,
        from: Accepted,
        hub: &mut Hub<'_, ()>,
    ) -> Option<Carried> {
        self.core.counters.accepted.add(1);
        let peer = from.peer.map(|peer| peer.ip());
        if self.proxy_in.as_ref().is_some_and(|trusted| !trusted.has(peer)) {
            self.core.counters.ended(Ended::BadProxy);
            socket.reset();
            return None;
        }
        let is_headed = self.proxy_in.is_some();
        let (shared, core, now) = (&self.shared, &self.core, hub.now());
        Some(match shared.http {
            None => {
                let relayed = Relayed::new(socket, is_headed, shared, now);
                Carried::Bytes(Box::new(relayed))
            }
            Some(_) => {
                let relayed = HttpRelayed::new(socket, is_headed, shared, core, now);
                Carried::Http(Box::new(relayed))
            }
        })
    }

    fn drive(&mut self, connection: &mut Carried, _why: Event<()>, hub: &mut Hub<'_, ()>) -> Next {
        match (connection, &self.shared.http) {
            (Carried::Bytes(relayed), _) => relayed.go_on(&self.shared, &mut self.core, hub),
            (Carried::Http(relayed), Some(options)) => {
                let (shared, core, spares) = (&*self.shared, &mut self.core, &mut self.spares);
                relayed.go_on(&mut Around { shared, options, core, spares, hub })
            }
            (Carried::Http(_), None) => Next::Close,
        }
    }

    fn due(&self) -> Option<Instant> {
        self.spares.due()
    }

    fn overdue(&mut self, now: Instant) {
        self.spares.sweep(now);
    }

    fn closed(&mut self, connection: Carried) {
        self.core.counters.ended(match connection {
            Carried::Bytes(relayed) => relayed.close(),
            Carried::Http(relayed) => relayed.close(&mut self.spares),
        });
    }
}

impl Connection for Carried {
    fn socket(&mut self, side: Side) -> Option<&mut Socket> {
        match self {
            Self::Bytes(relayed) => relayed.socket(side),
            Self::Http(relayed) => relayed.socket(side),
        }
    }
}
