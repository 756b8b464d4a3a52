// The part of NCCL that the product calls. Calls on a communicator that does not block are really in progress: they are
// given to the stream only after some looks at the communicator's state. The first operation on one that blocks
// connects the ranks unless NCCL_RUNTIME_CONNECT is 0, and returns only when all have come to it, or the communicator
// is aborted: with success, as NCCL does.
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/library_work.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"
#include "tests/software_gpu/nccl_board.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/streams.h"

using namespace software_gpu;

struct ncclComm {
  std::string name;
  int rank = 0, size = 1;
  bool blocks = true;
  bool is_ready = false;  // all ranks have come
  bool is_finalized = false, is_gone = false;
  std::unique_ptr<NcclBoard> board;
  std::uint64_t given = 0, done = 0;        // operations
  std::deque<std::function<void()>> later;  // what NCCL's own thread has still to give to streams
  int looks = 0;                            // at the first of these
  int splits = 0;
  ncclComm* child = nullptr;  // of a split that is in progress, and where it will be told
  ncclComm** child_place = nullptr;
  std::set<void*> registered;
  bool is_connected = false;                               // to the other ranks, which the first operation may do
  std::shared_ptr<void> graphs = std::make_shared<int>();  // that its operations were captured in keep a copy
  ncclResult_t failure = ncclSuccess;
};

namespace {

constexpr int kLooks = 3;

thread_local std::string last_error;

ncclResult_t fail(ncclComm& comm, ncclResult_t result, const std::string& why) {
  last_error = why;
  return comm.failure = result;
}

ncclResult_t look_at(ncclComm& comm);

ncclResult_t look_at_child(ncclComm& comm) {
  const ncclResult_t result = look_at(*comm.child);
  if (result == ncclInProgress) return result;
  if (result == ncclSuccess) *comm.child_place = comm.child;
  comm.child = nullptr;
  return comm.failure = result;
}

// The state of a communicator, after one more look at it.
ncclResult_t look_at(ncclComm& comm) {
  if (comm.failure != ncclSuccess) return comm.failure;
  if (!comm.is_ready) {
    if (!comm.board->all_have_come()) return ncclInProgress;
    if (const std::string twice = comm.board->duplicates(); !twice.empty()) {
      return fail(comm, ncclInvalidUsage, "Duplicate GPU detected : " + twice);
    }
    comm.board->take_name_away();
    comm.is_ready = true;
  }
  if (comm.board->has_lost_a_rank()) return fail(comm, ncclRemoteError, "Connection closed by remote peer");
  if (comm.child != nullptr) return look_at_child(comm);
  if (!comm.later.empty()) {
    if (++comm.looks < kLooks) return ncclInProgress;
    comm.looks = 0;
    comm.later.front()();
    comm.later.pop_front();
    return comm.later.empty() ? ncclSuccess : ncclInProgress;
  }
  return comm.is_finalized && comm.done < comm.given ? ncclInProgress : ncclSuccess;
}

ncclResult_t wait_for(ncclComm& comm) {
  while (true) {
    {
      const std::lock_guard hold(machine_lock());
      const ncclResult_t result = look_at(comm);
      if (result != ncclInProgress || comm.is_gone) return result;
      do_some(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

bool is_there(const ncclComm* comm, const char* call) {
  if (comm != nullptr && !comm->is_gone) return true;
  find_fault(std::string(call) + " on a communicator that is not there");
  return false;
}

ncclComm* new_comm(const std::string& name, int rank, int size, const ncclConfig_t& config) {
  auto* const comm = new ncclComm;  // kept for good: handles of ones that are gone must be known
  comm->name = name;
  comm->rank = rank;
  comm->size = size;
  comm->blocks = config.blocking != 0;
  comm->board = std::make_unique<NcclBoard>(name, rank, size, device_of_thread());
  return comm;
}

// As NCCL's log says which algorithm and wires it takes.
void write_log(const ncclComm& comm, std::size_t bytes) {
  const char* const named = std::getenv("NCCL_DEBUG_FILE");
  if (named == nullptr || std::getenv("NCCL_DEBUG") == nullptr || comm.size == 1) return;
  std::string path = named;
  const std::string pid = std::to_string(getpid());
  if (const std::size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, pid);
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file == nullptr) return;
  const std::string line = "host:" + pid + ":" + pid + " [0] NCCL INFO ";
  const char* const algorithm = std::getenv("NCCL_ALGO");
  if (comm.given == 0) {
    if (algorithm != nullptr) std::fprintf(file, "%sNCCL_ALGO set by environment to %s\n", line.c_str(), algorithm);
    std::fprintf(file, "%sChannel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n", line.c_str());
  }
  const char* const subsystems = std::getenv("NCCL_DEBUG_SUBSYS");
  if (comm.rank == 0 && subsystems != nullptr && std::strstr(subsystems, "TUNING") != nullptr) {
    const bool is_ring = algorithm != nullptr && std::string(algorithm) == "Ring";
    std::fprintf(file, "%sAllReduce: %zu Bytes -> Algo %s proto LL channel{Lo..Hi}={0..1}\n", line.c_str(), bytes,
                 is_ring ? "RING" : "TREE");
  }
  std::fclose(file);
}

// Instead of a root.
constexpr int kMean = -1, kSum = -2;

struct Operation {
  const char* name;
  int root = kMean;
  const void* send;
  void* receive;
  std::size_t count;
  Element element = Element::kFloat;

  std::size_t bytes() const { return count * size_of(element); }
};

// Numbers of 16 bits are rounded after each sum, as they are on a ring, and so is a mean's share, by which they are
// multiplied before, as in NCCLs that pass it as such a number.
void take_result(const ncclComm& comm, const Operation& operation) {
  writes(operation.receive, operation.bytes());
  if (operation.root >= 0) {
    std::memcpy(operation.receive, comm.board->slot(operation.root), operation.bytes());
    return;
  }
  const float share = operation.root == kSum ? 1 : rounded_to(operation.element, 1.0f / static_cast<float>(comm.size));
  std::vector<float> sums(operation.count), part(operation.count);
  for (int rank = 0; rank < comm.size; ++rank) {
    load(comm.board->slot(rank), operation.count, operation.element, part.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = rounded_to(operation.element, sums[i] + part[i] * share);
  }
  store(sums.data(), sums.size(), operation.element, operation.receive);
}

// The work of an operation, which ends once all ranks have come to it.
Progress carry_out(ncclComm& comm, const Operation& operation, std::uint64_t number, bool& has_begun) {
  const auto is_over = [&] { return comm.is_gone || comm.failure != ncclSuccess; };
  if (!has_begun && !is_over()) {
    // What others have sent last must have been taken.
    for (int rank = 0; rank < comm.size; ++rank) {
      if (comm.board->rank(rank).done + 1 < number) return Progress::kWaits;
    }
    reads(operation.send, operation.bytes());
    std::memcpy(comm.board->slot(comm.rank), operation.send, operation.bytes());
    comm.board->me().what = operation.bytes() * 100 + static_cast<std::uint64_t>(operation.root - kSum);
    comm.board->me().begun = number;
    has_begun = true;
  }
  for (int rank = 0; rank < comm.size && !is_over(); ++rank) {
    if (comm.board->rank(rank).begun < number) return Progress::kWaits;
    if (comm.board->rank(rank).what != comm.board->me().what) {
      find_fault(std::string(operation.name) + ": ranks call different operations");
    }
  }
  if (!is_over()) take_result(comm, operation);
  comm.board->me().done = number;
  comm.done = number;
  return Progress::kDone;
}

// What this thread has given since ncclGroupStart.
struct Group {
  int depth = 0;
  std::vector<std::pair<ncclComm*, std::function<void()>>> operations;
};
thread_local Group group;

// Waits for the other ranks. Without the lock.
void connect_ranks(ncclComm& comm) {
  const char* const at_run_time = std::getenv("NCCL_RUNTIME_CONNECT");
  const bool waits = comm.blocks && (at_run_time == nullptr || std::strcmp(at_run_time, "0") != 0);
  comm.board->me().connects = true;
  while (waits && !std::exchange(comm.is_connected, comm.board->all_connect())) {
    {
      const std::lock_guard hold(machine_lock());
      if (comm.is_gone) return;
      do_some(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Gives operations of one communicator to their streams: at once, or when its own thread comes to it.
ncclResult_t give_operations(ncclComm& comm, std::vector<std::function<void()>> operations) {
  if (comm.blocks) connect_ranks(comm);
  const std::lock_guard hold(machine_lock());
  if (comm.is_gone) return ncclSuccess;
  for (std::function<void()>& each : operations) {
    if (comm.blocks) {
      each();
    } else {
      comm.later.push_back(std::move(each));
    }
  }
  return comm.blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t prepare(Operation operation, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                     std::function<void()>& give_it);

ncclResult_t operate(const Operation& operation, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  std::function<void()> give_it;
  if (const ncclResult_t wrong = prepare(operation, type, comm, stream, give_it); wrong != ncclSuccess) return wrong;
  if (group.depth == 0) return give_operations(*comm, {give_it});
  group.operations.emplace_back(comm, std::move(give_it));
  return ncclSuccess;
}

// Checks an operation, and says how it is given to the stream.
ncclResult_t prepare(Operation operation, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
                     std::function<void()>& give_it) {
  const std::lock_guard hold(machine_lock());
  if (type == ncclBfloat16) operation.element = Element::kBf16;
  if (type == ncclFloat16) operation.element = Element::kHalf;
  count(operation.name, operation.bytes());
  if (!is_there(comm, operation.name)) return ncclInvalidArgument;
  if (!comm->later.empty() || comm->child != nullptr || !comm->is_ready) {
    find_fault(std::string(operation.name) + " while the communicator is still at another call");
    return ncclInvalidUsage;
  }
  if (const ncclResult_t state = look_at(*comm); state != ncclSuccess) return state;
  const std::size_t bytes = operation.bytes();
  const bool is_known = type == ncclFloat32 || operation.element != Element::kFloat;
  if (!is_known || bytes > NcclBoard::kMostBytes || device_bytes_from(operation.send) < bytes ||
      device_bytes_from(operation.receive) < bytes) {
    find_fault(std::string(operation.name) + ": a buffer is not of device memory, or ends too early");
    return ncclInvalidArgument;
  }
  if (check_stream(stream) != cudaSuccess) return ncclInvalidArgument;
  write_log(*comm, bytes);
  give_it = [comm, operation, stream, capture = capture_of(stream)] {
    if (capture != capture_of(stream)) {
      find_fault(std::string(operation.name) + ": a capture began or ended while the call was in progress");
    }
    give_made(stream, operation.name, [comm, operation, graph = comm->graphs]() -> Work {
      return [comm, operation, number = ++comm->given, has_begun = false]() mutable {
        return carry_out(*comm, operation, number, has_begun);
      };
    });
  };
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "%d-%d-%lld", getpid(), ++made,
                static_cast<long long>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInvalidArgument:
      return "invalid argument";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const std::lock_guard hold(machine_lock());
  if (!is_there(comm, "ncclCommGetAsyncError")) return ncclInvalidArgument;
  do_some(1);
  *result = look_at(*comm);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* place, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  {
    const std::lock_guard hold(machine_lock());
    constexpr unsigned kInitialised = 0xcafebeef;
    if (config->magic != kInitialised) {
      find_fault("ncclCommInitRankConfig: an ncclConfig_t that is not initialised");
      return ncclInvalidArgument;
    }
    if (size > NcclBoard::kMostRanks) return ncclInvalidArgument;
    const std::string name(id.internal, strnlen(id.internal, sizeof(id.internal)));
    *place = new_comm(name, rank, size, *config);
  }
  return (*place)->blocks ? wait_for(**place) : ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* place, ncclConfig_t* config) {
  ncclComm* child = nullptr;
  {
    const std::lock_guard hold(machine_lock());
    if (!is_there(comm, "ncclCommSplit")) return ncclInvalidArgument;
    const std::string name = comm->name + "." + std::to_string(++comm->splits) + "." + std::to_string(color);
    child = new_comm(name, key, comm->size, *config);
    if (!comm->blocks) {
      comm->child = child;
      comm->child_place = place;
      return ncclInProgress;
    }
  }
  *place = child;
  return wait_for(*child);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  if (operation != ncclAvg && operation != ncclSum) find_fault("ncclAllReduce: an operation that is not modelled");
  const int kind = operation == ncclSum ? kSum : kMean;
  return operate({.name = "ncclAllReduce", .root = kind, .send = send, .receive = receive, .count = count}, type, comm,
                 stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return operate({.name = "ncclBroadcast", .root = root, .send = send, .receive = receive, .count = count}, type, comm,
                 stream);
}

ncclResult_t ncclGroupStart() {
  const std::lock_guard hold(machine_lock());
  count("ncclGroupStart");
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  count("ncclGroupEnd");
  if (group.depth == 0) {
    const std::lock_guard hold(machine_lock());
    find_fault("ncclGroupEnd without ncclGroupStart");
    return ncclInvalidUsage;
  }
  if (--group.depth > 0) return ncclSuccess;
  const auto all = std::exchange(group.operations, {});
  if (all.empty()) return ncclSuccess;
  std::vector<std::function<void()>> operations;
  for (const auto& [comm, give_it] : all) {
    if (comm != all.front().first) find_fault("a group of several communicators: not modelled");
    operations.push_back(give_it);
  }
  return give_operations(*all.front().first, std::move(operations));
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* memory, size_t bytes, void** handle) {
  const std::lock_guard hold(machine_lock());
  count("ncclCommRegister", bytes);
  if (!is_there(comm, "ncclCommRegister") || device_bytes_from(memory) < bytes) return ncclInvalidArgument;
  comm->registered.insert(memory);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const std::lock_guard hold(machine_lock());
  count("ncclCommDeregister");
  if (!is_there(comm, "ncclCommDeregister")) return ncclInvalidArgument;
  if (comm->done < comm->given) find_fault("ncclCommDeregister while work is under way");
  if (comm->registered.erase(handle) > 0) return ncclSuccess;
  find_fault("ncclCommDeregister of what is not registered");
  return ncclInvalidUsage;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  {
    const std::lock_guard hold(machine_lock());
    if (!is_there(comm, "ncclCommFinalize")) return ncclInvalidArgument;
    if (comm->is_finalized) {
      find_fault("ncclCommFinalize for the second time");
      return ncclInvalidUsage;
    }
    if (!comm->registered.empty()) find_fault("leak: memory that is still registered with NCCL");
    comm->is_finalized = true;
  }
  return comm->blocks ? wait_for(*comm) : ncclInProgress;
}

// As the real one, leaving and aborting end once the graphs are gone that operations were captured in.
static void wait_for_graphs(ncclComm_t comm) {
  while (true) {
    {
      const std::lock_guard hold(machine_lock());
      if (comm->graphs.use_count() == 1) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  wait_for_graphs(comm);
  const std::lock_guard hold(machine_lock());
  if (!is_there(comm, "ncclCommDestroy")) return ncclInvalidArgument;
  if (comm->done < comm->given) find_fault("ncclCommDestroy while work is under way");
  comm->board->leave();
  comm->is_gone = true;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard hold(machine_lock());
    if (!is_there(comm, "ncclCommAbort")) return ncclInvalidArgument;
    comm->later.clear();
    comm->board->take_name_away();
    comm->is_gone = true;
  }
  wait_for_graphs(comm);
  return ncclSuccess;
}

}  // extern "C"
