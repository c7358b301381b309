//! Files over HTTP/1.1.
