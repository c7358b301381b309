//! The recent requests that failed, were refused or were slow, in memory of a fixed size.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The number of requests of each class that are stored.
const REQUESTS_MAX: usize = 100;

/// The part of a path that is stored, in bytes.
const PATH_BYTES_MAX: usize = 2048;

/// A request that has been answered.
#[derive(Debug, Clone)]
pub struct RecentRequest {
    /// The time of the response.
    pub ended: SystemTime,
    /// The method or the operation.
    pub kind: Box<str>,
    /// The path as the client sent it, without the query.
    pub path: Box<str>,
    /// The status of the response.
    pub status: u16,
    /// The time from the head of the request to the head of the response.
    pub duration: Duration,
    /// The part of it after the last byte of the request, if it is known.
    pub answering: Option<Duration>,
    /// Further members of the request in JSON: names and values, `None` for null.
    pub details: Vec<(&'static str, Option<Box<str>>)>,
}

/// The recent requests by class, so that many of one class do not displace those of another: the last
/// 100 that failed (status 5xx), that were refused (4xx), and that were slow.
#[derive(Debug)]
pub struct RecentRequests {
    /// `None`: no request is slow.
    slow_from: Option<Duration>,
    classes: Mutex<Classes>,
}

#[derive(Debug, Default)]
struct Classes {
    failed: VecDeque<RecentRequest>,
    refused: VecDeque<RecentRequest>,
    slow: VecDeque<RecentRequest>,
}

impl RecentRequests {
    /// Creates the empty lists. A request that takes `slow_from` or longer is slow.
    #[must_use]
    pub fn new(slow_from: Option<Duration>) -> Self {
        Self { slow_from, classes: Mutex::default() }
    }

    /// Returns `true` if a request that takes this time is slow.
    #[must_use]
    pub fn is_slow(&self, duration: Duration) -> bool {
        self.slow_from.is_some_and(|slow| duration >= slow)
    }

    /// Returns `true` if a request with this status and duration belongs to a list.
    #[must_use]
    pub fn includes(&self, status: u16, duration: Duration) -> bool {
        status >= 400 || self.is_slow(duration)
    }

    /// Adds a request to the list of its status, if that is an error, and to that of slow requests
    /// if `is_slow` is `true`. A long path is truncated.
    pub fn add(&self, mut request: RecentRequest, is_slow: bool) {
        if request.path.len() > PATH_BYTES_MAX {
            request.path = request.path[..request.path.floor_char_boundary(PATH_BYTES_MAX)].into();
        }
        let mut classes = self.lock();
        let Classes { failed, refused, slow } = &mut *classes;
        let class = match request.status {
            500.. => Some(failed),
            400..500 => Some(refused),
            _ => None,
        };
        for class in [class, is_slow.then_some(slow)].into_iter().flatten() {
            if class.len() >= REQUESTS_MAX {
                class.pop_front();
            }
            class.push_back(request.clone());
        }
    }

    /// Returns the lists as JSON, each with the newest request first.
    #[must_use]
    pub fn json(&self) -> Value {
        let classes = self.lock();
        let list = |class: &VecDeque<RecentRequest>| -> Value {
            class.iter().rev().map(RecentRequest::json).collect()
        };
        json!({
            "failed": list(&classes.failed),
            "refused": list(&classes.refused),
            "slow": list(&classes.slow),
            "slow_request_ms": self.slow_from.map(millis),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentRequest {
    fn json(&self) -> Value {
        let ended = self.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut request = json!({
            "unix_ms": millis(ended).round(),
            "kind": self.kind,
            "path": self.path,
            "status": self.status,
            "duration_ms": millis(self.duration),
        });
        if let Some(answering) = self.answering {
            request["answering_ms"] = millis(answering).into();
        }
        for (name, value) in &self.details {
            request[*name] = value.as_deref().into();
        }
        request
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: usize, status: u16) -> RecentRequest {
        RecentRequest {
            ended: UNIX_EPOCH + Duration::from_millis(number as u64),
            kind: "get".into(),
            path: format!("/bucket/{number}").into(),
            status,
            duration: Duration::from_millis(5),
            answering: Some(Duration::from_micros(1500)),
            details: vec![("code", Some("NoSuchKey".into())), ("client", None)],
        }
    }

    fn paths(recent: &RecentRequests, class: &str) -> Vec<String> {
        let json = recent.json();
        let requests = json[class].as_array().unwrap().iter();
        requests.map(|request| request["path"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn newest_requests_of_each_class_remain() {
        let recent = RecentRequests::new(None);
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
        let recent = RecentRequests::new(Some(Duration::from_millis(5)));
        recent.add(request(7, 500), true);
        let json = recent.json();
        assert_eq!(json["slow"], json["failed"]);
        assert_eq!(json["slow_request_ms"], 5.0);
        assert_eq!(
            json["slow"][0],
            json!({
                "unix_ms": 7.0, "kind": "get", "path": "/bucket/7", "status": 500,
                "duration_ms": 5.0, "answering_ms": 1.5, "code": "NoSuchKey", "client": null,
            })
        );
    }

    #[test]
    fn errors_and_slow_requests_are_included() {
        let recent = RecentRequests::new(Some(Duration::from_millis(5)));
        let [short, long] = [4, 5].map(Duration::from_millis);
        let included =
            [(399, short), (400, short), (200, long)].map(|it| recent.includes(it.0, it.1));
        assert_eq!(included, [false, true, true]);
        assert!(!RecentRequests::new(None).includes(200, Duration::MAX));
    }

    #[test]
    fn long_paths_are_cut_between_characters() {
        let recent = RecentRequests::new(None);
        let path = format!("/{}", "\u{e4}".repeat(PATH_BYTES_MAX)).into();
        recent.add(RecentRequest { path, ..request(1, 404) }, false);
        assert_eq!(paths(&recent, "refused")[0].len(), PATH_BYTES_MAX - 1);
    }
}
