#!/usr/bin/python3
"""Runs a program with a PostgreSQL of its own: with_postgres.py PROGRAM [ARGUMENT...]. $DROVER_TEST_POSTGRES is the folder of
its socket; the user is postgres, and the database test."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import postgres  # pylint: disable=wrong-import-position


def main():
    server = postgres.Postgres()
    try:
        server.start().database("test")
        return subprocess.run(sys.argv[1:], env={**os.environ, "DROVER_TEST_POSTGRES": server.base}, check=False).returncode
    finally:
        server.remove()


sys.exit(main())
