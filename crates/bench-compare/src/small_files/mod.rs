//! Stores small files durably in databases, the rivals of Haul's file store. Each file is an object:
//! a value under a key.
//!
//! Each database is measured in two forms: [`Direct`], in which each put is one transaction of the
//! calling thread, and [`Batched`], in which one thread commits the puts of all writers.

mod batched;
mod database;
mod direct;
mod fjall;
mod lmdb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;
mod variants;

pub(crate) use variants::VARIANTS;
