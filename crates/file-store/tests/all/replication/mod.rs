//! Copies of a store, and changes that wait for them.

mod confirmation;
mod copy;
mod operations;
