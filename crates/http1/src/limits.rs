//! Defines limits on the size of heads and of chunked framing.

/// The hard limit on the number of fields of a head: the parser uses an array of this length.
pub const FIELDS_MAX: usize = 1024;

/// The maximum length of a method in bytes; the longest registered method has 18 letters.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// Limits of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// The maximum length of a head in bytes, including its final empty line. A longer head gives
    /// status 431. Default: 16 KiB.
    pub head_bytes_max: usize,
    /// The maximum length of a request target in bytes. A longer target gives status 414. Default:
    /// 8 KiB.
    pub target_bytes_max: usize,
    /// The maximum number of fields, at most [`FIELDS_MAX`]. More fields give status 431. Default:
    /// 100.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 16 << 10, target_bytes_max: 8 << 10, fields_max: 100 }
    }
}

/// Limits of chunked framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// The maximum length in bytes of the extensions of one chunk. Default: 256 B.
    pub extension_bytes_max: usize,
    /// The maximum length in bytes of the extensions of all chunks of a body. Default: 16 KiB.
    pub extensions_bytes_max: usize,
    /// The maximum length in bytes of the trailer section. Default: 8 KiB.
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
