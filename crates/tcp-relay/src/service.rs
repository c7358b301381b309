//! What a thread of the relay does with its connections.

use std::sync::Arc;

use haul_reactor::{Accepted, Event, Hub, Next, Service, Socket};

use crate::flow::Core;
use crate::proxy::Trusted;
use crate::relayed::{Relayed, Shared};
use crate::stats::Ended;

/// One thread's part of the relay.
#[derive(Debug)]
pub(crate) struct Relaying {
    pub(crate) shared: Arc<Shared>,
    pub(crate) core: Core,
    pub(crate) proxy_in: Option<Trusted>,
}

impl Service for Relaying {
    type Connection = Relayed;
    type Message = ();

    fn accepted(
        &mut self,
        socket: Socket,
        from: Accepted,
        hub: &mut Hub<'_, ()>,
    ) -> Option<Relayed> {
        self.core.counters.accepted.add(1);
        let peer = from.peer.map(|peer| peer.ip());
        if self.proxy_in.as_ref().is_some_and(|trusted| !trusted.has(peer)) {
            self.core.counters.ended(Ended::BadProxy);
            return None;
        }
        let is_headed = self.proxy_in.is_some();
        Some(Relayed::new(socket, is_headed, &self.shared, &self.core, hub.now()))
    }

    fn drive(&mut self, connection: &mut Relayed, _why: Event<()>, hub: &mut Hub<'_, ()>) -> Next {
        connection.go_on(&self.shared, &mut self.core, hub)
    }

    fn closed(&mut self, connection: Relayed) {
        self.core.counters.ended(connection.close());
    }
}
