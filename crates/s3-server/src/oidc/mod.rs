//! Users of OpenID Connect providers: their ID tokens are exchanged for temporary keys.
//!
//! `config` parses the providers' configuration, `jwt` the tokens, and `key_set` the keys that sign
//! them; all three are pure. `provider` keeps a provider's keys and identifies the user of a token.

pub(crate) mod config;
mod jwt;
mod key_set;
pub(crate) mod provider;
