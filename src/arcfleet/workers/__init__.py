"""Many tasks at a time: on processes of this machine, or of a cluster."""

from arcfleet.workers.run import (
    EXECUTORS,
    PROCESSES,
    check_sendable,
    check_workers,
    run_tasks,
)
from arcfleet.workers.tasks import (
    TaskFailure,
    child_seed,
    first_interrupt_sets,
    new_flag,
)

__all__ = [
    "EXECUTORS",
    "PROCESSES",
    "TaskFailure",
    "check_sendable",
    "check_workers",
    "child_seed",
    "first_interrupt_sets",
    "new_flag",
    "run_tasks",
]
