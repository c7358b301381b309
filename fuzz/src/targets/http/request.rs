//! Parses the head of a request: whole, in parts, with other limits, and after it was written
//! again.

use crate::heads::{accepted, assert_monotonic, assert_unambiguous, describe, low_limits, rewrite};
use haul_http1::{HeadLimits, Version, parse_request};

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    for limits in [low_limits(), HeadLimits::default()] {
        assert_monotonic(data, |bytes| {
            let request = parse_request(bytes, &limits)?;
            Ok(request.map(|request| (describe(&request), request.head_bytes)))
        });
    }
    let Ok(Some(request)) = parse_request(data, &HeadLimits::default()) else {
        assert!(!matches!(parse_request(data, &low_limits()), Ok(Some(_))), "low limits accept it");
        return;
    };
    let head = &data[..request.head_bytes];
    assert!(head.ends_with(b"\r\n\r\n"));
    assert_unambiguous(head, &request.fields, request.framing);
    if request.version == Version::Http11 {
        let written = rewrite(&request);
        let again = accepted(&written);
        assert_eq!(describe(&request), describe(&again));
        assert_eq!(again.head_bytes, written.len());
    }
}
