"""How many purchases a minute one PostgreSQL server counts, with many workers at once: under one account, and under several.

pgbench calls the functions of the store as workers do, each call a transaction that the disk has. What a purchase costs the database is five calls, one
of which, `spend`, waits for the row of the account's day. With `--once` each work takes a second, to see that it comes to its result.
"""

import argparse
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

SQL = Path(__file__).parents[3] / "bindings-python/python/hopline/postgres.sql"
DIES_WITH_PARENT = 1

SPEND = """
\\set call :call + 1
select * from hopline.spend(lpad(:client_id::text, 32, '0')::uuid, :call, :call - 1, clock_timestamp(), '60 s', '60 s',
    'account-' || :client_id % :accounts, :client_id || '-' || :call, 1, null, 1000000000, null);
"""
KEEP = """
\\set call :call + 1
select * from hopline.{call};
"""
WHO = "lpad(:client_id::text, 32, '0')::uuid, :call, :call - 1, clock_timestamp(), '60 s', '60 s'"
NAME = "'s.i' || :client_id || '-' || :purchase"
# A record is about so long.
DATA = "convert_to(repeat('x', 700), 'UTF8')"
PURCHASE = (
    "\\set purchase :purchase + 1"
    + KEEP.format(call=f"claim({WHO}, array[{NAME}], 1, null)")
    + KEEP.format(call=f"put({WHO}, {NAME}, {DATA}, false, null, false, null)")
    + SPEND
    + KEEP.format(call=f"put({WHO}, {NAME}, {DATA}, false, null, false, null)")
    + KEEP.format(call=f"put({WHO}, {NAME}, {DATA}, false, null, true, null)")
)


class Server:
    """A server with the settings of Debian, but for its place, and as many connections as workers."""

    def __init__(self) -> None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
        named = os.environ.get("HOPLINE_POSTGRES") or shutil.which("postgres", path=os.pathsep.join([os.environ.get("PATH", ""), *found]))
        if not named:
            raise SystemExit("postgres is not installed; HOPLINE_POSTGRES may name the program")
        self.programs = Path(named).resolve().parent
        self.folder = Path(tempfile.mkdtemp(prefix="hopline-bench-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        data = str(self.folder / "data")
        self.start("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data).wait(300)
        self.process = self.start("postgres", "-D", data, "-k", str(self.folder), "-c", "listen_addresses=", "-c", "max_connections=250")
        until = time.monotonic() + 120
        while self.start("pg_isready", "-h", str(self.folder)).wait(60) != 0:
            assert self.process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
        self.said("psql", "-qXv", "ON_ERROR_STOP=1", "-f", str(SQL))

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        who = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            [str(self.programs / program), *arguments],
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            cwd="/",
            preexec_fn=lambda: ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGQUIT),
            **who,
        )

    def said(self, program: str, *arguments: str) -> str:
        command = [str(self.programs / program), "-h", str(self.folder), "-U", "postgres", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{program} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def a_minute(self, script: str, workers: int, accounts: int, seconds: int) -> tuple[float, float]:
        """How often that is done in a minute, and how many milliseconds it takes a worker."""
        self.said("psql", "-qXc", "truncate hopline.names, hopline.owners, hopline.days, hopline.entries")
        file = self.folder / "script"
        file.write_text(script)
        file.chmod(0o644)
        given = ["-D", f"accounts={accounts}", "-D", "call=0", "-D", "purchase=0"]
        told = self.said("pgbench", "-nf", str(file), "-c", str(workers), "-j", str(min(workers, 2)), "-T", str(seconds), *given, "postgres")
        numbers = [re.search(words, told) for words in (r"tps = ([\d.]+)", r"latency average = ([\d.]+)", r"failed transactions: (\d+)")]
        rate, takes, failed = (float(number[1]) if number else 0.0 for number in numbers)
        assert rate > 0 and failed == 0, told
        # What the account's day says is what was done.
        sums = "select count(*) = sum(e.amount) and sum(e.amount) = (select sum(sum) from hopline.days where day > 0) from hopline.entries e"
        assert self.said("psql", "-qXtAc", sums).strip() == "t", "the sum is not that of the entries"
        return rate * 60, takes

    def close(self) -> None:
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--once", action="store_true")
    once = arguments.parse_args().once
    seconds, sizes = (1, [4]) if once else (10, [1, 4, 16, 64, 200])
    server, rows = Server(), []
    try:
        for workers in sizes:
            for accounts in [1, 10]:
                if accounts > workers and not once:
                    continue
                counted, waits = server.a_minute(SPEND, workers, accounts, seconds)
                bought, takes = server.a_minute(PURCHASE, workers, accounts, seconds)
                rows.append([str(workers), str(accounts), f"{bought:,.0f}", f"{takes:.1f}", f"{counted:,.0f}", f"{waits:.1f}"])
        version = server.said("psql", "-qXtAc", "show server_version").split()[0]
    finally:
        server.close()
    columns = ["Workers", "Accounts", "Purchases a minute", "ms each", "`spend` alone, a minute", "ms each"]
    print(json.dumps({"versions": {"PostgreSQL": version}, "columns": columns, "rows": rows}))


if __name__ == "__main__":
    main()
