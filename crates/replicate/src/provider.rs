//! The clients for different providers' object stores.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreScheme, Result, RetryConfig};

/// The time after which a request that made no progress is cancelled and retried.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The time for which a failed request is retried before the call fails.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the client for a URL with a scheme that this crate supports, and the prefix in it.
/// `options` override `environment`, whose unknown names are ignored.
pub(crate) fn build(
    url: &url::Url,
    environment: &[(String, String)],
    options: &[(String, String)],
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let unknown = || Error::NotSupported { source: "use s3://, gs:// or az://".into() };
    let (scheme, prefix) = ObjectStoreScheme::parse(url).map_err(|_unknown| unknown())?;
    let client = ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_allow_http(true)
        .with_user_agent(reqwest::header::HeaderValue::from_static("haul"));
    let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    macro_rules! built {
        ($builder:expr) => {{
            let mut builder =
                $builder.with_url(url.as_str()).with_client_options(client).with_retry(retry);
            for (name, value) in environment {
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            for (name, value) in options {
                // The error names the option: data must not go elsewhere because of a typo.
                builder = builder.with_config(name.to_ascii_lowercase().parse()?, value);
            }
            Arc::new(builder.build()?) as Arc<dyn ObjectStore>
        }};
    }
    let store = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let is_encrypted = is_encrypted(environment) && is_encrypted(options);
            built!(AmazonS3Builder::new().with_unsigned_payload(is_encrypted))
        }
        ObjectStoreScheme::GoogleCloudStorage => built!(GoogleCloudStorageBuilder::new()),
        ObjectStoreScheme::MicrosoftAzure => built!(MicrosoftAzureBuilder::new()),
        _ => return Err(unknown()),
    };
    Ok((store, prefix))
}

/// `true` if no option names an endpoint without TLS. TLS detects changed bytes, so S3 requests
/// need no SHA-256 over them.
fn is_encrypted(options: &[(String, String)]) -> bool {
    !options.iter().any(|(key, value)| {
        key.to_ascii_lowercase().contains("endpoint")
            && value.trim_start().to_ascii_lowercase().starts_with("http://")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_without_tls_is_recognized() {
        let is_encrypted =
            |key: &str, value: &str| is_encrypted(&[(key.to_owned(), value.to_owned())]);
        for key in ["aws_endpoint", "AWS_ENDPOINT_URL", "endpoint", "aws_endpoint_url_s3"] {
            assert!(is_encrypted(key, "https://s3.example.org"), "{key}");
            assert!(!is_encrypted(key, "http://127.0.0.1:9000"), "{key}");
            assert!(!is_encrypted(key, " HTTP://127.0.0.1:9000"), "{key}");
        }
        assert!(is_encrypted("aws_region", "us-east-1"));
    }

    #[test]
    fn unknown_option_is_named_unless_it_is_of_the_environment() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let pairs = |text: &str| -> Vec<(String, String)> {
            let pair = |part: &str| part.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
            text.split_whitespace().filter_map(pair).collect()
        };
        let error = |url: &str, environment: &str, options: &str| {
            let url = url::Url::parse(url).unwrap();
            let built = build(&url, &pairs(environment), &pairs(options));
            built.err().map(|error| haul_disk::error_chain(&error).to_string())
        };
        let aws = "AWS_ACCESS_KEY_ID=a AWS_EC2_METADATA_DISABLED=true AWS_PROFILE=x";
        assert_eq!(error("s3://b/p", aws, "aws_region=r AWS_Secret_Access_Key=b timeout=5s"), None);
        for (url, option) in [
            ("s3://b/p", "aws_regoin"),
            ("s3://b/p", "google_service_account"),
            ("gs://b/p", "aws_region"),
            ("az://b/p", "azure_storage_acount_name"),
        ] {
            let found = error(url, aws, &format!("{option}=x"));
            assert!(found.as_ref().is_some_and(|text| text.contains(option)), "{url}: {found:?}");
        }
    }
}
