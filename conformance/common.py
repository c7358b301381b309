"""What the programs for conformance suites share: a server to test, and the list of tests that
pass."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = ROOT / "target/conformance"

# The seconds that are a day for lifecycle rules, in the server and in the tests.
DAY_SECONDS = 10


def build():
    """Builds haul. Returns the path of the binary."""
    subprocess.run(["cargo", "build", "--locked", "--bin", "haul"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return ROOT / target / "debug/haul"


class Server:
    """A `haul serve` with an empty store in `disks` directories, and with keys of these users. An
    administrator has the access key of HAUL_ACCESS_KEY, if it is in `environment`. With a
    `website_domain`, websites have names below it."""

    def __init__(self, program, folder, users, certificate=None, environment=None, disks=1,
                 website_domain=None):
        self.program = program
        self.key_options = ["--keys", folder / "keys.json", "--sealing-key", folder / "sealing-key"]
        self.keys("init")
        self.users = {user: self.create_key(user) for user in users}
        self.is_secure = certificate is not None
        self.environment = os.environ | (environment or {})
        self.store = folder / "store"
        dirs = [self.store / str(disk) for disk in range(disks)] if disks > 1 else [self.store]
        data = [word for directory in dirs for word in ("--data", directory)]
        self.command = [program, "serve", *data, "--listen", "127.0.0.1:0",
                        "--admin", "127.0.0.1:0", *self.key_options]
        self.command += ["--lifecycle-day", f"{DAY_SECONDS}s", "--lifecycle-check", "1s"]
        encryption_keys = folder / "encryption-keys"
        # The names that suites expect of a server without a key management service.
        for name in [], ["--name", "testkey-1"], ["--name", "testkey-2"]:
            subprocess.run([program, "keys", "add-encryption-key", encryption_keys, *name],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.command += ["--encryption-key", encryption_keys]
        # The tests wait a little longer for records of requests.
        self.command += ["--access-log-delivery", "5s"]
        if website_domain:
            self.command += ["--website", "127.0.0.1:0", "--website-domain", website_domain]
        if certificate:
            self.command += ["--tls-cert", certificate[0], "--tls-key", certificate[1]]
        self.log = folder / "server.log"

    def keys(self, *arguments):
        """Runs `haul keys` and returns its output."""
        command = [self.program, "keys", *arguments, *self.key_options, "--json"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True).stdout

    def create_key(self, user):
        """Creates a key of a user. Returns its access key and secret key."""
        made = json.loads(self.keys("create", user, "--allow", "create-buckets"))
        return made["access_key"], made["secret_key"]

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=self.environment)
        ready = self.process.stdout.readline()
        ports = re.findall(r"127\.0\.0\.1:(\d+)", ready)
        if not ports:
            self.process.wait()
            sys.exit(f"haul serve did not start:\n{ready}{self.log.read_text()}")
        # The ports of S3, of the admin page and, if there are any, of websites.
        self.port, self.website_port = ports[0], ports[-1]
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0 or "panicked at" in self.log.read_text():
            print(f"haul serve failed: see {self.log}", file=sys.stderr)
        shutil.rmtree(self.store, ignore_errors=True)


def add_disks(parser):
    """Adds the option for the number of directories."""
    parser.add_argument("--disks", type=int, default=1, metavar="N",
                        help="the directories of the store (default: 1)")


def write_results(path, outcomes):
    """Writes the outcome of each test to a file."""
    lines = sorted(f"{test} {outcome}\n" for test, outcome in outcomes.items())
    path.write_text("".join(lines))


def report(outcomes, passing, is_part, update):
    """Prints the differences from the list of tests that must pass. Returns the exit status.
    `is_part` is true if not all tests of the list ran."""
    counts = Counter(outcome.split(":")[0] for outcome in outcomes.values())
    summary = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"all: {summary} of {counts.total()}")
    listed = set(passing.read_text().split()) if passing.exists() else set()
    passed = {test for test, outcome in outcomes.items() if outcome == "passed"}
    for test in sorted(passed - listed):
        print(f"passes, not in {passing.name}: {test}")
    if update:
        passing.write_text("".join(f"{test}\n" for test in sorted(passed | listed)))
    expected = listed & outcomes.keys() if is_part else listed
    broken = sorted(expected - passed)
    for test in broken:
        print(f"in {passing.name}, but: {outcomes.get(test, 'no longer in the suite')}: {test}")
    return 1 if broken else 0
