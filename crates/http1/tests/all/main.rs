//! Tests parsing and writing of valid and hostile HTTP/1.1 messages.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod chunked;
mod corpus;
mod head_writer;
mod requests;
mod responses;

use haul_http1::{HeadLimits, HttpError, Request, parse_request};

fn parse(head: &[u8]) -> Result<Option<Request<'_>>, HttpError> {
    parse_request(head, &HeadLimits::default())
}

fn parse_valid(head: &str) -> Request<'_> {
    parse(head.as_bytes()).unwrap().unwrap()
}

/// Returns the status of the error, if the head is rejected.
fn error_status(head: &[u8]) -> Option<u16> {
    parse(head).err().map(|error| error.status)
}
