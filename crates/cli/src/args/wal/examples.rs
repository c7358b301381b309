//! Contains the examples and exit codes that the long help of `haul wal` ends with.

pub(crate) const WAL: &str = "\
Examples:
  haul wal dump /var/lib/service/log
  haul wal verify /var/lib/service/log
  haul wal tail --follow /var/lib/service/log
  haul wal copy /var/lib/service/log /backup/log
  haul wal cut /var/lib/service/log 3:4096";

pub(super) const DUMP: &str = "\
Examples:
  haul wal dump log
  haul wal dump log --from 3:4096 --to 5:4096 --json
  haul wal dump log --raw > payloads

Exit codes:
  0  success
  1  damage was found, or the writer removed a segment meanwhile
  2  invalid command line
  3  the directory is not a log";

pub(super) const VERIFY: &str = "\
Examples:
  haul wal verify log
  haul wal verify log --json

Exit codes:
  0  the log is undamaged
  1  damage was found, or the writer removed a segment meanwhile
  2  invalid command line
  3  the directory is not a log";

pub(super) const TAIL: &str = "\
Examples:
  haul wal tail log
  haul wal tail -n 100 --follow log
  haul wal tail -n 0 --follow --json log

Exit codes:
  0  success
  1  damage was found, or a file cannot be read
  2  invalid command line
  3  the directory is not a log
  130, 143  interrupted by Ctrl-C or SIGTERM";

pub(super) const COPY: &str = "\
Examples:
  haul wal copy log /backup/log

Exit codes:
  0  the copy is complete and durable
  1  the log is damaged, its writer removed a segment meanwhile, or the disk is full
  2  invalid command line
  3  the directory is not a log, or the target exists";

pub(super) const CUT: &str = "\
Examples:
  haul wal cut log 3:4096                   remove the segments before segment 3
  haul wal cut --after log 3:4096           remove this record and all later ones

Exit codes:
  0  success
  1  the log is damaged, or a file cannot be removed
  2  invalid command line, or no record begins at LSN
  3  the directory is not a log or is part of a store, or a process is writing the log";
