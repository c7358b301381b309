//! The audit lines for logins to the console and key changes there.

use std::net::IpAddr;
use std::time::SystemTime;

use haul_http_engine::{JsonLine, RequestIdentity};
use haul_line_log::Utc;

use super::AuditLog;

/// A login, a key change, or a failed attempt.
pub(crate) struct KeyRecord<'a> {
    pub(crate) operation: &'static str,
    pub(crate) identity: &'a RequestIdentity,
    pub(crate) client: Option<IpAddr>,
    /// The changed access key; `None` if none was created.
    pub(crate) access_key: Option<&'a str>,
    pub(crate) status: u16,
    pub(crate) error: Option<&'a str>,
    /// What the change gave, by the name of its field: rights, a quota, a policy or a group.
    pub(crate) given: Option<(&'static str, String)>,
}

impl AuditLog {
    /// Appends the line for a login, a key change, or a failed attempt.
    pub(crate) fn key_changed(&self, record: &KeyRecord<'_>) {
        let time = format!("{:.3}", Utc::of(SystemTime::now()));
        let client = record.client.map(|client| client.to_string());
        let mut line = JsonLine::new("time", time.as_bytes())
            .string("request_id", Some(&record.identity.id))
            .string("client", client.as_deref().map(str::as_bytes))
            .string("access_key", record.identity.user.as_deref().map(str::as_bytes))
            .string("operation", Some(record.operation.as_bytes()))
            .string("bucket", None)
            .string("key", record.access_key.map(str::as_bytes))
            .number("status", Some(u64::from(record.status)))
            .string("error", record.error.map(str::as_bytes))
            .number("bytes", None)
            .string("etag", None);
        if let Some((name, text)) = &record.given {
            line = line.string(name, Some(text.as_bytes()));
        }
        self.lines.append(&line.end());
    }
}
