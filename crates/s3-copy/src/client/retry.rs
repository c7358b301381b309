//! Repeats what fails for a reason that may pass.

use std::time::Duration;

use crate::error::Result;

/// The number of times that something is tried.
const TRIES: u32 = 5;

/// The pause after the first failure; each further pause is three times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Calls `attempt` until it succeeds, fails for good, or was tried five times.
pub(crate) async fn retry<T>(mut attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match attempt().await {
            Err(error) if error.is_transient() => tokio::time::sleep(pause).await,
            other => return other,
        }
        pause *= 3;
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn rejected(status: u16) -> Error {
        let (request, code, message) = (String::new(), String::new(), String::new());
        Error::Rejected { request, status, code, message }
    }

    #[tokio::test]
    async fn transient_errors_are_retried_and_others_are_not() {
        for (status, fails, tries) in [(503, 2, 3), (404, 9, 1)] {
            let mut calls = 0;
            let result = retry(async || {
                calls += 1;
                if calls > fails { Ok(()) } else { Err(rejected(status)) }
            });
            assert_eq!(result.await.is_ok(), status == 503);
            assert_eq!(calls, tries);
        }
    }
}
