//! The decision about a request, from the client's rights and the verdicts of all policies. Pure.

use crate::acl::list::Permission;
use crate::policy::evaluate::Verdict;

/// The reason why a client may execute an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A right of its key, a policy of its user, or its user owns the bucket.
    Right,
    /// The bucket policy allows it.
    Policy,
    /// The bucket's ACL or the object's ACL allows it.
    Acl,
}

/// The policy that denies an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denier {
    /// A policy of the user or of one of its groups.
    User,
    Session,
    Bucket,
}

/// The decision about an operation before any object ACL is read, which needs the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed(Basis),
    Denied,
    /// A policy statement denies it, which prevails.
    DeniedBy(Denier),
    /// The policy of the session does not allow it.
    OutsideSession,
    /// Allowed if the object's ACL gives the permission.
    ByObjectAcl(Permission),
}

impl Decision {
    /// Returns the reason of a refusal; `needed` describes the right that would allow the
    /// operation.
    pub(super) fn reason(decision: Option<Self>, needed: &str) -> String {
        match decision {
            Some(Self::DeniedBy(Denier::User)) => {
                "a policy of the user or of its groups denies it".to_owned()
            }
            Some(Self::DeniedBy(Denier::Session)) => {
                "the policy of the session denies it".to_owned()
            }
            Some(Self::DeniedBy(Denier::Bucket)) => "the policy of the bucket denies it".to_owned(),
            Some(Self::OutsideSession) => "the policy of the session does not allow it".to_owned(),
            _ => format!("it needs {needed}"),
        }
    }
}

/// The inputs of a decision about one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources {
    /// `true` for clients with all rights, which only the policy of a session restricts.
    pub(super) is_administrator: bool,
    /// `true` if a grant allows the operation, or if the client's user owns the bucket.
    pub(super) has_right: bool,
    /// `false` for operations that only rights allow.
    pub(super) can_policies_allow: bool,
    /// The verdict of the policies of the user and its groups.
    pub(super) user: Verdict,
    /// The verdict of the session's policy; `None` if there is no such policy.
    pub(super) session: Option<Verdict>,
    /// The verdict of the bucket policy, as far as it applies to the client.
    pub(super) bucket: Verdict,
}

/// Decides about an operation; `None` if only an ACL can allow it.
pub(super) fn decide(sources: &Sources) -> Option<Decision> {
    let Sources { is_administrator, has_right, can_policies_allow, session, .. } = *sources;
    let (user, bucket) = match is_administrator {
        true => (Verdict::Silent, Verdict::Silent),
        false => (sources.user, sources.bucket),
    };
    let verdicts = [
        (Denier::User, user),
        (Denier::Session, session.unwrap_or(Verdict::Silent)),
        (Denier::Bucket, bucket),
    ];
    if let Some((denier, _)) = verdicts.iter().find(|(_, verdict)| *verdict == Verdict::Denied) {
        return Some(Decision::DeniedBy(*denier));
    }
    if session.is_some_and(|verdict| verdict != Verdict::Allowed) {
        return Some(Decision::OutsideSession);
    }
    let is_allowed = |verdict| can_policies_allow && verdict == Verdict::Allowed;
    if is_administrator || has_right || is_allowed(user) {
        return Some(Decision::Allowed(Basis::Right));
    }
    is_allowed(bucket).then_some(Decision::Allowed(Basis::Policy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Allowed, Denied, Silent};

    /// Returns the sources of a user without rights and policies.
    const NONE: Sources = Sources {
        is_administrator: false,
        has_right: false,
        can_policies_allow: true,
        user: Silent,
        session: None,
        bucket: Silent,
    };

    #[test]
    fn first_source_that_applies_decides() {
        const RIGHT: Option<Decision> = Some(Decision::Allowed(Basis::Right));
        const POLICY: Option<Decision> = Some(Decision::Allowed(Basis::Policy));
        const OUTSIDE: Option<Decision> = Some(Decision::OutsideSession);
        let denied = |denier| Some(Decision::DeniedBy(denier));
        let right = Sources { has_right: true, ..NONE };
        let root = Sources { is_administrator: true, has_right: true, ..NONE };
        for (sources, expected) in [
            (NONE, None),
            (right, RIGHT),
            (Sources { user: Allowed, ..NONE }, RIGHT),
            (Sources { bucket: Allowed, ..NONE }, POLICY),
            (Sources { user: Allowed, bucket: Allowed, ..NONE }, RIGHT),
            // Denials prevail over everything that allows.
            (Sources { user: Denied, bucket: Allowed, ..right }, denied(Denier::User)),
            (Sources { bucket: Denied, user: Allowed, ..right }, denied(Denier::Bucket)),
            (
                Sources { session: Some(Denied), user: Allowed, bucket: Allowed, ..right },
                denied(Denier::Session),
            ),
            // The policy of a session must allow, and gives nothing itself.
            (Sources { session: Some(Silent), user: Allowed, bucket: Allowed, ..right }, OUTSIDE),
            (Sources { session: Some(Allowed), ..NONE }, None),
            (Sources { session: Some(Allowed), ..right }, RIGHT),
            (Sources { session: Some(Allowed), user: Allowed, ..NONE }, RIGHT),
            (Sources { session: Some(Allowed), bucket: Allowed, ..NONE }, POLICY),
            (Sources { session: Some(Allowed), bucket: Denied, ..right }, denied(Denier::Bucket)),
            // Only the policy of a session restricts the administrator.
            (root, RIGHT),
            (Sources { user: Denied, bucket: Denied, ..root }, RIGHT),
            (Sources { session: Some(Silent), ..root }, OUTSIDE),
            (Sources { session: Some(Denied), ..root }, denied(Denier::Session)),
            (Sources { session: Some(Allowed), bucket: Denied, ..root }, RIGHT),
            // Operations that only rights allow can be denied.
            (Sources { can_policies_allow: false, user: Allowed, bucket: Allowed, ..NONE }, None),
            (Sources { can_policies_allow: false, ..right }, RIGHT),
            (Sources { can_policies_allow: false, user: Denied, ..right }, denied(Denier::User)),
            (Sources { can_policies_allow: false, session: Some(Silent), ..root }, OUTSIDE),
        ] {
            assert_eq!(decide(&sources), expected, "{sources:?}");
        }
    }

    #[test]
    fn more_denials_and_fewer_rights_never_allow_more() {
        let verdicts = [Denied, Silent, Allowed];
        let is_allowed = |sources: &Sources| matches!(decide(sources), Some(Decision::Allowed(_)));
        for number in 0..2 * 3 * 3 * 3 {
            let sources = Sources {
                has_right: number % 2 == 1,
                user: verdicts[number / 2 % 3],
                session: Some(verdicts[number / 6 % 3]),
                bucket: verdicts[number / 18],
                ..NONE
            };
            let restricted = [
                Sources { has_right: false, ..sources },
                Sources { user: Denied, ..sources },
                Sources { session: Some(Silent), ..sources },
                Sources { bucket: Denied, ..sources },
            ];
            let without_session = Sources { session: None, ..sources };
            assert!(!is_allowed(&sources) || is_allowed(&without_session), "{sources:?}");
            for one in restricted {
                assert!(!is_allowed(&one) || is_allowed(&sources), "{one:?}");
            }
        }
    }
}
