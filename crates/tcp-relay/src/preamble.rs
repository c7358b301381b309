//! Determines the client's addresses, from the client's socket or from the PROXY header that
//! precedes the client's first byte.

use std::time::Instant;

use haul_reactor::{IoStatus, Socket};

use crate::config::Limits;
use crate::endpoints::endpoints_of;
use crate::proxy::{self, Endpoints, Parsed};

/// The source from which the client's addresses are determined.
#[derive(Debug)]
pub(crate) enum Preamble {
    /// The client's socket.
    Socket,
    /// A required PROXY header: the bytes received so far, and the time by which the header must be
    /// complete.
    Header { bytes: Vec<u8>, deadline: Instant },
}

/// The result of reading a preamble.
#[derive(Debug)]
pub(crate) enum PreambleState {
    /// The header is incomplete: wait for the socket until this deadline.
    Waiting(Instant),
    /// The client's addresses, and the bytes received behind the header.
    Complete { endpoints: Endpoints, early: Vec<u8> },
}

/// A PROXY header that is malformed, late or missing.
#[derive(Debug)]
pub(crate) struct BadPreamble;

impl Preamble {
    /// Creates the preamble of a new connection. If `expects_header` is `true`, the client's
    /// addresses are read from a PROXY header, otherwise from the socket.
    pub(crate) fn new(expects_header: bool, limits: &Limits, now: Instant) -> Self {
        match expects_header {
            true => Self::Header { bytes: Vec::new(), deadline: now + limits.proxy_time_max },
            false => Self::Socket,
        }
    }

    /// Reads the part of the header that has arrived.
    ///
    /// # Errors
    /// Returns an error if the header is malformed or late, or the client closed the connection;
    /// the client must not be served.
    pub(crate) fn advance(
        &mut self,
        client: &mut Socket,
        now: Instant,
    ) -> Result<PreambleState, BadPreamble> {
        let Self::Header { bytes, deadline } = self else {
            let endpoints = endpoints_of(&*client);
            return Ok(PreambleState::Complete { endpoints, early: Vec::new() });
        };
        let mut buffer = [0; 512];
        loop {
            match proxy::parse(bytes).map_err(|_invalid| BadPreamble)? {
                Parsed::Partial => {}
                Parsed::Complete { endpoints, header_bytes } => {
                    let early = bytes.split_off(header_bytes);
                    return Ok(PreambleState::Complete { endpoints, early });
                }
            }
            match client.read(&mut buffer) {
                Ok(IoStatus::Bytes(0)) | Err(_) => return Err(BadPreamble),
                Ok(IoStatus::Bytes(more)) => bytes.extend_from_slice(&buffer[..more]),
                Ok(IoStatus::WouldBlock) if now < *deadline => {
                    return Ok(PreambleState::Waiting(*deadline));
                }
                Ok(IoStatus::WouldBlock) => return Err(BadPreamble),
            }
        }
    }
}
