//! Decodes a chunked body: whole, in pieces, by a second decoder, and after it was encoded.

use crate::chunked::{decode, decode_simply, encode};
use haul_http1::ChunkLimits;

/// Limits that short inputs reach.
const LOW_LIMITS: ChunkLimits =
    ChunkLimits { extension_bytes_max: 8, extensions_bytes_max: 20, trailer_bytes_max: 24 };

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    for limits in [LOW_LIMITS, ChunkLimits::default()] {
        let whole = decode(data, usize::MAX >> 1, limits);
        for piece_bytes in [1, 2, 3, 7, 64] {
            assert_eq!(decode(data, piece_bytes, limits), whole, "{piece_bytes} at a time");
        }
        // More bytes cannot change a body that is complete or invalid.
        let more = decode(&[data, b"0\r\n\r\n"].concat(), 5, limits);
        assert!(more == whole || whole == Ok(None), "{more:?}, was {whole:?}");
        if let Ok(Some(decoded)) = whole {
            assert_eq!(decode_simply(data), Some(decoded.clone()));
            let body = encode(&decoded.0, 5);
            assert_eq!(decode(&body, 4, limits), Ok(Some((decoded.0, body.len()))));
        }
    }
    let body = encode(data, 13);
    assert_eq!(decode(&body, 11, LOW_LIMITS), Ok(Some((data.to_vec(), body.len()))));
}
