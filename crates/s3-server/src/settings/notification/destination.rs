//! The names of event targets, as ARNs in S3's notification configurations.

/// The services of ARNs that name event targets.
const SERVICES: [&str; 3] = ["sqs", "sns", "lambda"];

/// Returns the target in an ARN: its last part, or, as in MinIO's ARNs, the part before the
/// kind of the target. Region and account have no effect.
pub(crate) fn target_of(arn: &str) -> Option<&str> {
    let parts: Vec<&str> = arn.split(':').collect();
    let [prefix, partition, service, _region, rest @ ..] = parts.as_slice() else { return None };
    if *prefix != "arn" || partition.is_empty() || !SERVICES.contains(service) {
        return None;
    }
    let name = match rest {
        [name, "webhook" | "nats"] | [_, name] | [_, "function", name] => name,
        _ => return None,
    };
    (!name.is_empty()).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_named_as_in_minio_or_in_aws() {
        for (arn, name) in [
            ("arn:minio:sqs::orders:webhook", Some("orders")),
            ("arn:minio:sqs:us-east-1:1:webhook", Some("1")),
            ("arn:minio:sqs::orders:nats", Some("orders")),
            ("arn:aws:sqs:eu-west-1:444455556666:orders", Some("orders")),
            ("arn:aws:sns:eu-west-1:444455556666:orders", Some("orders")),
            ("arn:haul:sqs:::orders", Some("orders")),
            ("arn:aws:lambda:eu-west-1:1:function:orders", Some("orders")),
            ("arn:aws:s3:::orders", None),
            ("arn:minio:sqs::orders", None),
            ("arn:minio:sqs:::", None),
            ("orders", None),
            ("", None),
        ] {
            assert_eq!(target_of(arn), name, "{arn}");
        }
    }
}
