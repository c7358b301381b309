//! Real clients against the real program: what a user does, from outside, with the promises of
//! the README as what must hold.
#![cfg(test)]

mod boto3;
mod damage;
mod files;
mod full_disk;
mod http;
mod keys;
mod kill;
mod large_tree;
mod program;
mod random;
mod rclone;
mod readme;
mod relay;
mod running;
mod server;
mod ssh;
mod sshd;
