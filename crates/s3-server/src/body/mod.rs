//! Bodies of requests and responses: memory, framing, checksums, transfer.

pub(crate) mod aws_chunked;
pub(crate) mod checksum;
pub(crate) mod claimed;
pub(crate) mod copy;
pub(crate) mod digests;
pub(crate) mod memory;
pub(crate) mod part_checksums;
pub(crate) mod receive;
pub(crate) mod send;
