//! Contains the examples that the long help of `haul keys` ends with.

pub(crate) const KEYS: &str = "\
Examples:
  haul keys init
  haul keys create alice --allow create-buckets > alice.credentials
  haul keys create backup --allow read,write,list=archive/host-1/
  haul keys allow anonymous read public
  haul keys list
  haul serve --keys haul-keys.json --sealing-key haul-sealing-key

Exit codes:
  0  success
  1  the key, the policy or the group does not exist, has none of the rights to remove, or cannot be
     rotated; or the policy to remove is attached
  2  invalid command line, rights that do not exist, or an invalid policy
  3  a file cannot be read or written, or the sealing key does not fit; nothing was changed";

pub(super) const INIT: &str = "\
Examples:
  haul keys init
  haul keys init --keys /etc/haul/keys.json --sealing-key /etc/haul/credentials/serve/sealing-key";

pub(super) const CREATE: &str = "\
Examples:
  haul keys create alice --allow create-buckets
  haul keys create backup --allow read,write,list=archive/host-1/ --expires-in 90d
  haul keys create mail --bucket mail --output mail.credentials
  haul keys create ben --allow create-buckets --quota 100GiB --output ben.credentials
  haul keys create prometheus --allow metrics --output prometheus.credentials
  haul keys create ci --allow admin=builds --json | jq -r .secret_key";

pub(super) const LIST: &str = "\
Examples:
  haul keys list
  haul keys list --json | jq -r 'select(.state != \"active\").access_key'";

pub(super) const SHOW: &str = "\
Examples:
  haul keys show HAULQ2ZXW4KTE5N7ABCD
  haul keys show anonymous";

pub(super) const ALLOW: &str = "\
Examples:
  haul keys allow HAULQ2ZXW4KTE5N7ABCD read,list photos
  haul keys allow HAULQ2ZXW4KTE5N7ABCD write photos/incoming/
  haul keys allow HAULQ2ZXW4KTE5N7ABCD create-buckets
  haul keys allow anonymous read public";

pub(super) const FORBID: &str = "\
Examples:
  haul keys forbid HAULQ2ZXW4KTE5N7ABCD write photos
  haul keys forbid HAULQ2ZXW4KTE5N7ABCD delete '*'
  haul keys forbid anonymous read,list public";

pub(super) const SET: &str = "\
Examples:
  haul keys set alice --quota 100GiB --quota-objects 1000000
  haul keys set alice --quota none";

pub(super) const DISABLE: &str = "\
Examples:
  haul keys disable HAULQ2ZXW4KTE5N7ABCD";

pub(super) const ENABLE: &str = "\
Examples:
  haul keys enable HAULQ2ZXW4KTE5N7ABCD";

pub(super) const REMOVE: &str = "\
Examples:
  haul keys remove HAULQ2ZXW4KTE5N7ABCD";

pub(super) const ROTATE: &str = "\
Examples:
  haul keys rotate HAULQ2ZXW4KTE5N7ABCD
  haul keys rotate HAULQ2ZXW4KTE5N7ABCD --overlap 0s    refuse a leaked key at once";

pub(super) const ADD_ENCRYPTION_KEY: &str = "\
Examples:
  haul keys add-encryption-key ./haul-encryption-keys
  haul keys add-encryption-key ./haul-encryption-keys --name taxes
  haul keys add-encryption-key /etc/haul/credentials/serve/encryption-keys";

pub(super) const POLICY: &str = "\
Examples:
  haul keys policy put read-photos read-photos.json
  haul keys policy attach read-photos --user alice
  haul keys policy list";

pub(super) const POLICY_PUT: &str = "\
Examples:
  haul keys policy put read-photos read-photos.json

A policy that allows to list and read one bucket:
  {\"Version\": \"2012-10-17\", \"Statement\": [
    {\"Effect\": \"Allow\", \"Action\": [\"s3:ListBucket\", \"s3:GetObject\"],
     \"Resource\": [\"arn:aws:s3:::photos\", \"arn:aws:s3:::photos/*\"]}]}";

pub(super) const POLICY_LIST: &str = "\
Examples:
  haul keys policy list
  haul keys policy list --json | jq -r 'select(.users == [] and .groups == []).policy'";

pub(super) const POLICY_SHOW: &str = "\
Examples:
  haul keys policy show read-photos > read-photos.json";

pub(super) const POLICY_REMOVE: &str = "\
Examples:
  haul keys policy remove read-photos";

pub(super) const POLICY_ATTACH: &str = "\
Examples:
  haul keys policy attach read-photos --user alice
  haul keys policy attach read-photos --group staff";

pub(super) const POLICY_DETACH: &str = "\
Examples:
  haul keys policy detach read-photos --user alice";

pub(super) const GROUP: &str = "\
Examples:
  haul keys group add staff alice ben
  haul keys policy attach read-photos --group staff
  haul keys group list";

pub(super) const GROUP_ADD: &str = "\
Examples:
  haul keys group add staff alice ben";

pub(super) const GROUP_REMOVE: &str = "\
Examples:
  haul keys group remove staff ben";

pub(super) const GROUP_LIST: &str = "\
Examples:
  haul keys group list
  haul keys group list staff --json | jq -r .users[]";
