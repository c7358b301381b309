//! Server-side encryption, with keys of customers and of the operator.

mod changes;
mod crash;
mod helper;
mod named;
mod objects;
mod uploads;
