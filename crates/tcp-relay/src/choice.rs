//! Which way bytes take, decided again after each burst. Pure.
//!
//! A copy costs two calls and the touching of every byte twice; a splice costs more calls, and the
//! bytes nothing. Below [`LARGE_BYTES`] a burst is cheaper copied, above it spliced: where that
//! lies was measured (docs/relay.md).

/// The ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Read into memory, and written from there.
    Copy,
    /// Spliced through a pipe.
    Splice,
}

/// Which ways may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moving {
    /// The better one for what comes.
    #[default]
    Auto,
    /// Copies alone.
    Copy,
    /// Splices, while there are pipes.
    Splice,
}

/// The length from which on a burst is large.
pub const LARGE_BYTES: usize = 16 << 10;
/// So many large bursts in a row turn to splices.
const LARGE_IN_ROW: u8 = 2;
/// So many smaller ones turn back: among the bursts of many busy connections there are short ones,
/// and to copy for a while what is long costs more than to splice for a while what is short.
const SMALL_IN_ROW: u8 = 16;

/// The choice for one direction of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    moving: Moving,
    way: Way,
    /// How many bursts in a row spoke for the other way.
    against: u8,
}

impl Choice {
    /// The beginning: a copy, which is right for whatever is short.
    pub(crate) fn new(moving: Moving) -> Self {
        let way = if moving == Moving::Splice { Way::Splice } else { Way::Copy };
        Self { moving, way, against: 0 }
    }

    /// The way of the next burst.
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// Learns from a burst: so many bytes came at once, and filled all room there was for them.
    pub(crate) fn moved(&mut self, bytes: usize, filled_room: bool) {
        let is_large = bytes >= LARGE_BYTES;
        let (is_against, enough) = match self.way {
            Way::Copy => (is_large, if filled_room { 1 } else { LARGE_IN_ROW }),
            Way::Splice => (!is_large, SMALL_IN_ROW),
        };
        self.against = if is_against { self.against + 1 } else { 0 };
        if self.moving == Moving::Auto && self.against >= enough {
            self.turn();
        }
        self.against = self.against.min(SMALL_IN_ROW);
    }

    /// Learns that so many bytes will come, before the first of them.
    pub(crate) fn expect(&mut self, bytes: u64) {
        let is_large = bytes >= LARGE_BYTES as u64;
        if self.moving == Moving::Auto && is_large != (self.way == Way::Splice) {
            self.turn();
        }
    }

    /// Nothing can be spliced here: copies from now on.
    pub(crate) fn refuse_splice(&mut self) {
        *self = Self::new(Moving::Copy);
    }

    fn turn(&mut self) {
        self.against = 0;
        self.way = match self.way {
            Way::Copy => Way::Splice,
            Way::Splice => Way::Copy,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 100;

    fn after(moving: Moving, bursts: &[usize]) -> Way {
        let mut choice = Choice::new(moving);
        bursts.iter().for_each(|&bytes| choice.moved(bytes, false));
        choice.way()
    }

    #[test]
    fn two_large_bursts_turn_to_splices_and_sixteen_small_ones_back() {
        let large = LARGE_BYTES;
        let nearly = [SMALL; 15];
        for (bursts, way) in [
            (vec![], Way::Copy),
            (vec![large], Way::Copy),
            (vec![large, SMALL, large], Way::Copy),
            (vec![large, large], Way::Splice),
            ([&[large, large], &nearly[..]].concat(), Way::Splice),
            ([&[large, large], &nearly[..], &[large], &nearly[..]].concat(), Way::Splice),
            ([&[large, large], &nearly[..], &[SMALL]].concat(), Way::Copy),
            ([&[large, large], &nearly[..], &[SMALL, large]].concat(), Way::Copy),
            (vec![large - 1; 100], Way::Copy),
        ] {
            assert_eq!(after(Moving::Auto, &bursts), way, "{bursts:?}");
        }
    }

    #[test]
    fn a_burst_that_fills_the_buffer_turns_at_once() {
        let mut choice = Choice::new(Moving::Auto);
        choice.moved(LARGE_BYTES, true);
        assert_eq!(choice.way(), Way::Splice);
        // A small buffer that is full says nothing.
        let mut choice = Choice::new(Moving::Auto);
        choice.moved(SMALL, true);
        assert_eq!(choice.way(), Way::Copy);
    }

    #[test]
    fn what_was_asked_for_stays() {
        assert_eq!(after(Moving::Copy, &[1 << 20; 300]), Way::Copy);
        assert_eq!(after(Moving::Splice, &[1; 300]), Way::Splice);
        let mut choice = Choice::new(Moving::Copy);
        choice.expect(u64::MAX);
        assert_eq!(choice.way(), Way::Copy);
    }

    #[test]
    fn a_length_that_is_known_decides_before_the_first_byte() {
        let mut choice = Choice::new(Moving::Auto);
        choice.expect(1 << 20);
        assert_eq!(choice.way(), Way::Splice);
        choice.expect(100);
        assert_eq!(choice.way(), Way::Copy);
    }

    #[test]
    fn refused_splices_are_not_tried_again() {
        for moving in [Moving::Auto, Moving::Splice] {
            let mut choice = Choice::new(moving);
            choice.refuse_splice();
            (0..300).for_each(|_| choice.moved(1 << 20, true));
            choice.expect(1 << 30);
            assert_eq!(choice.way(), Way::Copy);
        }
    }
}
