//! Copies buckets: their settings, and the keys that the plan names.

mod bucket;
mod headers;
mod object;
mod parts;
mod run;
mod settings;
mod version;

pub use run::run;
