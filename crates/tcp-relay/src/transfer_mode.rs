//! Selects, after each burst, whether a direction of a connection copies or splices its next burst.
//! Performs no I/O.
//!
//! A copy costs two system calls and moves every byte through the CPU twice; a splice copies no
//! byte but costs one more call. Bursts below [`LARGE_BYTES`] are cheaper to copy, longer ones to
//! splice; `docs/relay.md` has the measurements.

/// The method by which one burst is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferMethod {
    /// `read(2)` into memory and `write(2)` from there.
    Copy,
    /// `splice(2)` through a pipe.
    Splice,
}

/// The transfer methods a relay may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferMode {
    /// The relay copies small bursts and splices large ones.
    #[default]
    Auto,
    /// The relay copies all bursts.
    Copy,
    /// The relay splices all bursts while a pipe is available.
    Splice,
}

/// The minimum length in bytes of a large burst; all other bursts are small.
pub const LARGE_BYTES: usize = 16 << 10;
/// The number of consecutive large bursts after which a flow changes to splicing.
const LARGE_IN_ROW: u8 = 2;
/// The number of consecutive small bursts after which a flow changes back to copying. It is larger
/// than [`LARGE_IN_ROW`], because busy connections have some small bursts among large ones, and
/// copying a large burst costs more than splicing a small one.
const SMALL_IN_ROW: u8 = 16;

/// The state that selects the transfer method of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodSelector {
    transfer_mode: TransferMode,
    method: TransferMethod,
    /// The number of consecutive bursts for which the other method would have been better.
    opposing: u8,
}

impl MethodSelector {
    /// Creates a selector that begins with copying, which is right for short connections, unless
    /// the mode is [`TransferMode::Splice`].
    pub(crate) fn new(transfer_mode: TransferMode) -> Self {
        let method = match transfer_mode {
            TransferMode::Splice => TransferMethod::Splice,
            TransferMode::Auto | TransferMode::Copy => TransferMethod::Copy,
        };
        Self { transfer_mode, method, opposing: 0 }
    }

    /// Returns the method for the next burst.
    pub(crate) fn method(&self) -> TransferMethod {
        self.method
    }

    /// Records a burst of `bytes` bytes; `filled_limit` is `true` if the read returned as many
    /// bytes as it requested.
    pub(crate) fn record_burst(&mut self, bytes: usize, filled_limit: bool) {
        let is_large = bytes >= LARGE_BYTES;
        let (is_opposing, enough) = match self.method {
            TransferMethod::Copy => (is_large, if filled_limit { 1 } else { LARGE_IN_ROW }),
            TransferMethod::Splice => (!is_large, SMALL_IN_ROW),
        };
        self.opposing = if is_opposing { self.opposing + 1 } else { 0 };
        if self.transfer_mode == TransferMode::Auto && self.opposing >= enough {
            self.switch();
        }
        self.opposing = self.opposing.min(SMALL_IN_ROW);
    }

    /// Selects the method for a body of a known length, before its first byte.
    pub(crate) fn set_length(&mut self, bytes: u64) {
        let is_large = bytes >= LARGE_BYTES as u64;
        let is_spliced = self.method == TransferMethod::Splice;
        if self.transfer_mode == TransferMode::Auto && is_large != is_spliced {
            self.switch();
        }
    }

    /// Selects copying for all further bursts, because the kernel refused to splice the sockets.
    pub(crate) fn disable_splice(&mut self) {
        *self = Self::new(TransferMode::Copy);
    }

    fn switch(&mut self) {
        self.opposing = 0;
        self.method = match self.method {
            TransferMethod::Copy => TransferMethod::Splice,
            TransferMethod::Splice => TransferMethod::Copy,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 100;

    fn after(transfer_mode: TransferMode, bursts: &[usize]) -> TransferMethod {
        let mut selector = MethodSelector::new(transfer_mode);
        bursts.iter().for_each(|&bytes| selector.record_burst(bytes, false));
        selector.method()
    }

    #[test]
    fn two_large_bursts_select_splice_and_sixteen_small_ones_copy() {
        let large = LARGE_BYTES;
        let nearly = [SMALL; 15];
        for (bursts, method) in [
            (vec![], TransferMethod::Copy),
            (vec![large], TransferMethod::Copy),
            (vec![large, SMALL, large], TransferMethod::Copy),
            (vec![large, large], TransferMethod::Splice),
            ([&[large, large], &nearly[..]].concat(), TransferMethod::Splice),
            (
                [&[large, large], &nearly[..], &[large], &nearly[..]].concat(),
                TransferMethod::Splice,
            ),
            ([&[large, large], &nearly[..], &[SMALL]].concat(), TransferMethod::Copy),
            ([&[large, large], &nearly[..], &[SMALL, large]].concat(), TransferMethod::Copy),
            (vec![large - 1; 100], TransferMethod::Copy),
        ] {
            assert_eq!(after(TransferMode::Auto, &bursts), method, "{bursts:?}");
        }
    }

    #[test]
    fn large_burst_that_fills_the_buffer_selects_splice_at_once() {
        let mut selector = MethodSelector::new(TransferMode::Auto);
        selector.record_burst(LARGE_BYTES, true);
        assert_eq!(selector.method(), TransferMethod::Splice);
        // A filled read of a small buffer does not prove that the burst is large.
        let mut selector = MethodSelector::new(TransferMode::Auto);
        selector.record_burst(SMALL, true);
        assert_eq!(selector.method(), TransferMethod::Copy);
    }

    #[test]
    fn fixed_mode_never_changes_method() {
        assert_eq!(after(TransferMode::Copy, &[1 << 20; 300]), TransferMethod::Copy);
        assert_eq!(after(TransferMode::Splice, &[1; 300]), TransferMethod::Splice);
        let mut selector = MethodSelector::new(TransferMode::Copy);
        selector.set_length(u64::MAX);
        assert_eq!(selector.method(), TransferMethod::Copy);
    }

    #[test]
    fn known_length_selects_the_method_before_the_first_byte() {
        let mut selector = MethodSelector::new(TransferMode::Auto);
        selector.set_length(1 << 20);
        assert_eq!(selector.method(), TransferMethod::Splice);
        selector.set_length(100);
        assert_eq!(selector.method(), TransferMethod::Copy);
    }

    #[test]
    fn disabled_splice_is_not_tried_again() {
        for transfer_mode in [TransferMode::Auto, TransferMode::Splice] {
            let mut selector = MethodSelector::new(transfer_mode);
            selector.disable_splice();
            (0..300).for_each(|_| selector.record_burst(1 << 20, true));
            selector.set_length(1 << 30);
            assert_eq!(selector.method(), TransferMethod::Copy);
        }
    }
}
