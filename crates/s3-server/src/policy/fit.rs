//! Finds parts of a new policy that AWS rejects although they would only have no effect. A policy
//! with such parts that is already stored stays in force.

use crate::policy::action_names::ActionKinds;
use crate::policy::statement::{Patterns, Policy, Principals, Statement};

impl Policy {
    /// Checks a policy that a client sets.
    ///
    /// # Errors
    /// If an action in a statement applies to none of the statement's resources, or if a statement
    /// names unknown users (`is_user`) in addition to everyone. Statements may share an ID: it has
    /// no effect, and programs write policies with one ID for several statements.
    pub(crate) fn check_new(&self, is_user: impl Fn(&str) -> bool) -> Result<(), String> {
        for (number, statement) in (1..).zip(&self.statements) {
            let checked =
                statement.check_actions(false).and_then(|()| statement.check_users(&is_user));
            checked.map_err(|reason| format!("statement {number}: {reason}"))?;
        }
        Ok(())
    }

    /// Checks a policy of users.
    ///
    /// # Errors
    /// If an action on buckets or objects in a statement applies to none of its resources.
    pub(super) fn check_actions(&self) -> Result<(), String> {
        (1..).zip(&self.statements).try_for_each(|(number, statement)| {
            let checked = statement.check_actions(true);
            checked.map_err(|reason| format!("statement {number}: {reason}"))
        })
    }
}

impl Statement {
    /// Fails if an action applies to no resource. A pattern passes if it matches at least one
    /// action that applies to a resource. `with_others` also passes actions on neither buckets nor
    /// objects, such as ListAllMyBuckets, which users can have.
    fn check_actions(&self, with_others: bool) -> Result<(), String> {
        let (Patterns::OneOf(actions), Patterns::OneOf(resources)) =
            (&self.actions, &self.resources)
        else {
            // All actions or resources except the named ones: some of them fit.
            return Ok(());
        };
        let has_bucket = resources.iter().any(|resource| may_be_bucket(resource));
        let has_object = resources.iter().any(|resource| may_be_object(resource));
        let fits = |action: &&String| {
            let kinds = ActionKinds::matching(action);
            kinds.buckets && has_bucket
                || kinds.objects && has_object
                || kinds.others && with_others
        };
        match actions.iter().find(|action| !fits(action)) {
            None => Ok(()),
            Some(action) => {
                Err(format!("Action does not apply to any resource(s) in statement: {action}"))
            }
        }
    }

    fn check_users(&self, is_user: impl Fn(&str) -> bool) -> Result<(), String> {
        let users = match &self.principals {
            Principals::Everyone { users, .. } => users,
            Principals::EveryoneBut(names) if names.users.iter().any(|user| user == "*") => {
                return Err("Invalid principal in policy: NotPrincipal names everyone".to_owned());
            }
            Principals::EveryoneBut(_) | Principals::Listed(_) => return Ok(()),
        };
        match users.iter().find(|user| !is_user(user)) {
            None => Ok(()),
            Some(user) => {
                Err(format!("Invalid principal in policy: there is no user \"{user}\" beside *"))
            }
        }
    }
}

/// Returns `true` if a pattern matches the policy's bucket. The part before a pattern's first slash
/// always matches it.
fn may_be_bucket(resource: &str) -> bool {
    !resource.contains('/')
}

/// Returns `true` if a pattern matches objects in the bucket.
fn may_be_object(resource: &str) -> bool {
    resource.contains(['/', '*'])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(statement: &Value) -> Result<(), String> {
        let text = json!({ "Statement": statement }).to_string();
        Policy::parse(&text, "b").unwrap().check_new(|name| name == "ann")
    }

    #[test]
    fn actions_apply_to_a_resource() {
        let (bucket, objects) = ("arn:aws:s3:::b", "arn:aws:s3:::b/*");
        for (action, resource, fits) in [
            (json!("s3:GetObject"), json!(bucket), false),
            (json!("s3:GetObjec?"), json!(bucket), false),
            (json!("s3:Abort*"), json!(bucket), false),
            (json!("s3:???Object"), json!(bucket), false),
            (json!("s3:ListBucket"), json!(objects), false),
            (json!("s3:GetBucket*"), json!(objects), false),
            (json!("s3:ListBucket"), json!("arn:aws:s3:::b/k"), false),
            (json!(["s3:ListBucket", "s3:GetObject"]), json!(objects), false),
            (json!("s3:ListAllMyBuckets"), json!([bucket, objects]), false),
            (json!("s3:GetObject"), json!(objects), true),
            (json!("s3:GetObject"), json!("arn:aws:s3:::b/k"), true),
            (json!("s3:GetObject"), json!("arn:aws:s3:::b*"), true),
            (json!("s3:ListBucket"), json!("arn:aws:s3:::*"), true),
            (json!(["s3:ListBucket", "s3:GetObject"]), json!([bucket, objects]), true),
            (json!("s3:Get*"), json!(objects), true),
            (json!("s3:Get*"), json!(bucket), true),
            (json!("s3:*"), json!(bucket), true),
            (json!("*"), json!(objects), true),
        ] {
            let statement = json!({
                "Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource
            });
            let expected = "statement 1: Action does not apply to any resource(s) in statement";
            match check(&statement) {
                Ok(()) => assert!(fits, "{statement}"),
                Err(why) => assert!(!fits && why.starts_with(expected), "{statement}: {why}"),
            }
        }
        let negated = json!({
            "Effect": "Deny", "Principal": "*", "NotAction": "s3:GetObject", "Resource": objects
        });
        assert_eq!(check(&negated), Ok(()));
    }

    #[test]
    fn statements_may_share_an_id_and_not_everyone_is_excepted() {
        let statement = |sid: &str, principal: &str| {
            json!({
                "Sid": sid, "Effect": "Deny", principal: ["*", "ann"], "Action": "s3:GetObject",
                "Resource": "arn:aws:s3:::b/*"
            })
        };
        let deny = |sid: &str| statement(sid, "Principal");
        assert_eq!(check(&json!([deny("a"), deny("b"), deny("a"), deny("")])), Ok(()));
        let nobody = check(&statement("a", "NotPrincipal"));
        assert!(nobody.unwrap_err().contains("NotPrincipal"));
    }

    #[test]
    fn users_beside_everyone_exist() {
        for (principal, is_valid) in [
            (json!("*"), true),
            (json!(["*", "ann"]), true),
            (json!({ "AWS": ["*", "arn:aws:iam:::user/ann"] }), true),
            (json!(["*", "ben"]), false),
            (json!({ "AWS": ["*", "ben"] }), false),
            (json!({ "AWS": "*", "CanonicalUser": "ben" }), false),
            (json!({ "AWS": "*", "Service": "logging.s3.amazonaws.com" }), true),
            // A key for the user may be created later.
            (json!({ "AWS": "ben" }), true),
        ] {
            let statement = json!({
                "Effect": "Allow", "Principal": principal, "Action": "s3:GetObject",
                "Resource": "arn:aws:s3:::b/*"
            });
            assert_eq!(check(&statement).is_ok(), is_valid, "{statement}");
        }
    }
}
