//! S3 and plain HTTP over a [`haul_file_store::Store`].
//!
//! # What it is
//! A server for S3 clients and for curl, over HTTP and TLS. The threads of `haul-http-engine` drive
//! its connections, and answer reads of objects in memory. The store executes other requests on
//! threads that may block, except that a `PUT` of up to 8 KiB occupies no thread while it waits for
//! the sync. A request is acknowledged with `200 OK` only once the store has made it durable.
//!
//! # Example
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(store: haul_store_pool::Pool) -> Result<(), haul_s3_server::Error> {
//! use haul_s3_server::{Config, Server};
//!
//! let server = Server::bind(Config::default(), Arc::new(store))?;
//! println!("serving S3 on http://{}", server.addresses().listen);
//! server.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await
//! # }
//! ```
//!
//! # Promises
//! - A request that was answered with success is durable; an aborted request leaves nothing behind.
//! - The length, `Content-MD5` and `x-amz-checksum-*` that a client declares, in headers or the
//!   trailer, are verified before anything is stored.
//! - Corrupt bytes are never sent with a success: the response is an error with file and offset or,
//!   if a big object is already being sent, the connection is closed before its declared length.
//! - A read never returns an older state of an object than one that was acknowledged before, even
//!   from the cache of hot objects.
//! - A website request reads an object as a client without a signature, whatever its query and its
//!   header fields say. It is no other operation, and selects no version.
//! - An encrypted object is stored encrypted with AES-256-GCM. A read detects any change to the
//!   stored bytes, their order or their length, and bytes from another object.
//! - On public addresses the server listens with TLS, unless plain HTTP is allowed explicitly.
//! - Without keys the server listens on loopback addresses only, and serves only requests whose
//!   host is a name of this machine, which prevents DNS rebinding by web pages.
//! - An operation is executed only if the request's key or a policy of its user has the right to it,
//!   if the key's user owns the bucket, or if the bucket policy or an ACL allows it; and only if no
//!   policy denies it, and the policy of the session allows it. A key that is removed from the
//!   [`KeyRing`] is rejected at the next request, with all temporary keys that it has created.
//! - Secrets and all signatures are compared in constant time. A response does not depend on the
//!   kind of signature.
//! - With an [`AuditLog`], each change and each rejected attempt has a line, which is appended
//!   before the response is sent.
//! - The memory for access log records is limited; a crash loses undelivered records, and every
//!   other loss is counted.
//! - Every limit has a name and a default: [`Limits`].
//!
//! # Cost
//! A hot object costs one `recv` and one `sendmsg` per `GET`, and one `sendfile` if it has more
//! than 256 KiB; another small object one read from the store. A plain `PUT` of up to 8 KiB costs
//! one `recv`, one `sendmsg`, and a share of the sync for concurrent requests. A big object is
//! received, hashed and written concurrently, in two batches of 1 MiB; while it is sent, one chunk
//! of 2 MiB is read ahead. No thread waits for a slow client.
//!
//! # What it is not
//! It has no key management service: clients send encryption keys, or a file has them. Lifecycle
//! rules expire objects and versions and abort uploads; there are no storage classes to which they
//! could move objects. It has no HTTP/2.
//!
//! # Sources
//! The Amazon S3 API reference; RFC 9110 for conditions and ranges; RFC 2047 for metadata.

mod access;
mod acl;
mod admin;
mod answer;
mod audit;
mod auth;
mod body;
mod bucket_logs;
mod buckets;
mod config;
mod encryption;
mod error;
mod errors;
mod events;
mod front;
mod hot;
mod log_limit;
mod memory;
mod metrics;
mod objects;
mod oidc;
mod operations;
mod pattern;
mod policy;
mod request;
mod served;
mod server;
mod service;
mod settings;
mod standby;
mod stored;
mod sts;
mod times;
mod uploads;
mod xml;

pub use access::keys::credentials::Credentials;
pub use access::keys::key::{Key, KeyList};
pub use access::keys::key_file::KeyFile;
pub use access::keys::key_ring::KeyRing;
pub use access::keys::policies::{Group, PolicyHolder, PolicyList};
pub use access::keys::seal::SealingKey;
pub use access::rights::{Grant, Right, Rights, Scope};
pub use audit::AuditLog;
pub use config::{Addresses, Config, Inherited, Limits, Logs};
pub use encryption::envelope::reformat_encryption_attribute;
pub use encryption::operator::{EncryptionKey, EncryptionKeys};
pub use error::{Error, Result};
#[cfg(feature = "nats")]
pub use events::options::NatsLogin;
pub use events::options::{EventService, EventTarget};
pub use events::target::EventTargets;
pub use haul_http_engine::{AccessLog, Lines, LogFormat};
pub use haul_reactor::{HostAddress, Listener, Rate, TcpOptions, wake_once};
pub use metrics::Counts;
pub use oidc::provider::{ProviderClient, Providers};
pub use policy::document::{PolicyDocument, PolicyRequest};
pub use served::ServedStore;
pub use server::{Server, listening::Listening};
pub use settings::lifecycle::document::{
    lifecycle_from_document, lifecycle_to_json, lifecycle_to_xml,
};
pub use standby::StandbyState;
