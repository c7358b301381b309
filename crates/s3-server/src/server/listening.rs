//! Binds a server's addresses, and validates its configuration.

use std::sync::Arc;

use haul_reactor::Listener;
use haul_tls::Acceptor;

use crate::access::keys::key_file::KeyFile;
use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::config::{Addresses, Config, Inherited, Limits, Logs};
use crate::encryption::operator::EncryptionKeys;
use crate::error::Result;
use crate::events::target::EventTargets;
use crate::oidc::provider::Providers;
use crate::request::domains::Domains;
use crate::server::bound::Bound;

/// Bound addresses and a validated configuration. The kernel refuses connections until a
/// [`crate::Server`] listens. With unusable addresses or an invalid configuration, a program thus
/// fails before it opens its store.
#[derive(Debug)]
pub struct Listening {
    pub(crate) listen: Bound,
    pub(crate) admin: Bound,
    pub(super) website: Option<Bound>,
    pub(super) providers: Option<Arc<Providers>>,
    pub(super) access_keys: AllKeys,
    pub(super) key_file: Option<Arc<dyn KeyFile>>,
    pub(super) encryption: Option<Arc<EncryptionKeys>>,
    pub(super) events: Option<Arc<EventTargets>>,
    pub(super) domains: Domains,
    pub(super) website_domains: Domains,
    pub(crate) tls: Option<Acceptor>,
    pub(crate) limits: Limits,
    pub(super) is_read_only: bool,
    pub(super) logs: Logs,
}

impl Listening {
    /// Validates the configuration and binds the addresses. Must be called in a Tokio runtime with
    /// I/O.
    ///
    /// # Errors
    /// If the configuration is unsafe or invalid, or an address cannot be bound.
    pub fn bind(config: Config) -> Result<Self> {
        Self::with_inherited(config, Inherited::default())
    }

    /// Like [`Self::bind`], but uses the sockets in `inherited`, on which another process already
    /// listens, instead of the corresponding addresses in the configuration.
    ///
    /// # Errors
    /// Fails like [`Self::bind`], and if an inherited socket is not a TCP socket.
    pub fn with_inherited(mut config: Config, inherited: Inherited) -> Result<Self> {
        let bound = |listener: Option<Listener>| listener.map(Bound::inherited).transpose();
        let (listen, admin) = (bound(inherited.listen)?, bound(inherited.admin)?);
        let website = bound(inherited.website)?;
        config.listen = listen.as_ref().map_or(config.listen, |bound| bound.address);
        config.admin = admin.as_ref().map_or(config.admin, |bound| bound.address);
        config.website = website.as_ref().map(|bound| bound.address).or(config.website);
        config.check()?;
        let listen = listen.map_or_else(|| Bound::new(config.listen), Ok)?;
        let admin = admin.map_or_else(|| Bound::new(config.admin), Ok)?;
        let website = match (website, config.website) {
            (None, Some(address)) => Some(Bound::new(address)?),
            (website, _) => website,
        };
        let Config { credentials, keys, key_file, encryption, domains, .. } = config;
        let Config { events, tls, limits, is_read_only, providers, .. } = config;
        let domains = Domains::new(&domains);
        let website_domains = Domains::new(&config.website_domains);
        let administrator = credentials.map(|pair| Arc::new(ActiveKey::administrator(pair)));
        let access_keys = AllKeys { administrator, ring: keys };
        if let (Some(ring), Some(providers)) = (&access_keys.ring, &providers) {
            ring.accept_providers(providers.names().map(str::to_owned));
        }
        let logs = Logs::default();
        Ok(Self {
            listen,
            admin,
            website,
            access_keys,
            key_file,
            providers,
            encryption,
            events,
            domains,
            website_domains,
            tls,
            limits,
            is_read_only,
            logs,
        })
    }

    /// Sets the logs.
    #[must_use]
    pub fn with_logs(mut self, logs: Logs) -> Self {
        self.logs = logs;
        self
    }

    /// Returns the bound addresses; the assigned port replaces a port 0 in the configuration.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        Addresses {
            listen: self.listen.address,
            admin: self.admin.address,
            website: self.website.as_ref().map(|bound| bound.address),
            has_tls: self.tls.is_some(),
        }
    }
}
