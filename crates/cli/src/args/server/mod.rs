//! Defines the arguments that several servers share.

mod config;
mod tls;

pub(crate) use config::ConfigArgs;
pub(crate) use tls::TlsArgs;
