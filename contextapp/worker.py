"""The worker of the background tasks: `python -m contextapp.worker --processes 2`.

Celery's command line (`celery -A contextapp.celery worker`) also works, but loads a terminal library, which
the forked processes would share.
"""

import argparse
import sys

from contextapp.celery import app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m contextapp.worker")
    parser.add_argument("--processes", type=int, required=True, help="processes that run tasks")
    options = parser.parse_args()
    # Gossip, mingle and heartbeat coordinate several workers, but there is only one.
    worker = app.Worker(
        concurrency=options.processes,
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
