//! Presigned URLs (AWS Signature Version 4) for the console's links. Pure.

use form_urlencoded::parse;
use ring::{digest, hmac};
use time::OffsetDateTime;

use crate::access::keys::key_ring::ActiveKey;
use crate::auth::REGION;
use crate::auth::canonical::{push_encoded, push_hex};

/// The longest time for which a presigned URL is valid, in seconds.
const SECONDS_MAX: u32 = 7 * 24 * 60 * 60;

/// The object that a link names, and the time for which the link is valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    bucket: String,
    key: String,
    seconds: u32,
}

impl Link {
    /// Parses the query in a request for a link.
    pub(super) fn from_query(query: Option<&str>) -> Option<Self> {
        let value = |wanted: &str| {
            let mut pairs = parse(query.unwrap_or_default().as_bytes());
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let (bucket, key) = (value("bucket")?, value("key")?);
        let seconds = value("seconds")?.parse().ok()?;
        let is_valid = (1..=SECONDS_MAX).contains(&seconds) && !bucket.is_empty();
        (is_valid && !key.is_empty()).then_some(Self { bucket, key, seconds })
    }

    /// Returns the URL for a server at `host`, signed with `key` if there are keys. It is valid no
    /// longer than `key`.
    pub(super) fn url(
        &self,
        (scheme, host): (&str, &str),
        key: Option<&ActiveKey>,
        now: OffsetDateTime,
    ) -> Option<String> {
        let mut path = String::from("/");
        push_encoded(&mut path, &self.bucket);
        path.push('/');
        push_encoded(&mut path, &self.key);
        let Some(key) = key else { return Some(format!("{scheme}://{host}{path}")) };
        let format =
            time::macros::format_description!("[year][month][day]T[hour][minute][second]Z");
        let date = now.format(format).ok()?;
        let scope = format!("{}/{REGION}/s3/aws4_request", date.get(..8)?);
        let mut credential = String::new();
        push_encoded(&mut credential, &format!("{}/{scope}", key.access_key));
        let credential = credential.replace('/', "%2F");
        // A session's token is in Base64url, which needs no encoding.
        let token = key.session.as_ref().map(|session| &*session.token);
        let token = token.map(|token| format!("&X-Amz-Security-Token={token}")).unwrap_or_default();
        let key_left_s = key.expires_s().map_or(i64::MAX, |end| end - now.unix_timestamp());
        let seconds = i64::from(self.seconds).min(key_left_s).max(1);
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={date}\
             &X-Amz-Expires={seconds}{token}&X-Amz-SignedHeaders=host"
        );
        let canonical = format!("GET\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD");
        let hash = digest::digest(&digest::SHA256, canonical.as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", in_hex(hash.as_ref()));
        let signature = hmac::sign(&*key.signing_key(&scope)?, text.as_bytes());
        let signature = in_hex(signature.as_ref());
        Some(format!("{scheme}://{host}{path}?{query}&X-Amz-Signature={signature}"))
    }
}

fn in_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key_ring::SessionLimits;

    #[test]
    fn query_names_an_object_and_a_time() {
        let link = Link::from_query(Some("bucket=b&key=a%2Fb+c&seconds=60")).unwrap();
        assert_eq!(link, Link { bucket: "b".into(), key: "a/b c".into(), seconds: 60 });
        for query in [
            "",
            "bucket=b&key=k",
            "bucket=b&key=k&seconds=0",
            "bucket=b&key=k&seconds=604801",
            "bucket=&key=k&seconds=1",
            "bucket=b&key=&seconds=1",
        ] {
            assert_eq!(Link::from_query(Some(query)), None, "{query}");
        }
    }

    /// The example in the AWS documentation, "Authenticating Requests: Using Query Parameters",
    /// signs a host that begins with the bucket; this URL has the bucket in the path.
    #[test]
    fn link_has_the_parts_of_a_presigned_url() {
        let credentials =
            Credentials { access_key: "AKIAIOSFODNN7EXAMPLE".into(), secret_key: "secret".into() };
        let key = ActiveKey::administrator(credentials);
        let link = Link { bucket: "b".into(), key: "a b/ä".into(), seconds: 86_400 };
        let now = OffsetDateTime::from_unix_timestamp(1_369_353_600).unwrap();
        let url = link.url(("http", "localhost:9000"), Some(&key), now).unwrap();
        let start = "http://localhost:9000/b/a%20b/%C3%A4?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                     &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                     &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                     &X-Amz-Signature=";
        assert!(url.starts_with(start), "{url}");
        assert_eq!(url.len(), start.len() + 64);
        let plain = link.url(("http", "localhost:9000"), None, now).unwrap();
        assert_eq!(plain, "http://localhost:9000/b/a%20b/%C3%A4");
    }

    #[test]
    fn link_of_a_temporary_key_ends_with_it() {
        let credentials =
            |name: &str| Credentials { access_key: name.into(), secret_key: "secret".into() };
        let limits = SessionLimits { policy: None, token: "token".into() };
        let administrator = ActiveKey::administrator(credentials("A"));
        let key = administrator.limited(credentials("T"), limits, 1_060);
        let link = Link { bucket: "b".into(), key: "k".into(), seconds: 90 };
        for (now, seconds) in [(0, 90), (1_000, 60), (1_060, 1)] {
            let now = OffsetDateTime::from_unix_timestamp(now).unwrap();
            let url = link.url(("http", "localhost:9000"), Some(&key), now).unwrap();
            let end = format!("&X-Amz-Expires={seconds}&X-Amz-Security-Token=token&");
            assert!(url.contains(&end), "{url}");
        }
    }
}
