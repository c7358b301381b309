//! Connections relayed.
