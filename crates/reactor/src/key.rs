//! Identifies connections by keys, and encodes the keys in the 64-bit tokens of epoll events.

use crate::socket::SocketKind;

/// The key of a connection: the index of its slot in the table of connections, and a generation,
/// which counts how often the slot was reused. An event or message for a closed connection has an
/// old generation, so it never reaches a later connection in the same slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The source of an epoll event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Connection(Key, SocketKind),
    Listener(usize),
    Waker,
}

const WAKER: usize = usize::MAX;
const LISTENERS: usize = 1 << 63;

/// The number of generations. The upper 32 bits of a token hold the generation, but the highest of
/// these bits marks listeners.
const GENERATION_MAX: u32 = (1 << 31) - 1;

impl Key {
    pub(crate) fn token(self, kind: SocketKind) -> usize {
        let slot = (self.index as usize) << 1 | usize::from(kind == SocketKind::Connected);
        slot | (self.generation as usize) << 32
    }

    /// Returns the generation of a slot's next use.
    pub(crate) fn generation_after(generation: u32) -> u32 {
        if generation >= GENERATION_MAX - 1 { 0 } else { generation + 1 }
    }
}

/// The maximum number of connections of a thread: slot indices have 31 bits.
pub(crate) const SLOTS_MAX: usize = 1 << 31;

pub(crate) fn listener_token(index: usize) -> usize {
    LISTENERS | index
}

pub(crate) fn waker_token() -> usize {
    WAKER
}

pub(crate) fn source(token: usize) -> Source {
    if token == WAKER {
        return Source::Waker;
    }
    if token & LISTENERS != 0 {
        return Source::Listener(token & !LISTENERS);
    }
    let kind = if token & 1 == 0 { SocketKind::Accepted } else { SocketKind::Connected };
    let index = u32::try_from((token & 0xffff_ffff) >> 1).unwrap_or_default();
    let generation = u32::try_from(token >> 32).unwrap_or_default();
    Source::Connection(Key { index, generation }, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let last = u32::try_from(SLOTS_MAX - 1).unwrap();
        for (index, generation) in [(0, 0), (1, 7), (last, GENERATION_MAX - 1), (9, 0)] {
            for kind in [SocketKind::Accepted, SocketKind::Connected] {
                let key = Key { index, generation };
                assert_eq!(source(key.token(kind)), Source::Connection(key, kind));
            }
        }
        assert_eq!(source(listener_token(3)), Source::Listener(3));
        assert_eq!(source(waker_token()), Source::Waker);
        assert_eq!(Key::generation_after(GENERATION_MAX - 1), 0);
    }
}
