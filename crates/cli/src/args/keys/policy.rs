//! Defines the arguments of `haul keys policy` and `haul keys group`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haul_s3_server::PolicyHolder;

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Add a policy, or replace the policy with this name
    ///
    /// The file has the language of bucket policies, without Principal, and with resources in any
    /// bucket. A policy that the server would not enforce is an error.
    #[command(after_long_help = examples::POLICY_PUT)]
    Put {
        /// Name of the policy: letters, digits and . _ @ + - =
        name: String,
        /// File with the policy, as JSON
        file: PathBuf,
    },
    /// List all policies, with the users and groups that have them
    #[command(alias = "ls", after_long_help = examples::POLICY_LIST)]
    List,
    /// Print the text of a policy
    #[command(after_long_help = examples::POLICY_SHOW)]
    Show {
        /// Name of the policy
        name: String,
    },
    /// Remove a policy that no user and no group has
    #[command(alias = "rm", after_long_help = examples::POLICY_REMOVE)]
    Remove {
        /// Name of the policy
        name: String,
    },
    /// Give a policy to a user or a group
    ///
    /// The policy applies to all keys of the user, or of the users in the group. It remains when the
    /// keys of the user are removed.
    #[command(after_long_help = examples::POLICY_ATTACH)]
    Attach(AttachArgs),
    /// Take a policy from a user or a group
    #[command(after_long_help = examples::POLICY_DETACH)]
    Detach(AttachArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Name of the policy
    pub(crate) name: String,
    #[command(flatten)]
    holder: HolderArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct HolderArgs {
    /// Name of a user
    #[arg(long)]
    user: Option<String>,
    /// Name of a group
    #[arg(long)]
    group: Option<String>,
}

impl AttachArgs {
    /// Returns the user or the group. The parser of arguments has ensured that there is one.
    pub(crate) fn holder(&self) -> PolicyHolder<'_> {
        match (&self.holder.user, &self.holder.group) {
            (Some(user), _) => PolicyHolder::User(user),
            (None, group) => PolicyHolder::Group(group.as_deref().unwrap_or_default()),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Add users to a group, which is created if it does not exist
    #[command(after_long_help = examples::GROUP_ADD)]
    Add(GroupArgs),
    /// Remove users from a group
    ///
    /// A group without users remains as long as it has policies.
    #[command(alias = "rm", after_long_help = examples::GROUP_REMOVE)]
    Remove(GroupArgs),
    /// List the groups with their users and policies
    #[command(alias = "ls", after_long_help = examples::GROUP_LIST)]
    List {
        /// Name of a group [default: all groups]
        group: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// Name of the group: letters, digits and . _ @ + - =
    pub(crate) group: String,
    /// Names of users
    #[arg(required = true, value_name = "USER")]
    pub(crate) users: Vec<String>,
}
