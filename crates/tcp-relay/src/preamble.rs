//! Determines the client's addresses, from the client's socket or from the PROXY header that
//! precedes the client's first byte; then performs the TLS handshake, if TLS is configured.

use std::time::{Duration, Instant};

use haul_reactor::IoStatus;
use haul_tls::Transport;

use crate::config::Limits;
use crate::end_reason::EndReason;
use crate::endpoints::endpoints_of;
use crate::proxy::{self, Endpoints, Parsed};

/// The part of a connection before the client's first byte.
#[derive(Debug)]
pub(crate) struct Preamble {
    stage: Stage,
    head_time_max: Duration,
}

#[derive(Debug)]
enum Stage {
    /// The client's addresses are those of the client's socket.
    Socket,
    /// A required PROXY header: the bytes received so far, and the time by which the header must be
    /// complete.
    Header { bytes: Vec<u8>, deadline: Instant },
    /// The addresses are known; the TLS handshake must be complete by the deadline.
    Handshake { endpoints: Endpoints, deadline: Instant },
}

/// The result of reading a preamble.
#[derive(Debug)]
pub(crate) enum PreambleState {
    /// The preamble is incomplete: wait for the socket until this deadline.
    Waiting(Instant),
    /// The client's addresses, and the bytes received behind the header.
    Complete { endpoints: Endpoints, early: Vec<u8> },
}

impl Preamble {
    /// Creates the preamble of a new connection. If `expects_header` is `true`, the client's
    /// addresses are read from a PROXY header, otherwise from the socket.
    pub(crate) fn new(expects_header: bool, limits: &Limits, now: Instant) -> Self {
        let stage = match expects_header {
            true => Stage::Header { bytes: Vec::new(), deadline: now + limits.head_time_max },
            false => Stage::Socket,
        };
        Self { stage, head_time_max: limits.head_time_max }
    }

    /// Reads the part of the preamble that has arrived.
    ///
    /// # Errors
    /// Returns an error if the header or the handshake is malformed or late, or the client closed
    /// the connection; the client must not be served.
    pub(crate) fn advance(
        &mut self,
        client: &mut Transport,
        now: Instant,
    ) -> Result<PreambleState, EndReason> {
        loop {
            let (endpoints, early) = match &mut self.stage {
                Stage::Socket => (endpoints_of(&*client), Vec::new()),
                Stage::Header { bytes, deadline } => {
                    match read_header(bytes, *deadline, client, now)? {
                        Some(complete) => complete,
                        None => return Ok(PreambleState::Waiting(*deadline)),
                    }
                }
                Stage::Handshake { endpoints, deadline } => {
                    return match client.handshake() {
                        Ok(true) => {
                            let endpoints = std::mem::replace(endpoints, Endpoints::Unknown);
                            Ok(PreambleState::Complete { endpoints, early: Vec::new() })
                        }
                        Ok(false) if now < *deadline => Ok(PreambleState::Waiting(*deadline)),
                        Ok(false) | Err(_) => Err(EndReason::BadTls),
                    };
                }
            };
            if !client.is_tls() {
                return Ok(PreambleState::Complete { endpoints, early });
            }
            client.add_received(&early);
            let deadline = now + self.head_time_max;
            self.stage = Stage::Handshake { endpoints, deadline };
        }
    }
}

/// Reads the part of a PROXY header that has arrived; returns the addresses and the bytes behind
/// the header once it is complete. The header is never encrypted: it precedes the TLS handshake.
fn read_header(
    bytes: &mut Vec<u8>,
    deadline: Instant,
    client: &mut Transport,
    now: Instant,
) -> Result<Option<(Endpoints, Vec<u8>)>, EndReason> {
    let mut buffer = [0; 512];
    loop {
        match proxy::parse(bytes).map_err(|_invalid| EndReason::BadProxy)? {
            Parsed::Partial => {}
            Parsed::Complete { endpoints, header_bytes } => {
                return Ok(Some((endpoints, bytes.split_off(header_bytes))));
            }
        }
        match client.socket_mut().read(&mut buffer) {
            Ok(IoStatus::Bytes(0)) | Err(_) => return Err(EndReason::BadProxy),
            Ok(IoStatus::Bytes(more)) => bytes.extend_from_slice(&buffer[..more]),
            Ok(IoStatus::WouldBlock) if now < deadline => return Ok(None),
            Ok(IoStatus::WouldBlock) => return Err(EndReason::BadProxy),
        }
    }
}
