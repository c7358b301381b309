//! S3 error codes.

use http::StatusCode;

/// Defines the codes with their statuses. A code's name is the given string, or its variant's name.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $(= $name:literal)?: $status:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum S3ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl S3ErrorCode {
            /// Returns the code as in error documents.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => codes!(@name $variant $($name)?),)*
                }
            }

            /// Returns the status of a response with this error.
            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $(Self::$variant => StatusCode::$status,)*
                }
            }
        }

        #[cfg(test)]
        const ALL: &[S3ErrorCode] = &[$(S3ErrorCode::$variant,)*];
    };
    (@name $variant:ident) => { stringify!($variant) };
    (@name $variant:ident $name:literal) => { $name };
}

codes! {
    AccessControlListNotSupported: BAD_REQUEST;
    AccessDenied: FORBIDDEN;
    AccessForbidden: FORBIDDEN;
    AuthorizationHeaderMalformed: BAD_REQUEST;
    AuthorizationQueryParametersError: BAD_REQUEST;
    BadDigest: BAD_REQUEST;
    BadRequest: BAD_REQUEST;
    BucketAlreadyExists: CONFLICT;
    BucketAlreadyOwnedByYou: CONFLICT;
    BucketNotEmpty: CONFLICT;
    EntityTooLarge: BAD_REQUEST;
    EntityTooSmall: BAD_REQUEST;
    ExpiredToken: BAD_REQUEST;
    ExpiredTokenException: BAD_REQUEST;
    /// Clients repeat the request.
    IdpCommunicationError = "IDPCommunicationError": BAD_REQUEST;
    IllegalVersioningConfigurationException: BAD_REQUEST;
    IncompleteBody: BAD_REQUEST;
    InternalError: INTERNAL_SERVER_ERROR;
    InvalidAccessKeyId: FORBIDDEN;
    InvalidAction: BAD_REQUEST;
    InvalidArgument: BAD_REQUEST;
    InvalidBucketAclWithObjectOwnership: BAD_REQUEST;
    InvalidBucketName: BAD_REQUEST;
    InvalidBucketState: CONFLICT;
    InvalidChunkSizeError: FORBIDDEN;
    InvalidDigest: BAD_REQUEST;
    InvalidEncryptionAlgorithmError: BAD_REQUEST;
    InvalidIdentityToken: BAD_REQUEST;
    InvalidLocationConstraint: BAD_REQUEST;
    InvalidPart: BAD_REQUEST;
    InvalidPartNumber: RANGE_NOT_SATISFIABLE;
    InvalidPartOrder: BAD_REQUEST;
    InvalidPolicyDocument: BAD_REQUEST;
    InvalidRange: RANGE_NOT_SATISFIABLE;
    InvalidRedirectLocation: BAD_REQUEST;
    InvalidRequest: BAD_REQUEST;
    InvalidRetentionPeriod: BAD_REQUEST;
    InvalidStorageClass: BAD_REQUEST;
    InvalidTag: BAD_REQUEST;
    InvalidTargetBucketForLogging: BAD_REQUEST;
    InvalidToken: BAD_REQUEST;
    InvalidURI: BAD_REQUEST;
    KeyTooLongError: BAD_REQUEST;
    KmsNotFound = "KMS.NotFoundException": BAD_REQUEST;
    MalformedACLError: BAD_REQUEST;
    MalformedPOSTRequest: BAD_REQUEST;
    MalformedPolicy: BAD_REQUEST;
    MalformedPolicyDocument: BAD_REQUEST;
    MalformedTrailerError: BAD_REQUEST;
    MalformedXML: BAD_REQUEST;
    MaxMessageLengthExceeded: BAD_REQUEST;
    MaxPostPreDataLengthExceededError: BAD_REQUEST;
    MetadataTooLarge: BAD_REQUEST;
    MethodNotAllowed: METHOD_NOT_ALLOWED;
    MissingAction: BAD_REQUEST;
    MissingContentLength: LENGTH_REQUIRED;
    MissingRequestBodyError: BAD_REQUEST;
    MissingSecurityHeader: BAD_REQUEST;
    NoSuchBucket: NOT_FOUND;
    NoSuchBucketPolicy: NOT_FOUND;
    NoSuchCORSConfiguration: NOT_FOUND;
    NoSuchKey: NOT_FOUND;
    NoSuchLifecycleConfiguration: NOT_FOUND;
    NoSuchObjectLockConfiguration: NOT_FOUND;
    NoSuchPublicAccessBlockConfiguration: NOT_FOUND;
    NoSuchTagSet: NOT_FOUND;
    NoSuchUpload: NOT_FOUND;
    NoSuchVersion: NOT_FOUND;
    NoSuchWebsiteConfiguration: NOT_FOUND;
    NotImplemented: NOT_IMPLEMENTED;
    NotModified: NOT_MODIFIED;
    ObjectLockConfigurationNotFoundError: NOT_FOUND;
    OwnershipControlsNotFoundError: NOT_FOUND;
    PackedPolicyTooLarge: BAD_REQUEST;
    PreconditionFailed: PRECONDITION_FAILED;
    /// Ceph's code for an exceeded quota; S3 has none. Clients do not retry after status 403.
    QuotaExceeded: FORBIDDEN;
    ReplicationConfigurationNotFoundError: NOT_FOUND;
    RequestTimeTooSkewed: FORBIDDEN;
    RequestTimeout: BAD_REQUEST;
    ServerSideEncryptionConfigurationNotFoundError: NOT_FOUND;
    ServiceUnavailable: SERVICE_UNAVAILABLE;
    SignatureDoesNotMatch: FORBIDDEN;
    SlowDown: SERVICE_UNAVAILABLE;
    /// A full disk, for which S3 has no code. Clients do not retry after status 507, which is
    /// intended: a retry cannot succeed before space is freed.
    StorageFull = "XHaulStorageFull": INSUFFICIENT_STORAGE;
    UnexpectedContent: BAD_REQUEST;
    UnresolvableGrantByEmailAddress: BAD_REQUEST;
    ValidationError: BAD_REQUEST;
    /// A website's host that names no bucket.
    WebsiteRedirect: MOVED_PERMANENTLY;
    /// A body whose SHA-256 differs from the signed one.
    XAmzContentSha256Mismatch = "XAmzContentSHA256Mismatch": BAD_REQUEST;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(S3ErrorCode::KmsNotFound.as_str(), "KMS.NotFoundException");
        assert_eq!(S3ErrorCode::NoSuchKey.as_str(), "NoSuchKey");
    }
}
