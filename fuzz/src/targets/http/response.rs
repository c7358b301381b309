//! Parses the head of a response: whole, in parts, for each kind of request, and after it was
//! written again.

use crate::heads::{assert_monotonic, assert_unambiguous, low_limits};
use haul_http1::{
    Framing, HeadLimits, HeadWriter, HttpError, MethodKind, Response, parse_response,
};

fn describe(response: &Response<'_>) -> String {
    let fields: Vec<_> = response.fields.into_iter().map(|one| (one.name, one.value)).collect();
    let Response { status, reason, framing, content_length, .. } = response;
    format!("{status} {reason} {framing:?} {content_length:?} {fields:?}")
}

fn parse(bytes: &[u8], method: MethodKind) -> Result<Option<Response<'_>>, HttpError> {
    parse_response(bytes, &HeadLimits::default(), method)
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    for limits in [low_limits(), HeadLimits::default()] {
        assert_monotonic(data, |bytes| {
            let response = parse_response(bytes, &limits, MethodKind::Other)?;
            Ok(response.map(|response| (describe(&response), response.head_bytes)))
        });
    }
    let Ok(Some(response)) = parse(data, MethodKind::Other) else { return };
    let to_head = parse(data, MethodKind::Head).unwrap().expect("it is complete");
    assert_eq!((to_head.framing, to_head.head_bytes), (Framing::Length(0), response.head_bytes));
    let head = &data[..response.head_bytes];
    let has_body = !matches!(response.status, 100..=199 | 204 | 304);
    if has_body {
        assert_unambiguous(head, &response.fields, response.framing);
    } else {
        assert_eq!(response.framing, Framing::Length(0));
    }
    assert!(response.framing != Framing::UntilClose || !response.keep_alive);
    let mut out = Vec::new();
    let mut writer = HeadWriter::response_with_reason(&mut out, response.status, response.reason);
    for field in response.fields {
        writer.field(field.name, field.value);
    }
    writer.end().expect("an accepted head can be written");
    let again = parse(&out, MethodKind::Other).unwrap().expect("it is complete");
    assert_eq!(again.head_bytes, out.len());
    if response.version == again.version {
        assert_eq!(describe(&response), describe(&again));
    }
}
