// The environment variables of a process that is to use connect_nccl: NCCL has no other way to be told some things, and
// reads them when it is first called. Pure. The names and values are those of NCCL's user guide ("Environment
// Variables") and, for NCCL_HOSTID, of its sources (2.28: misc/utils.cc, init.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncopate::allreduce {

struct NcclPlace {
  int rank = 0;
  // Another rank of the group computes on the same GPU, which NCCL refuses ("Duplicate GPU detected") unless it takes
  // them for ranks of different hosts. They are then connected by sockets on this host: something to try a program
  // with, not to measure, since the kernels of processes take turns on a GPU and each waits for the other's.
  bool shares_gpu = false;
  // As NcclOptions::direct_calls.
  bool direct_calls = false;
  // What parse_nccl_log reads; empty for none. One process a file.
  std::string log_file;
  // Whether the log tells of each operation: only then are the protocols taken known. Costs rank 0 a write for each.
  bool log_operations = false;
  // Where ranks are on several hosts: the interface of this host by which they are to find each other ("eth0"). NCCL
  // would choose one by itself, and on a host with several perhaps one that leads nowhere. It is used for NCCL's own
  // arrangements and where there is no faster net (InfiniBand). Empty on one host.
  std::string interface = {};
};

// Names and values, to be set before the process starts.
std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclPlace& place);

// The file that a process with this environment has its log in: its NCCL_DEBUG_FILE, as a path. Empty where it has
// none.
std::string nccl_log_file();

}  // namespace syncopate::allreduce
