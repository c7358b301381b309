//! What follows when client and target have left HTTP: bytes both ways.

use super::connection::{Around, End, HttpRelayed, Stage, Step};
use crate::pair::Pair;
use crate::stats::Ended;

impl HttpRelayed {
    /// Begins with the head that says so; what came behind both heads follows it.
    pub(super) fn begin_tunnel<M>(&mut self, mut head: Vec<u8>, around: &Around<'_, '_, M>) {
        self.down.inbox.move_to(&mut head, u64::MAX);
        let mut early = Vec::new();
        self.up.inbox.move_to(&mut early, u64::MAX);
        self.stage = Stage::Tunnel(Pair::new([early, head], around.core, around.hub.now()));
    }

    pub(super) fn tunnel<M>(&mut self, around: &mut Around<'_, '_, M>) -> Step {
        let Self { near, far: Some(far), stage: Stage::Tunnel(pair), .. } = self else {
            return Err(End::cut(Ended::Reset));
        };
        let limits = &around.shared.limits;
        let sockets = [near, &mut far.socket];
        match pair.go_on(sockets, limits, around.core, around.hub.now()) {
            Ok(next) => Ok(Some(next)),
            Err(Ended::Clean) => Err(End::clean(Ended::Clean)),
            Err(how) => Err(End::cut(how)),
        }
    }
}
