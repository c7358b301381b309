//! Moves a key with everything that is stored under it to another store of a pool.
//!
//! Needles are copied as they are; only the files of big objects get other identifiers. What both
//! stores have under a key is always a part of the same state: at any moment, and after any crash,
//! the union of both is the key's state, and its newest version is the current one. Therefore each
//! step can be repeated, and the state of a move needs no record of its own.
//!
//! `state` reads what a store has under a key, `plan` compares it with what the other store has
//! (pure), `copy` stores what is missing, and `remove` deletes what both have. `files` copies the
//! files of big objects, which takes long and therefore holds no lock. `moving` is the protocol.

mod copy;
mod files;
mod locks;
mod moved;
mod moving;
mod plan;
mod remove;
mod state;

pub use moved::MovedKey;
