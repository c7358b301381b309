//! The bucket documents that decisions about requests need. Each is parsed at its first use after a
//! change to the bucket's settings, and cached with them.

use std::sync::{Arc, OnceLock};

use haul_file_store::{Attributes, BucketSettings};

use crate::policy::statement::Policy;
use crate::settings::cors::CorsConfiguration;
use crate::settings::notification::configuration::NotificationConfiguration;
use crate::settings::public_access_block::PublicAccessBlock;
use crate::settings::website::configuration::WebsiteConfiguration;
use crate::settings::{CORS, NOTIFICATION, POLICY, PUBLIC_ACCESS_BLOCK, WEBSITE, parse};
use crate::xml::Document;

/// A document; `None` if the bucket has none, or the reason why it cannot be applied.
pub(crate) type Parsed<T> = Result<Option<Arc<T>>, String>;

/// A bucket policy, and whether it is restricted.
pub(crate) struct BucketPolicy {
    pub(crate) policy: Policy,
    /// `true` if the policy is public and the bucket's `RestrictPublicBuckets` setting is on. Its
    /// Allow statements then have no effect; its Deny statements still apply.
    pub(crate) is_restricted: bool,
}

/// A bucket's cached documents. The store caches one value with the settings.
#[derive(Default)]
struct Documents {
    policy: OnceLock<Parsed<BucketPolicy>>,
    cors: OnceLock<Parsed<CorsConfiguration>>,
    website: OnceLock<Parsed<WebsiteConfiguration>>,
    notification: OnceLock<Parsed<NotificationConfiguration>>,
}

/// Returns the policy in a bucket's settings.
pub(crate) fn policy(settings: &BucketSettings, bucket: &str) -> Parsed<BucketPolicy> {
    if settings.get(POLICY).is_none() {
        return Ok(None);
    }
    documents(settings).policy.get_or_init(|| parse_policy(settings, bucket)).clone()
}

/// Returns the CORS rules in a bucket's settings.
pub(crate) fn cors(settings: &BucketSettings, bucket: &str) -> Parsed<CorsConfiguration> {
    if settings.get(CORS).is_none() {
        return Ok(None);
    }
    documents(settings).cors.get_or_init(|| parse_cors(settings, bucket)).clone()
}

/// Returns the website in a bucket's settings.
pub(crate) fn website(settings: &BucketSettings, bucket: &str) -> Parsed<WebsiteConfiguration> {
    if settings.get(WEBSITE).is_none() {
        return Ok(None);
    }
    let parsed = || {
        let website = parse(settings, bucket, WEBSITE).map_err(|error| error.to_string())?;
        Ok(website.map(Arc::new))
    };
    documents(settings).website.get_or_init(parsed).clone()
}

/// Returns the notification rules in a bucket's settings.
pub(crate) fn notification(settings: &BucketSettings) -> Parsed<NotificationConfiguration> {
    let parsed = || {
        let Some(text) = settings.get(NOTIFICATION) else { return Ok(None) };
        let rules = NotificationConfiguration::parse(text.as_bytes());
        rules.map(|rules| Some(Arc::new(rules))).map_err(|error| error.to_string())
    };
    documents(settings).notification.get_or_init(parsed).clone()
}

fn documents(settings: &BucketSettings) -> Arc<Documents> {
    settings.derived(|_| Documents::default())
}

fn parse_policy(settings: &Attributes, bucket: &str) -> Parsed<BucketPolicy> {
    let Some(text) = settings.get(POLICY) else { return Ok(None) };
    let policy = Policy::parse(text, bucket)?;
    let block: Option<PublicAccessBlock> =
        parse(settings, bucket, PUBLIC_ACCESS_BLOCK).map_err(|error| error.to_string())?;
    let restricts = block.is_some_and(|block| block.restrict_public_buckets);
    let is_restricted = restricts && policy.is_public();
    Ok(Some(Arc::new(BucketPolicy { policy, is_restricted })))
}

fn parse_cors(settings: &Attributes, bucket: &str) -> Parsed<CorsConfiguration> {
    let rules = parse(settings, bucket, CORS).map_err(|error| error.to_string())?;
    Ok(rules.map(Arc::new))
}

#[cfg(test)]
mod tests {
    use haul_file_store::Options;
    use haul_store_pool::Pool;

    use super::*;

    const POLICY_TEXT: &str = r#"{"Statement":{"Effect":"Allow","Principal":"*",
        "Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*"}}"#;
    const CORS_TEXT: &str = "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod>\
        <AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>";

    /// Returns a store with a bucket that has these settings.
    fn store(settings: &[(&str, &str)]) -> (Pool, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        for (name, text) in settings {
            store.set_bucket_setting("bucket", name, Some(text)).unwrap();
        }
        (store, dir)
    }

    /// Returns one of the bucket's documents, as each request reads it.
    fn read<T>(store: &Pool, of: fn(&BucketSettings, &str) -> Parsed<T>) -> Parsed<T> {
        of(&store.bucket_settings("bucket").unwrap(), "bucket")
    }

    #[test]
    fn documents_are_parsed_once_until_a_setting_changes() {
        let (store, _dir) = store(&[(POLICY, POLICY_TEXT), (CORS, CORS_TEXT)]);
        let documents = || {
            let (policy, rules) = (read(&store, policy), read(&store, cors));
            (policy.unwrap().unwrap(), rules.unwrap().unwrap())
        };
        let first = documents();
        for _ in 0..1000 {
            let (policy, rules) = documents();
            assert!(Arc::ptr_eq(&first.0, &policy) && Arc::ptr_eq(&first.1, &rules));
        }
        let block = "<PublicAccessBlockConfiguration><RestrictPublicBuckets>true\
                     </RestrictPublicBuckets></PublicAccessBlockConfiguration>";
        store.set_bucket_setting("bucket", PUBLIC_ACCESS_BLOCK, Some(block)).unwrap();
        assert!(!first.0.is_restricted && documents().0.is_restricted);
        let rules = CORS_TEXT.replace("GET", "PUT");
        store.set_bucket_setting("bucket", CORS, Some(&rules)).unwrap();
        assert_eq!(documents().1.rules[0].allowed_methods, ["PUT"]);
    }

    #[test]
    fn malformed_document_does_not_hide_the_other() {
        let (store, _dir) = store(&[(POLICY, "{"), (CORS, CORS_TEXT)]);
        assert!(read(&store, policy).is_err());
        assert!(read(&store, cors).unwrap().is_some());
        store.set_bucket_setting("bucket", CORS, Some("<CORSRule>")).unwrap();
        store.set_bucket_setting("bucket", POLICY, Some(POLICY_TEXT)).unwrap();
        assert!(read(&store, policy).unwrap().is_some());
        assert!(read(&store, cors).is_err());
        store.set_bucket_setting("bucket", CORS, None).unwrap();
        store.set_bucket_setting("bucket", POLICY, None).unwrap();
        assert!(read(&store, policy).unwrap().is_none() && read(&store, cors).unwrap().is_none());
    }
}
