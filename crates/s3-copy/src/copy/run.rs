//! Runs a whole copy.

use bytes::Bytes;

use super::bucket::BucketCopy;
use super::settings;
use crate::client::{Client, Payload, Request};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::report::{Event, Events, Summary};

/// Copies buckets, and returns the totals. Blocks the thread, on which `events` is called.
///
/// # Errors
/// An error means that nothing was copied: a server cannot be reached or rejects the keys, or the
/// source does not have a named bucket. All later errors are events, and counted.
pub fn run(options: &Options, events: &dyn Events) -> Result<Summary, Error> {
    // Another provider that the process selected stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    // The tasks of connections run on these threads, the copy on the thread of the caller.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("s3-copy")
        .enable_all()
        .build()
        .map_err(|error| Error::Start(error.into()))?;
    runtime.block_on(copy(options, events))
}

async fn copy(options: &Options, events: &dyn Events) -> Result<Summary> {
    let from = Client::new(&options.from, options.jobs)?;
    let to = Client::new(&options.to, options.jobs)?;
    if from.url() == to.url() {
        let why = "it is both the source and the target".to_owned();
        return Err(Error::Url { url: options.to.url.clone(), why });
    }
    let buckets = buckets(&from, &options.buckets).await?;
    check_target(&to).await?;
    let mut summary = Summary::default();
    for bucket in &buckets {
        if events.is_stopped() {
            summary.is_stopped = true;
        }
        if summary.is_stopped {
            break;
        }
        let (from, to) = (&from, &to);
        let copy = BucketCopy { options, from, to, bucket, events, summary: &mut summary };
        if let Err(error) = copy.run().await {
            summary.failed += 1;
            events.happened(&Event::Failed { bucket, key: "", error: &error }, &summary);
            if matches!(error, Error::Connection { .. }) {
                break;
            }
        }
    }
    Ok(summary)
}

/// Returns the buckets to copy.
async fn buckets(from: &Client, named: &[String]) -> Result<Vec<String>> {
    if named.is_empty() {
        let list = from.document(&Request::get("", "")).await?;
        let buckets = list.all("Buckets").flat_map(|buckets| buckets.all("Bucket"));
        return Ok(buckets.map(|bucket| bucket.text(&["Name"]).to_owned()).collect());
    }
    for bucket in named {
        if !settings::exists(from, bucket).await? {
            let request = Request::new(reqwest::Method::HEAD, bucket, "");
            return Err(Error::Rejected {
                request: from.describe(&request),
                status: 404,
                code: "NoSuchBucket".to_owned(),
                message: format!("the source has no bucket \"{bucket}\""),
            });
        }
    }
    Ok(named.to_vec())
}

/// Fails if the target cannot be reached, or rejects the keys. Keys need not have the right to list
/// all buckets.
async fn check_target(to: &Client) -> Result<()> {
    match to.send_once(&Request::get("", ""), Payload::Bytes(Bytes::new())).await {
        Err(error) if error.code() != "AccessDenied" => Err(error),
        _ => Ok(()),
    }
}
