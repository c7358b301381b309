//! The recent requests that failed, were refused or were slow, in memory of a fixed size.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// The number of requests of each class that are stored.
const REQUESTS_MAX: usize = 100;

/// The part of a path that is stored. A key has at most 1,024 bytes, which may be encoded.
const PATH_BYTES_MAX: usize = 2048;

/// A request that has been answered.
#[derive(Debug, Clone)]
pub(crate) struct RecentRequest {
    pub(crate) ended: SystemTime,
    /// The identifier in the logs and the response.
    pub(crate) id: [u8; 16],
    pub(crate) access_key: Option<Arc<str>>,
    pub(crate) kind: &'static str,
    /// The path as the client sent it, without the query.
    pub(crate) path: Box<str>,
    pub(crate) status: u16,
    /// The S3 error code; empty if the response has none.
    pub(crate) code: Box<str>,
    /// From the head of the request to the head of the response.
    pub(crate) duration: Duration,
    /// The part of it after the last byte of the request.
    pub(crate) answering: Duration,
}

/// The recent requests by class, so that many of one class do not displace those of another.
#[derive(Debug, Default)]
pub(crate) struct RecentRequests {
    failed: Mutex<VecDeque<RecentRequest>>,
    refused: Mutex<VecDeque<RecentRequest>>,
    slow: Mutex<VecDeque<RecentRequest>>,
}

impl RecentRequests {
    /// Stores a request with an error, or one that was slow; others are dropped.
    pub(crate) fn add(&self, mut request: RecentRequest, is_slow: bool) {
        let class = match request.status {
            500.. => Some(&self.failed),
            400..500 => Some(&self.refused),
            _ => None,
        };
        if request.path.len() > PATH_BYTES_MAX {
            request.path = request.path[..request.path.floor_char_boundary(PATH_BYTES_MAX)].into();
        }
        let classes = [class, is_slow.then_some(&self.slow)];
        for class in classes.into_iter().flatten() {
            let mut requests = class.lock();
            if requests.len() >= REQUESTS_MAX {
                requests.pop_front();
            }
            requests.push_back(request.clone());
        }
    }

    /// Returns all requests as JSON, the newest first.
    pub(crate) fn json(&self) -> Value {
        let list = |class: &Mutex<VecDeque<RecentRequest>>| -> Value {
            class.lock().iter().rev().map(RecentRequest::json).collect()
        };
        json!({
            "failed": list(&self.failed),
            "refused": list(&self.refused),
            "slow": list(&self.slow),
        })
    }
}

impl RecentRequest {
    fn json(&self) -> Value {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        json!({
            "unix_ms": ms(self.ended.duration_since(UNIX_EPOCH).unwrap_or_default()).round(),
            "id": str::from_utf8(&self.id).unwrap_or_default(),
            "access_key": self.access_key.as_deref(),
            "kind": self.kind,
            "path": self.path,
            "status": self.status,
            "code": self.code,
            "duration_ms": ms(self.duration),
            "answering_ms": ms(self.answering),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: usize, status: u16) -> RecentRequest {
        RecentRequest {
            ended: UNIX_EPOCH + Duration::from_millis(number as u64),
            id: *b"0123456789ABCDEF",
            access_key: Some("key".into()),
            kind: "get",
            path: format!("/bucket/{number}").into(),
            status,
            code: "NoSuchKey".into(),
            duration: Duration::from_millis(5),
            answering: Duration::from_micros(1500),
        }
    }

    fn paths(recent: &RecentRequests, class: &str) -> Vec<String> {
        let json = recent.json();
        let requests = json[class].as_array().unwrap().iter();
        requests.map(|request| request["path"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn newest_requests_of_each_class_remain() {
        let recent = RecentRequests::default();
        recent.add(request(0, 503), false);
        for number in 1..=1000 {
            recent.add(request(number, 404), false);
        }
        recent.add(request(1001, 200), true);
        recent.add(request(1002, 200), false);
        let refused = paths(&recent, "refused");
        assert_eq!((refused.len(), &*refused[0]), (REQUESTS_MAX, "/bucket/1000"));
        assert_eq!(paths(&recent, "failed"), ["/bucket/0"]);
        assert_eq!(paths(&recent, "slow"), ["/bucket/1001"]);
    }

    #[test]
    fn request_that_failed_slowly_is_in_both_classes() {
        let recent = RecentRequests::default();
        recent.add(request(7, 500), true);
        assert_eq!(recent.json()["slow"], recent.json()["failed"]);
        assert_eq!(
            recent.json()["slow"][0],
            json!({
                "unix_ms": 7.0, "id": "0123456789ABCDEF", "access_key": "key", "kind": "get",
                "path": "/bucket/7", "status": 500, "code": "NoSuchKey", "duration_ms": 5.0,
                "answering_ms": 1.5,
            })
        );
    }

    #[test]
    fn long_paths_are_cut_between_characters() {
        let recent = RecentRequests::default();
        let path = format!("/{}", "ä".repeat(PATH_BYTES_MAX)).into();
        recent.add(RecentRequest { path, ..request(1, 404) }, false);
        assert_eq!(paths(&recent, "refused")[0].len(), PATH_BYTES_MAX - 1);
    }
}
