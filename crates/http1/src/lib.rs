//! Heads and framing of HTTP/1.1.
