//! Reads numbers and bytes from the input of a target, which derives its actions from them.

/// The unread bytes of an input. Behind the end of the input, all numbers are 0.
#[derive(Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Starts at the first byte of an input.
    #[must_use]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// `true` if all bytes were read.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Reads a number of 16 bits.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Reads an array of bytes, which ends with zeros if the input is too short.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.take(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }

    /// Reads `bytes` bytes, or fewer at the end of the input.
    pub(crate) fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Selects an element by a byte.
    ///
    /// # Panics
    /// If there is no element.
    pub(crate) fn choose<'b, T>(&mut self, from: &'b [T]) -> &'b T {
        &from[usize::from(self.byte()) % from.len()]
    }
}
