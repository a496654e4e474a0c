#!/bin/sh
#SBATCH --array=0-3 --cpus-per-task=1 --requeue
# One shard a task of a Slurm job array. When all are done:
#   sbatch --dependency=afterok:$(sbatch --parsable array.sh) --wrap 'etc calibrate --merge shard-?.stats -o model.stats'
SHARDS=4
etc calibrate ../digits/digits.onnx --data ../digits/images.npy --shard $SLURM_ARRAY_TASK_ID/$SHARDS -j1 -o shard-$SLURM_ARRAY_TASK_ID.stats
