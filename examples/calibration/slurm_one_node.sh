#!/bin/sh
# Runs array.sh on Slurm on this machine alone: four tasks, of which one is killed and requeued while
# it runs, and the merge; compares its result with that of one run. Debian's packages slurm-wlm and
# munge, and root:
#   apt-get install slurm-wlm munge && PATH=../../build/release:$PATH sh slurm_one_node.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$(hostname -s)
AuthType=auth/munge
ProctrackType=proctrack/pgid
ReturnToService=2
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmdSpoolDir=$work/spool
StateSaveLocation=$work/state
SlurmUser=root
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=$(hostname -s) CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
mkdir "$work/spool" "$work/state"
munge -n >/dev/null 2>&1 || { mkdir -p /run/munge && chown munge:munge /run/munge && su -s /bin/sh munge -c munged; }
slurmctld
slurmd
trap 'kill $(cat "$work"/*.pid)' EXIT
sleep 3

cd "$here"
rm -f shard-*.stats model.stats
etc calibrate ../digits/digits.onnx --data ../digits/images.npy -o "$work/one-run.stats"
# A task of these takes 20 ms: sleep, so that there is something to kill.
sed 's/^etc /sleep 5; etc /' array.sh >"$work/array.sh"
array=$(sbatch --parsable --output="$work/%a.out" "$work/array.sh")
sbatch --output="$work/merge.out" --dependency=afterok:"$array" --wrap 'etc calibrate --merge shard-?.stats -o model.stats'
sleep 3
scontrol requeue "${array}_2"
while squeue --noheader | grep -q .; do sleep 2; done # Slurm waits two minutes before a task runs again
cmp model.stats "$work/one-run.stats"
echo "four tasks, one requeued: the same bytes as one run"
