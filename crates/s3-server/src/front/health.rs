//! Health checks on the S3 address, at other servers' paths, which load balancers, compose files
//! and clients (`mc ready`) use.

use haul_store_pool::Pool;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};

use crate::answer::{Answer, Content};
use crate::request::head::Head;

/// The paths, each with `true` if the check requires that the server accepts writes.
const PATHS: [(&str, bool); 5] = [
    ("/health", true),
    ("/minio/health/live", false),
    ("/minio/health/ready", true),
    ("/minio/health/cluster", true),
    ("/minio/health/cluster/read", false),
];

/// Returns the response to a health check. If a bucket has the first name in the path, the bucket
/// has precedence.
pub(super) fn answer(store: &Pool, head: &Head) -> Option<Answer> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let (_, needs_writes) = PATHS.into_iter().find(|(path, _)| *path == head.raw_path())?;
    if !head.query.is_empty() || store.bucket(&head.name.bucket).is_ok() {
        return None;
    }
    if needs_writes && store.own_store().is_some_and(|store| store.stats().latched) {
        return Some(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "A sync failed: writes are refused until the server is restarted\n",
        ));
    }
    Some(text(StatusCode::OK, "ok\n"))
}

fn text(status: StatusCode, body: &'static str) -> Answer {
    let answer = Answer { content: Content::Bytes(body.into()), ..Answer::empty(status) };
    answer.with(CONTENT_TYPE.as_str(), "text/plain; charset=utf-8")
}
