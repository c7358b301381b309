//! Users of OpenID Connect providers: their ID tokens are exchanged for temporary keys, and they log
//! in to the console.
//!
//! `config` parses the providers' configuration, `jwt` the tokens, `key_set` the keys that sign them,
//! and `login` makes the requests of a login; all four are pure. `provider` keeps what a provider
//! publishes and identifies its users.

pub(crate) mod config;
mod jwt;
mod key_set;
pub(crate) mod login;
pub(crate) mod provider;
