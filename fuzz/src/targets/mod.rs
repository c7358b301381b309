//! The targets.

pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod servers;
pub(crate) mod text;
