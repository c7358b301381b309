//! Responses: their heads, the framing of their bodies, and their bytes on the way to the socket.

pub(crate) mod body;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod output;
pub(crate) mod pace;
pub(crate) mod pipeline;
