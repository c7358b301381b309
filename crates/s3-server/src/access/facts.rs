//! The request properties that policy conditions compare.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use form_urlencoded::parse;
use time::OffsetDateTime;

use crate::policy::condition::{Facts, Key, LockPart};
use crate::request::fields::Fields;
use crate::request::head::Head;
use crate::times::parse_time;

/// The header with a new object's tags, in the format of a query.
const TAGGING: &str = "x-amz-tagging";

/// The operations that set the tags in the header on an object.
const WITH_TAGS: [&str; 3] = ["PutObject", "CopyObject", "CreateMultipartUpload"];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    /// The client's address.
    pub(crate) peer: Option<IpAddr>,
    /// `true` if the server terminates TLS.
    pub(crate) is_encrypted: bool,
}

/// The properties of a request that policy conditions compare.
#[derive(Debug, Clone)]
pub(crate) struct RequestFacts {
    pub(crate) connection: Option<Connection>,
    pub(crate) head: Arc<Head>,
    /// A listing's prefix, which replaces the prefix in the query.
    pub(crate) prefix: Option<String>,
    /// The user of the key that signed the request.
    pub(crate) user: Option<Arc<str>>,
    /// The version ID in the request.
    pub(crate) version: Option<String>,
    /// The tags that the request sets on an object.
    pub(crate) request_tags: Vec<(String, String)>,
    /// The lock that the request sets on an object.
    pub(crate) lock: RequestedLock,
    /// The object's present tags, if a policy needs them.
    pub(crate) existing_tags: BTreeMap<String, String>,
}

/// The object lock that a request sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestedLock {
    mode: Option<String>,
    /// The end of the retention, in seconds since 1970.
    until_s: Option<i64>,
    legal_hold: Option<String>,
}

impl RequestedLock {
    /// Returns the lock in the headers of a request that stores an object.
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).map(str::to_owned);
        let until = fields.text("x-amz-object-lock-retain-until-date");
        let until = until.and_then(parse_time);
        Self {
            mode: text("x-amz-object-lock-mode"),
            until_s: until.map(OffsetDateTime::unix_timestamp),
            legal_hold: text("x-amz-object-lock-legal-hold"),
        }
    }

    /// Returns the lock of a request that replaces an object's retention.
    pub(crate) fn from_retention(mode: Option<&str>, until: Option<OffsetDateTime>) -> Self {
        let until_s = until.map(OffsetDateTime::unix_timestamp);
        Self { mode: mode.map(str::to_owned), until_s, legal_hold: None }
    }

    /// Returns the lock of a request that replaces an object's legal hold.
    pub(crate) fn from_legal_hold(status: Option<&str>) -> Self {
        Self { legal_hold: status.map(str::to_owned), ..Self::default() }
    }

    fn part(&self, part: LockPart, now_s: u64) -> Option<Cow<'_, str>> {
        match part {
            LockPart::Mode => self.mode.as_deref().map(Cow::Borrowed),
            LockPart::RetainUntil => self.until_s.map(|until| until.to_string().into()),
            LockPart::RemainingDays => {
                let left = self.until_s?.saturating_sub_unsigned(now_s).max(0).unsigned_abs();
                Some(left.div_ceil(DAY_SECONDS).to_string().into())
            }
            LockPart::LegalHold => self.legal_hold.as_deref().map(Cow::Borrowed),
        }
    }
}

const DAY_SECONDS: u64 = 24 * 3600;

fn now_s() -> Option<u64> {
    Some(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Returns the tags in an operation's headers. A copy keeps its source's tags, unless it replaces
/// them.
pub(crate) fn request_tags(operation: &str, fields: &Fields) -> Vec<(String, String)> {
    let replaces = fields.text("x-amz-tagging-directive") == Some("REPLACE");
    let is_used = WITH_TAGS.contains(&operation) && (operation != "CopyObject" || replaces);
    let tags = fields.first(TAGGING).filter(|_| is_used);
    tags.map(|tags| parse(tags).into_owned().collect()).unwrap_or_default()
}

impl Facts for RequestFacts {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        match key {
            Key::SourceIp => {
                let peer = self.connection.and_then(|connection| connection.peer)?;
                Some(peer.to_canonical().to_string().into())
            }
            Key::SecureTransport => {
                Some(self.connection.is_some_and(|one| one.is_encrypted).to_string().into())
            }
            Key::Time => Some(now_s()?.to_string().into()),
            Key::Lock(part) => self.lock.part(*part, now_s()?),
            Key::User => self.user.as_deref().map(Cow::Borrowed),
            // Users act for themselves: there is no calling service.
            Key::SourceArn | Key::SourceAccount => None,
            // The bucket's default may decide about the encryption: see `stored_facts`.
            Key::Encryption(_) => None,
            Key::Header(name) => self.head.fields.joined(name),
            Key::Query("versionId") => self.version.as_deref().map(Cow::Borrowed),
            Key::Query("prefix") if self.prefix.is_some() => {
                self.prefix.as_deref().map(Cow::Borrowed)
            }
            Key::Query(name) => self.head.query.get(name).map(Cow::Borrowed),
            Key::ExistingTag(name) => self.existing_tags.get(name).map(|value| value.into()),
            Key::RequestTag(name) => {
                let tag = self.request_tags.iter().find(|(found, _)| found == name);
                tag.map(|(_, value)| value.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    #[test]
    fn lock_is_that_of_the_fields_or_of_the_body() {
        let fields = [
            ("x-amz-object-lock-mode", "GOVERNANCE"),
            ("x-amz-object-lock-retain-until-date", "1970-01-11T00:00:01Z"),
            ("x-amz-object-lock-legal-hold", "ON"),
        ];
        let given = RequestedLock::from_fields(&fields.into_iter().collect());
        let parts =
            [LockPart::Mode, LockPart::RetainUntil, LockPart::RemainingDays, LockPart::LegalHold];
        let of = |lock: &RequestedLock, now_s| {
            parts.map(|part| lock.part(part, now_s).map(Cow::into_owned).unwrap_or_default())
        };
        assert_eq!(of(&given, 0), ["GOVERNANCE", "864001", "11", "ON"]);
        assert_eq!(of(&given, 1), ["GOVERNANCE", "864001", "10", "ON"]);
        assert_eq!(of(&given, 900_000)[2], "0");
        assert_eq!(of(&RequestedLock::default(), 0), [""; 4]);
        let until = OffsetDateTime::from_unix_timestamp(60).ok();
        let given = RequestedLock::from_retention(Some("COMPLIANCE"), until);
        assert_eq!(of(&given, 0), ["COMPLIANCE", "60", "1", ""]);
        assert_eq!(of(&RequestedLock::from_legal_hold(Some("OFF")), 0), ["", "", "", "OFF"]);
    }

    #[test]
    fn properties_are_those_of_the_request() {
        let fields = [("referer", "http://x/"), (TAGGING, "a=1%20&b=2")];
        let head = head("GET /b?list-type=2&prefix=a%2Fb&versionId=ignored", &fields);
        let mut facts = RequestFacts {
            connection: Some(Connection {
                peer: Some("::ffff:192.0.2.1".parse().unwrap()),
                is_encrypted: false,
            }),
            head: Arc::new(head),
            prefix: None,
            version: Some("7".to_owned()),
            request_tags: Vec::new(),
            lock: RequestedLock::default(),
            user: Some("ann".into()),
            existing_tags: BTreeMap::from([("a".to_owned(), "old".to_owned())]),
        };
        assert!(request_tags("PutObjectTagging", &facts.head.fields).is_empty());
        assert!(request_tags("CopyObject", &facts.head.fields).is_empty());
        facts.request_tags = request_tags("PutObject", &facts.head.fields);
        let of = |facts: &RequestFacts, key: &Key| facts.value(key).map(Cow::into_owned);
        for (key, value) in [
            (Key::SourceIp, Some("192.0.2.1")),
            (Key::SecureTransport, Some("false")),
            (Key::User, Some("ann")),
            (Key::Header("referer".to_owned()), Some("http://x/")),
            (Key::Header("x-amz-acl".to_owned()), None),
            (Key::Query("prefix"), Some("a/b")),
            (Key::Query("delimiter"), None),
            (Key::Query("versionId"), Some("7")),
            (Key::RequestTag("a".to_owned()), Some("1 ")),
            (Key::RequestTag("c".to_owned()), None),
            (Key::ExistingTag("a".to_owned()), Some("old")),
        ] {
            assert_eq!(of(&facts, &key).as_deref(), value, "{key:?}");
        }
        assert!(of(&facts, &Key::Time).unwrap().parse::<u64>().unwrap() > 1_700_000_000);
        facts.prefix = Some("c".to_owned());
        assert_eq!(of(&facts, &Key::Query("prefix")).as_deref(), Some("c"));
        (facts.connection, facts.user) = (None, None);
        assert_eq!((of(&facts, &Key::SourceIp), of(&facts, &Key::User)), (None, None));
        assert_eq!(of(&facts, &Key::SecureTransport).as_deref(), Some("false"));
    }
}
