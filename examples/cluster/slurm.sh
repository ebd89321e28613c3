#!/bin/bash
# Solves all towns in ten parts on a Slurm cluster, and joins the plans:
#
#   job=$(sbatch --parsable examples/cluster/slurm.sh)
#   sbatch --dependency=afterany:$job --wrap "arcfleet merge plans.jsonl parts/plans-*.jsonl"
#
# A part that was killed or preempted goes on where it was: sbatch --array=3 slurm.sh
#SBATCH --job-name=arcfleet
#SBATCH --array=1-10
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=02:00:00
#SBATCH --requeue
set -eu

PARTS=10  # as in --array; not SLURM_ARRAY_TASK_COUNT, which is 1 where one part runs again
mkdir -p parts
exec arcfleet solve-many towns/* --time 10 --seed 1 --quiet \
    --workers "${SLURM_CPUS_PER_TASK:-1}" \
    --shard "$SLURM_ARRAY_TASK_ID/$PARTS" --out "parts/plans-$SLURM_ARRAY_TASK_ID.jsonl"
