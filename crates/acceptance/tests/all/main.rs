//! Acceptance tests: real clients against the `haul` program, checking the guarantees of the
//! README.
#![cfg(test)]

mod boto3;
mod browser;
mod chromium;
mod console;
mod console_buckets;
mod console_keys;
mod console_login;
mod console_objects;
mod console_quota;
mod console_versions;
mod damage;
mod failing_disk;
mod files;
mod full_disk;
mod http;
mod keys;
mod kill;
mod large_tree;
mod machine;
mod monitoring;
mod object_store;
mod package;
mod pages;
mod program;
mod rclone;
mod relay;
mod restic;
mod running;
mod s3cmd;
mod server;
mod ssh;
mod sshd;
mod tls;
mod users;
