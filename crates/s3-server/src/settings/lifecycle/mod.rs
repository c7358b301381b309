//! Lifecycle configurations: conversion of S3's rules in days to the store's rules in seconds.
//!
//! `configuration` is the document with the rules, `parse` validates the rules that clients send,
//! `render` converts rules back, `document` does all of this for files, and `operations` implements
//! the requests and the header `x-amz-expiration`.

pub(crate) mod configuration;
pub(crate) mod document;
pub(crate) mod operations;
mod parse;
mod render;

use std::time::Duration;

/// A day. S3 rounds up the end of an age in days to the next midnight UTC.
const DAY: Duration = Duration::from_hours(24);

/// The note on a rule whose prefix is in the rule's element `Prefix`.
const RULE_PREFIX: &str = "prefix";

/// The note on a rule whose prefix, which may be empty, is in the filter's element `Prefix`.
const FILTER_PREFIX: &str = "filter-prefix";

/// The note on a rule whose filter has the element `And`.
const AND: &str = "and";

#[cfg(test)]
mod tests;
