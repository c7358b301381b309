//! S3 and plain HTTP over a [`haul_file_store::Store`].
//!
//! # What it is
//! A server for ordinary S3 clients and for curl. It owns no data: every request becomes one call
//! of the store, made on a thread that may block, and what the store acknowledged as durable is
//! what the client hears as `200 OK`.
//!
//! # Example
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(store: haul_file_store::Store) -> Result<(), haul_s3_server::Error> {
//! use haul_s3_server::{Config, Server};
//!
//! let server = Server::bind(Config::default(), Arc::new(store)).await?;
//! println!("serving S3 on http://{}", server.addresses().listen);
//! server.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await
//! # }
//! ```
//!
//! # Promises
//! - A request that was answered with success is durable; one that was cut short left nothing.
//! - What a client says of its bytes (length, `Content-MD5`, `x-amz-checksum-*` in headers or in
//!   the trailer) is verified before anything is stored.
//! - Damaged bytes never leave under a success: the answer is an error naming file and offset, or,
//!   when a big object is already on its way, the connection breaks before its declared end.
//! - Without credentials the server listens on loopback only, and answers only to hosts that mean
//!   this machine, so that no web page can reach it by another name.
//! - Every limit has a name and a default: [`Limits`].
//!
//! # Cost
//! A small object is one read of the store per `GET` and one sync (shared with its neighbours) per
//! `PUT`. A big one is received, hashed and written at the same time, in two batches of 1 MiB, and
//! sent with one chunk of 1 MiB read ahead. No thread waits for a slow client.
//!
//! # What it is not
//! There are no versions, locks, policies, access lists, lifecycles or forms. Clients that ask
//! about them hear what S3 answers of a bucket that has none. There is no TLS: put a proxy in front.
//!
//! # Sources
//! The Amazon S3 API reference; RFC 9110 for conditions and ranges; signatures, routing and XML by
//! the `s3s` crate.

mod admin;
mod anonymous;
mod answer;
mod attributes;
mod auth;
mod aws_chunked;
mod bucket;
mod checksum;
mod complete;
mod conditions;
mod config;
mod copy;
mod digests;
mod error;
mod errors;
mod front;
mod linger;
mod list;
mod metrics;
mod multipart;
mod names;
mod parts;
mod range;
mod read;
mod receive;
mod send;
mod server;
mod service;
mod stubs;
mod tagging;
mod uploads;
mod write;

pub use config::{Config, Credentials, Limits};
pub use error::{Error, Result};
pub use server::{Addresses, Server};
