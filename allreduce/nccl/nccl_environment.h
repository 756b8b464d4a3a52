// The environment variables for a process that uses connect_nccl. Some settings can be given to NCCL only in this way,
// and it reads them when it is first called. Pure. The names and values are those of NCCL's user guide ("Environment
// Variables") and, for NCCL_HOSTID, of its sources (2.28: misc/utils.cc, init.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncopate::allreduce {

struct NcclPlace {
  int rank = 0;
  // Another rank of the group computes on the same GPU. NCCL refuses that ("Duplicate GPU detected") unless it takes
  // the ranks for those of different hosts. They are then connected by sockets on this host. This serves to try a
  // program, not to measure: the kernels of processes take turns on a GPU, and each waits for the other's.
  bool shares_gpu = false;
  // As NcclOptions::direct_calls.
  bool direct_calls = true;
  // NCCL's name of the one algorithm that it may use: "Ring", "Tree". Empty: it chooses by size and wires.
  std::string algorithm = {};
  // The file that parse_nccl_log reads; empty for none. Each process needs a file of its own.
  std::string log_file;
  // Whether the log lists each operation: only then are protocols known, and the algorithm that NCCL chose. Costs rank
  // 0 a line of about 100 bytes per operation, others nothing.
  bool log_operations = false;
  // If ranks are on several hosts: the interface of this host over which they find each other ("eth0"). NCCL would
  // choose one by itself, which on a host with several may be one without a route. It carries NCCL's own setup, and all
  // traffic if there is no faster net (InfiniBand). Empty on one host.
  std::string interface = {};
};

// Returns names and values, to be set before the process starts.
std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclPlace& place);

// Returns the path of this process's log: its NCCL_DEBUG_FILE. Empty for none.
std::string nccl_log_file();

}  // namespace syncopate::allreduce
