//! Request counters. All are monotonic, except the number of requests in flight.

pub(crate) mod log_counts;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::{Duration, Instant};

use haul_admin_endpoint::RecentRequests;
use haul_sync::Sharded;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::errors::S3ErrorCode;
use crate::log_limit::LogLimit;
use crate::metrics::log_counts::LogCounts;
use crate::request::operation::Operation;

/// The number of buckets in a latency histogram. Bucket i counts latencies below 2^i µs; the last
/// bucket also counts all longer ones.
pub(crate) const LATENCY_BUCKETS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Head,
    Put,
    Delete,
    List,
    Multipart,
    Other,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Get, Self::Head, Self::Put, Self::Delete, Self::List, Self::Multipart, Self::Other];

    /// Returns the kind's label value in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Head => "head",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Multipart => "multipart",
            Self::Other => "other",
        }
    }

    /// Returns a request's kind: by its operation, or by its method if the server does not support
    /// the operation.
    pub(crate) fn of(operation: Option<Operation>, method: &Method) -> Self {
        use Operation as O;
        match operation {
            Some(
                O::CreateMultipartUpload
                | O::UploadPart
                | O::UploadPartCopy
                | O::CompleteMultipartUpload
                | O::AbortMultipartUpload
                | O::ListParts
                | O::ListMultipartUploads,
            ) => Self::Multipart,
            Some(O::ListObjects | O::ListObjectsV2 | O::ListObjectVersions) => Self::List,
            Some(
                O::GetObject
                | O::GetObjectAcl
                | O::GetObjectAttributes
                | O::GetObjectLegalHold
                | O::GetObjectRetention
                | O::GetObjectTagging,
            ) => Self::Get,
            Some(
                O::PutObject
                | O::CopyObject
                | O::PutObjectAcl
                | O::PutObjectLegalHold
                | O::PutObjectRetention
                | O::PutObjectTagging,
            ) => Self::Put,
            Some(O::DeleteObject | O::DeleteObjects | O::DeleteObjectTagging) => Self::Delete,
            _ if *method == Method::HEAD => Self::Head,
            _ => Self::Other,
        }
    }
}

/// A server's request counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    counters: Sharded<Counters>,
    slow: AtomicU64,
    /// The access log counters.
    pub(crate) logs: LogCounts,
    /// The recent requests with errors, and the recent slow ones.
    pub(crate) recent: RecentRequests,
    /// Limits the log lines about requests that the store rejected.
    pub(crate) refusals: LogLimit<S3ErrorCode>,
}

/// The counters that each request changes, shared by some of the threads.
#[derive(Debug, Default)]
struct Counters {
    kinds: [Requests; Kind::ALL.len()],
    begun: AtomicU64,
    ended: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// The counters for one kind of request.
#[derive(Debug, Default)]
struct Requests {
    by_status: [AtomicU64; 5],
    latency: [AtomicU64; LATENCY_BUCKETS],
    latency_us_sum: AtomicU64,
}

/// A snapshot of one request kind's counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestCounts {
    pub(crate) kind: Kind,
    /// Responses with status 100 to 199, 200 to 299, and so on.
    pub(crate) by_status: [u64; 5],
    /// The latency histogram: the time from a request's head to its response's head.
    pub(crate) latency: [u64; LATENCY_BUCKETS],
    pub(crate) latency_us_sum: u64,
}

impl Metrics {
    /// Creates the counters. A request is slow if the server takes at least `slow_from`.
    pub(crate) fn new(slow_from: Option<Duration>) -> Self {
        Self {
            started: Instant::now(),
            counters: Sharded::default(),
            slow: AtomicU64::new(0),
            logs: LogCounts::default(),
            refusals: LogLimit::default(),
            recent: RecentRequests::new(slow_from),
        }
    }

    /// Counts the start of a request.
    pub(crate) fn begin(&self) {
        self.counters.local().begun.fetch_add(1, Relaxed);
    }

    /// Counts a response.
    pub(crate) fn answered(&self, kind: Kind, status: StatusCode, latency: Duration) {
        let requests = &self.counters.local().kinds[kind as usize];
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        requests.by_status[class].fetch_add(1, Relaxed);
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        requests.latency[bucket_of(us)].fetch_add(1, Relaxed);
        requests.latency_us_sum.fetch_add(us, Relaxed);
    }

    /// Counts the end of a request: its response was sent or dropped.
    pub(crate) fn end(&self) {
        self.counters.local().ended.fetch_add(1, Release);
    }

    pub(crate) fn slow(&self) {
        self.slow.fetch_add(1, Relaxed);
    }

    /// Counts received object bytes.
    pub(crate) fn received(&self, bytes: u64) {
        self.counters.local().received_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts sent response bytes.
    pub(crate) fn sent(&self, bytes: u64) {
        self.counters.local().sent_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        // The ends are read first, and then the beginnings that came before them: the difference
        // cannot be negative.
        let ended = self.counters.sum(|part| &part.ended);
        fence(Acquire);
        self.counters.sum(|part| &part.begun) - ended
    }

    pub(crate) fn slow_requests(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.counters.sum(|part| &part.received_bytes)
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.counters.sum(|part| &part.sent_bytes)
    }

    /// Returns a snapshot of the counters for each kind.
    pub(crate) fn requests(&self) -> impl Iterator<Item = RequestCounts> {
        Kind::ALL.into_iter().map(|kind| {
            let sum = |counter: &dyn Fn(&Requests) -> &AtomicU64| {
                self.counters
                    .iter()
                    .map(|part| counter(&part.kinds[kind as usize]).load(Relaxed))
                    .sum()
            };
            RequestCounts {
                kind,
                by_status: std::array::from_fn(|class| sum(&|requests| &requests.by_status[class])),
                latency: std::array::from_fn(|bucket| sum(&|requests| &requests.latency[bucket])),
                latency_us_sum: sum(&|requests| &requests.latency_us_sum),
            }
        })
    }
}

/// A server's request counts since its start.
#[derive(Debug, Clone)]
pub struct Counts(Arc<Metrics>);

impl Counts {
    pub(crate) fn new(metrics: &Arc<Metrics>) -> Self {
        Self(Arc::clone(metrics))
    }

    /// Returns the counts as a JSON object with the keys `seconds`, `requests`, `received_bytes`
    /// and `sent_bytes`. `requests` counts responses by the request's kind, such as `put`, and by
    /// the status class, such as `2xx`; it contains no zeros.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut requests = Map::new();
        for seen in self.0.requests() {
            let classes = (1..).zip(seen.by_status).filter(|(_, count)| *count > 0);
            let counts: Map<String, Value> =
                classes.map(|(class, count)| (format!("{class}xx"), count.into())).collect();
            if !counts.is_empty() {
                requests.insert(seen.kind.name().to_owned(), counts.into());
            }
        }
        json!({
            "seconds": self.0.uptime().as_secs_f64(),
            "requests": requests,
            "received_bytes": self.0.received_bytes(),
            "sent_bytes": self.0.sent_bytes(),
        })
    }
}

/// Returns the first bucket whose upper bound exceeds `us`.
fn bucket_of(us: u64) -> usize {
    let bits = (u64::BITS - us.leading_zeros()) as usize;
    bits.min(LATENCY_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    #[test]
    fn counts_have_the_classes_of_status_that_occurred() {
        let metrics = Arc::new(Metrics::new(None));
        let counts = Counts::new(&metrics);
        assert_eq!(counts.json()["requests"], json!({}));
        for status in [StatusCode::OK, StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            metrics.answered(Kind::Get, status, Duration::ZERO);
        }
        metrics.sent(7);
        let json = counts.json();
        let name = Kind::Get.name();
        assert_eq!(json["requests"], json!({ name: { "2xx": 2, "4xx": 1 } }));
        assert_eq!((&json["sent_bytes"], &json["received_bytes"]), (&json!(7), &json!(0)));
    }

    #[test]
    fn kind_is_that_of_the_operation_or_the_method() {
        for (line, kind) in [
            ("GET /", Kind::Other),
            ("GET /b", Kind::List),
            ("GET /b/", Kind::List),
            ("GET /b?list-type=2&prefix=x", Kind::List),
            ("GET /b?prefix=x", Kind::List),
            ("GET /b?versions", Kind::List),
            ("GET /b?uploads", Kind::Multipart),
            ("GET /b?location", Kind::Other),
            ("GET /b/k", Kind::Get),
            ("GET /b/k/l?partNumber=1", Kind::Get),
            ("GET /b/k?tagging", Kind::Get),
            ("HEAD /b", Kind::Head),
            ("HEAD /b/k", Kind::Head),
            ("HEAD /", Kind::Head),
            ("PUT /b", Kind::Other),
            ("PUT /b/k", Kind::Put),
            ("PUT /b/k?acl", Kind::Put),
            ("PUT /b/k?partNumber=1&uploadId=2", Kind::Multipart),
            ("PUT /b?website", Kind::Other),
            ("POST /b/k?uploads", Kind::Multipart),
            ("POST /b?delete", Kind::Delete),
            ("DELETE /b/k", Kind::Delete),
            ("DELETE /b", Kind::Other),
        ] {
            let head = head(line, &[]);
            let operation = Operation::from_request(&head).ok();
            assert_eq!(Kind::of(operation, &head.method), kind, "{line}");
        }
    }

    #[test]
    fn latency_is_below_the_bound_of_its_bucket() {
        for (us, bucket) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)] {
            assert_eq!(bucket_of(us), bucket, "{us}");
            assert!(us < 1 << bucket);
        }
        assert_eq!(bucket_of(u64::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn responses_are_counted_by_kind_and_status_class() {
        let metrics = Metrics::new(None);
        metrics.answered(Kind::Put, StatusCode::OK, Duration::from_micros(5));
        metrics.answered(Kind::Put, StatusCode::NOT_FOUND, Duration::from_micros(6));
        let put = metrics.requests().find(|seen| seen.kind == Kind::Put).unwrap();
        assert_eq!(put.by_status, [0, 1, 0, 1, 0]);
        assert_eq!(put.latency[3], 2);
        assert_eq!(put.latency_us_sum, 11);
    }
}
