//! The server over real sockets, on real files.
