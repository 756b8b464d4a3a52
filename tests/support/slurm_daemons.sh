#!/usr/bin/env bash
# A Slurm of two nodes on this machine, over loopback, whose files all lie in FOLDER. Says "ready" once it takes jobs, and
# runs until its standard input ends, which whoever has started it holds. To be started as the first process of a PID namespace, which takes all others with it:
#   unshare --pid --fork --kill-child --mount-proc slurm_daemons.sh FOLDER CONTROLLER_PORT NODE1_PORT NODE2_PORT
# Needs root, and slurmctld, slurmd, slurm-client and munge (setup/slurm-packages.txt).
set -euo pipefail
folder=$1 host=$(hostname -s)
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$folder"/{state,log}
chmod 700 "$folder"
(umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$2
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=5
CompleteWait=0
MinJobAge=300
# Jobs of several such Slurms on one machine have numbers of their own, as those of one cluster have.
FirstJobId=$((1 + $2 * 1000))
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$3 CPUs=8
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$4 CPUs=8
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munged.pid" --seed-file="$folder/munge.seed" --log-file="$folder/log/munged.log" \
  >"$folder/log/munged.out" 2>&1 &
until [[ -S $folder/munge.socket ]]; do sleep 0.05; done
slurmctld -D >"$folder/log/slurmctld.log" 2>&1 &
for node in node1 node2; do slurmd -D -N "$node" >"$folder/log/$node.log" 2>&1 & done
until [[ $(sinfo --noheader --Node --format=%T 2>/dev/null | grep -c '^idle$') == 2 ]]; do sleep 0.1; done
echo ready
cat >/dev/null
