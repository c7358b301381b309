//! Forwards HTTP messages: writes new heads from the parsed ones, and moves bodies according to
//! their framing.

mod channel;
mod error_response;
mod forwarded;
mod heads;
mod receive_buffer;

pub(super) use channel::{BodyError, BodyOptions, Channel, Progress};
pub(super) use error_response::write_error;
pub(super) use forwarded::Forwarded;
pub(super) use heads::{
    ResponseContext, authenticates_connection, is_websocket, max_forwards, wants_websocket,
    write_request, write_response,
};
