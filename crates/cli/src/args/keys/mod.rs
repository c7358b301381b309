//! Defines the arguments of `haul keys`.

pub(super) mod examples;
mod policy;
mod quota;
mod rights;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

pub(crate) use policy::{AttachArgs, GroupArgs, GroupCommand, PolicyCommand};
pub(crate) use quota::QuotaArgs;
pub(crate) use rights::{Allowed, RightsArg, ServerRights, parse_allow, parse_rights};

use crate::units::parse_time;

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct KeysArgs {
    #[command(flatten)]
    pub(crate) files: KeyFileArgs,
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// The files of keys.
#[derive(Debug, Args)]
#[command(next_help_heading = "Key file")]
pub(crate) struct KeyFileArgs {
    /// File with the keys, which "haul serve --keys" reads
    #[arg(long, global = true, value_name = "FILE", default_value = "./haul-keys.json")]
    pub(crate) keys: PathBuf,
    /// File with the key that seals the key file
    #[arg(long, global = true, value_name = "FILE", default_value = "./haul-sealing-key")]
    pub(crate) sealing_key: PathBuf,
    /// Print one JSON object per line
    ///
    /// A key has access_key, user, state (active, disabled or expired), created, expires, rights
    /// (a list of bucket, prefix and rights), create_buckets and metrics; create and rotate add
    /// secret_key. A user with a quota is an object with user and quota (bytes and objects, null
    /// for no limit). A policy has policy, users, groups and text; a group has group, users and
    /// policies; show adds the policies of the
    /// user to a key.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create an empty key file, and the key that seals it
    ///
    /// A sealing key that exists is used; a key file that exists is an error. Both files can be
    /// read by their owner only.
    #[command(after_long_help = examples::INIT)]
    Init,
    /// Create a key pair for a user, and print it
    ///
    /// The lines on stdout, or in the file of --output, are those of a file for --credentials. The
    /// secret key is not printed again. The user owns the buckets that its keys create, and has all rights to them; several
    /// keys may have the same user.
    #[command(after_long_help = examples::CREATE)]
    Create(KeysCreateArgs),
    /// List all keys with their rights
    #[command(after_long_help = examples::LIST)]
    List,
    /// Print a key with its rights, without the secret key
    #[command(after_long_help = examples::SHOW)]
    Show {
        /// Access key, or "anonymous" for requests without a signature
        key: String,
    },
    /// Add rights to a key
    #[command(after_long_help = examples::ALLOW)]
    Allow(KeysRightsArgs),
    /// Remove rights of a key
    ///
    /// Removes the rights from all grants to the bucket or to a prefix within PREFIX. Grants to
    /// more than that remain, and are reported if they still have the rights. If only such grants
    /// have the rights, nothing is changed, and the exit code is 1. With --json, "remaining" lists
    /// the grants that still have the rights, and "change" is null if nothing was changed.
    #[command(after_long_help = examples::FORBID)]
    Forbid(KeysRightsArgs),
    /// Set the quota of a user: a limit on all buckets that it owns
    ///
    /// The bytes and the number of objects count with older versions; parts of unfinished uploads
    /// count as bytes. A user above the quota keeps its objects, and can delete, but not store. The quota
    /// remains when the keys of the user are removed. A bucket can have a quota of its own.
    #[command(after_long_help = examples::SET)]
    Set(KeysSetArgs),
    /// Manage the policies of users and groups
    ///
    /// A policy allows and denies actions on buckets and objects, in the language of bucket
    /// policies. What it denies, no right and no other policy allows.
    #[command(subcommand_help_heading = "Commands", after_long_help = examples::POLICY)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Manage groups of users, which share policies
    #[command(subcommand_help_heading = "Commands", after_long_help = examples::GROUP)]
    Group {
        #[command(subcommand)]
        command: GroupCommand,
    },
    /// Refuse a key until it is enabled again
    #[command(after_long_help = examples::DISABLE)]
    Disable(KeyArgs),
    /// Accept a disabled key again
    #[command(after_long_help = examples::ENABLE)]
    Enable(KeyArgs),
    /// Remove a key; the buckets of its user remain
    #[command(after_long_help = examples::REMOVE)]
    Remove(KeyArgs),
    /// Replace a key by a new one with the same user and rights, and print the new one
    ///
    /// The earlier key is accepted until --overlap has passed, so that clients can change. A key
    /// that is disabled or expired is an error: enable it first, or create a new key.
    #[command(after_long_help = examples::ROTATE)]
    Rotate(KeysRotateArgs),
    /// Add a new key to the file for "haul serve --encryption-key", and print its ID
    ///
    /// Creates the file if it does not exist; only its owner can read it. The new key encrypts new
    /// objects from the next start of the server on. The earlier keys remain in the file, because
    /// objects that were encrypted with them are read with them.
    #[command(after_long_help = examples::ADD_ENCRYPTION_KEY)]
    AddEncryptionKey {
        /// Name, by which requests with the encryption aws:kms choose the key; without it, the key
        /// is for the encryption AES256
        #[arg(long)]
        name: Option<String>,
        /// File with encryption keys
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KeysCreateArgs {
    /// Name of the user: letters, digits and . _ @ + -
    pub(crate) user: String,
    /// Rights of the key, such as read,list=photos/2026/ or metrics; repeatable
    ///
    /// RIGHTS=BUCKET or RIGHTS=BUCKET/PREFIX, with RIGHTS as in "haul keys allow"; the bucket "*"
    /// means all buckets. Or create-buckets, or metrics.
    #[arg(long, value_name = "RIGHTS", value_parser = parse_allow)]
    pub(crate) allow: Vec<Allowed>,
    /// Give the key all rights to BUCKET, which it may also create; can be repeated
    ///
    /// Like --allow admin=BUCKET. If the bucket does not exist, the key's first request can create
    /// it (mc mb, aws s3 mb), and its user then owns it.
    #[arg(long = "bucket", value_name = "BUCKET")]
    pub(crate) buckets: Vec<String>,
    /// Refuse the key after this time [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) expires_in: Option<Duration>,
    #[command(flatten)]
    pub(crate) quota: QuotaArgs,
    /// Write the key pair to a new FILE that only its owner can read, and not to stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KeysSetArgs {
    /// Name of a user that has a key, or a quota
    pub(crate) user: String,
    #[command(flatten)]
    pub(crate) quota: QuotaArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Access key
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRightsArgs {
    /// Access key, or "anonymous" for requests without a signature
    pub(crate) key: String,
    /// Rights, separated by commas: read, write, list, delete, admin; or create-buckets, metrics
    ///
    /// write stores and overwrites objects; admin has all rights, and manages lifecycle rules and
    /// the bucket itself. Requests without a signature can have read and list only. create-buckets
    /// and metrics (/metrics at the admin address) are rights without a bucket.
    #[arg(value_parser = parse_rights)]
    pub(crate) rights: RightsArg,
    /// BUCKET or BUCKET/PREFIX; the bucket "*" means all buckets
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRotateArgs {
    /// Access key of the earlier key
    pub(crate) key: String,
    /// Time for which the earlier key is still accepted; 0s refuses it now
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    pub(crate) overlap: Duration,
}
