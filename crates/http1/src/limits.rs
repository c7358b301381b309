//! How much of a head is taken.

/// How many fields a head may have at most, whatever its limits say: they are parsed into an array
/// of this length.
pub const FIELDS_MAX: usize = 100;

/// How long a method may be: the longest in use has 18 letters.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// How much of a head is taken before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// The whole head with its last empty line. What is longer is refused with 431. Default:
    /// 16 KiB.
    pub head_bytes_max: usize,
    /// The target of a request. What is longer is refused with 414. Default: 8 KiB.
    pub target_bytes_max: usize,
    /// Fields of one head, [`FIELDS_MAX`] at most. More are refused with 431. Default:
    /// [`FIELDS_MAX`].
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 16 << 10, target_bytes_max: 8 << 10, fields_max: FIELDS_MAX }
    }
}

/// How much of a chunked body is taken that is not data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// The extensions of one chunk. Default: 256 B.
    pub extension_bytes_max: usize,
    /// The extensions of all chunks of a body. Default: 16 KiB.
    pub extensions_bytes_max: usize,
    /// The trailer section. Default: 8 KiB.
    pub trailer_bytes_max: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self {
            extension_bytes_max: 256,
            extensions_bytes_max: 16 << 10,
            trailer_bytes_max: 8 << 10,
        }
    }
}
