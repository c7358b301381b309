//! Names of connections, as the kernel hands them back with each event.

use crate::service::Side;

/// A place in the table of connections, and how often it was used before: what is told to a
/// connection that is gone never reaches its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What an event of the poll is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Connection(Key, Side),
    Listener(usize),
    Waker,
}

const WAKER: usize = usize::MAX;
const LISTENERS: usize = 1 << 63;

/// The highest bit tells listeners, so this many generations are told apart.
const GENERATION_MAX: u32 = (1 << 31) - 1;

impl Key {
    pub(crate) fn token(self, side: Side) -> usize {
        let place = (self.index as usize) << 1 | usize::from(side == Side::Far);
        place | (self.generation as usize) << 32
    }

    /// The next use of a place.
    pub(crate) fn generation_after(generation: u32) -> u32 {
        if generation >= GENERATION_MAX - 1 { 0 } else { generation + 1 }
    }
}

/// How many connections a thread can tell apart.
pub(crate) const PLACES_MAX: usize = 1 << 31;

pub(crate) fn listener_token(index: usize) -> usize {
    LISTENERS | index
}

pub(crate) fn waker_token() -> usize {
    WAKER
}

pub(crate) fn subject(token: usize) -> Subject {
    if token == WAKER {
        return Subject::Waker;
    }
    if token & LISTENERS != 0 {
        return Subject::Listener(token & !LISTENERS);
    }
    let side = if token & 1 == 0 { Side::Near } else { Side::Far };
    let index = u32::try_from((token & 0xffff_ffff) >> 1).unwrap_or_default();
    let generation = u32::try_from(token >> 32).unwrap_or_default();
    Subject::Connection(Key { index, generation }, side)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_what_they_were_made_of() {
        let last = u32::try_from(PLACES_MAX - 1).unwrap();
        for (index, generation) in [(0, 0), (1, 7), (last, GENERATION_MAX - 1), (9, 0)] {
            for side in [Side::Near, Side::Far] {
                let key = Key { index, generation };
                assert_eq!(subject(key.token(side)), Subject::Connection(key, side));
            }
        }
        assert_eq!(subject(listener_token(3)), Subject::Listener(3));
        assert_eq!(subject(waker_token()), Subject::Waker);
        assert_eq!(Key::generation_after(GENERATION_MAX - 1), 0);
    }
}
