//! Changes that wait for a copy of the store.

mod confirmation;
mod operations;
