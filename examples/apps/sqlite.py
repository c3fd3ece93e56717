#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sqlite.py - what an application expects of SQLite.

    sqlite.py make                     an empty table
    sqlite.py insert JOURNAL SYNC      inserts three rows, each acknowledged when it is committed
    sqlite.py check                    every row that was acknowledged is there, and nothing is broken

The database is db, in the working directory. JOURNAL is delete, wal, truncate or persist; SYNC is
normal, full or extra.
"""
import os
import sqlite3
import sys


def connect():
    return sqlite3.connect("db", isolation_level=None)


def make():
    connect().execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")


def insert(journal, sync):
    db = connect()
    db.execute(f"PRAGMA journal_mode={journal}")
    db.execute(f"PRAGMA synchronous={sync}")
    for i in range(3):
        db.execute("INSERT INTO t VALUES (?, ?)", (i, "v" * 100))
        print(i, flush=True)
    db.close()


def check():
    with open(os.environ["OUTAGE_ACKED"], encoding="ascii") as f:
        acked = {int(line) for line in f}
    try:
        db = connect()
        there = {row[0] for row in db.execute("SELECT id FROM t")}
        state = db.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as e:
        sys.exit(f"outage: unavailable\n{e}")
    if state != "ok":
        sys.exit(f"outage: corruption\n{state}")
    if acked - there:
        sys.exit(f"outage: rolled-back\nrows {sorted(acked - there)} are gone")


{"make": make, "insert": insert, "check": check}[sys.argv[1]](*sys.argv[2:])
