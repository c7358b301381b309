//! Messages of HTTP/1.1, as real ones and hostile ones are.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod bodies;
mod corpus;
mod requests;
mod responses;
mod written;

use haul_http1::{HeadLimits, Refused, Request, parse_request};

fn parsed(head: &[u8]) -> Result<Option<Request<'_>>, Refused> {
    parse_request(head, &HeadLimits::default())
}

fn right(head: &str) -> Request<'_> {
    parsed(head.as_bytes()).unwrap().unwrap()
}

/// The status a head is refused with.
fn refused(head: &[u8]) -> Option<u16> {
    parsed(head).err().map(|refused| refused.status)
}
