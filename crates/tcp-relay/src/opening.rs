//! The beginning of a connection: who the client is.

use std::time::Instant;

use haul_reactor::{Moved, Socket};

use crate::config::Limits;
use crate::proxy::{self, Ends, Read};
use crate::sockets::ends_of;

/// How it is found out.
#[derive(Debug)]
pub(crate) enum Opening {
    /// The socket tells.
    Socket,
    /// A PROXY header must come first; what of it has come.
    Header { bytes: Vec<u8>, deadline: Instant },
}

/// How far that is.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Wait for the socket, until then at most.
    Waiting(Instant),
    /// This is who it is, and what it said already.
    Known { ends: Ends, early: Vec<u8> },
}

/// The header is wrong, late, or does not come.
#[derive(Debug)]
pub(crate) struct BadProxy;

impl Opening {
    /// Of a connection that was accepted just now. With `is_headed` a PROXY header says who the
    /// client is; otherwise its socket does.
    pub(crate) fn new(is_headed: bool, limits: &Limits, now: Instant) -> Self {
        match is_headed {
            true => Self::Header { bytes: Vec::new(), deadline: now + limits.proxy_time_max },
            false => Self::Socket,
        }
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// The client is not to be served.
    pub(crate) fn go_on(&mut self, near: &mut Socket, now: Instant) -> Result<Opened, BadProxy> {
        let Self::Header { bytes, deadline } = self else {
            return Ok(Opened::Known { ends: ends_of(&*near), early: Vec::new() });
        };
        let mut buffer = [0; 512];
        loop {
            match proxy::read(bytes).map_err(|_wrong| BadProxy)? {
                Read::Partial => {}
                Read::Whole { ends, header_bytes } => {
                    let early = bytes.split_off(header_bytes);
                    return Ok(Opened::Known { ends, early });
                }
            }
            match near.read(&mut buffer) {
                Ok(Moved::Bytes(0)) | Err(_) => return Err(BadProxy),
                Ok(Moved::Bytes(more)) => bytes.extend_from_slice(&buffer[..more]),
                Ok(Moved::WouldBlock) if now < *deadline => return Ok(Opened::Waiting(*deadline)),
                Ok(Moved::WouldBlock) => return Err(BadProxy),
            }
        }
    }
}
