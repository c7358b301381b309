//! Bytes moved through pooled pipes.
