//! `haul store import-tar` and `haul store export-tar`.

pub(super) mod export;
pub(super) mod import;
