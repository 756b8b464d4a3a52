#include "allreduce/nccl/cuda/nccl_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/nccl/cuda/nccl_communicator.h"
#include "allreduce/nccl/nccl_log.h"
#include "common/device/cuda/cuda_handles.h"
#include "common/text/hex_text.h"
#include "common/text/log.h"

namespace syncopate::allreduce {
namespace {

// How often NCCL is asked, while its work is waited for, whether a peer is lost.
constexpr Duration kAskNccl = std::chrono::milliseconds(10);

std::string version_text() {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);  // nccl.h: NCCL_VERSION
}

// Has the operations of all buffers begin together. What one of them returns is of the whole only if it has failed.
template <typename Operation>
ncclResult_t grouped(std::span<const TensorSpan> buffers, Operation operation) {
  if (buffers.size() == 1) return operation(buffers.front());
  ncclResult_t result = ncclGroupStart();
  for (const TensorSpan buffer : buffers) {
    if (result != ncclSuccess && result != ncclInProgress) break;
    result = operation(buffer);
  }
  const ncclResult_t end = ncclGroupEnd();
  return result == ncclSuccess || result == ncclInProgress ? end : result;
}

ncclDataType_t type_of(ConstTensorSpan buffer) {
  switch (buffer.type()) {
    case ElementType::kBfloat16:
      return ncclBfloat16;
    case ElementType::kFloat16:
      return ncclFloat16;
    case ElementType::kFloat32:
      break;
  }
  return ncclFloat32;
}

class NcclCollective final : public DeviceCollective {
 public:
  NcclCollective(const NcclOptions& options, Device& device, std::unique_ptr<Event> last, const Clock& clock)
      : options_(options),
        device_(device),
        clock_(clock),
        last_(std::move(last)),
        communicator_(gpu_index(device), options.call_timeout, clock, interrupted_) {}

  // Leaving waits for the work under way, in vain where a peer is lost.
  ~NcclCollective() override {
    constexpr Duration kPatience = std::chrono::seconds(5);
    if (communicator_.failure().ok()) (void)wait(*last_, clock_.now() + kPatience);
    if (communicator_.failure().ok() && registration_ != nullptr) {
      communicator_.call("ncclCommDeregister",
                         [this](ncclComm_t communicator) { return ncclCommDeregister(communicator, registration_); });
    }
  }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  const char* name() const override { return "nccl"; }

  std::string description() const override {
    // Steps repeat themselves: what the first ones took is at the log's beginning.
    constexpr std::size_t kMost = std::size_t{4} << 20;
    std::string text(kMost, '\0');
    std::ifstream log(options_.log_file);
    log.read(text.data(), kMost);
    text.resize(static_cast<std::size_t>(log.gcount()));
    const std::string chosen = describe(parse_nccl_log(text));
    return chosen.empty() ? version_text() : fmt::format("{}, {}", version_text(), chosen);
  }

  Status connect(const ncclUniqueId& id, TimePoint deadline) {
    SYNCOPATE_RETURN_IF_ERROR(communicator_.join(id, options_.rank, options_.size, deadline));
    // What one rank does alone, NCCL gives to the GPU at once in any case.
    if (!options_.direct_calls || options_.size == 1) return Status();
    return communicator_.make_direct(options_.rank, deadline);
  }

  // Registered memory is read and written by wires that can, without a copy to NCCL's own (its user guide, "User Buffer
  // Registration").
  void prepare(TensorSpan memory) override {
    if (!communicator_.failure().ok() || memory.empty()) return;
    const ncclResult_t result = communicator_.call("ncclCommRegister", [&](ncclComm_t communicator) {
      return ncclCommRegister(communicator, memory.address(), memory.size_bytes(), &registration_);
    });
    if (result != ncclSuccess) {
      registration_ = nullptr;
      log_debug("{}", nccl_failure(result, "ncclCommRegister").message());
    }
  }

  Status all_reduce(std::span<const TensorSpan> buffers, Reduction reduction, Stream& stream) override {
    const ncclRedOp_t operation = reduction == Reduction::kSum ? ncclSum : ncclAvg;
    return give(stream, "ncclAllReduce", [&](ncclComm_t communicator) {
      return grouped(buffers, [&](TensorSpan buffer) {
        return ncclAllReduce(buffer.address(), buffer.address(), buffer.size(), type_of(buffer), operation,
                             communicator, raw(stream));
      });
    });
  }

  Status broadcast(TensorSpan buffer, int root, Stream& stream) override {
    return give(stream, "ncclBroadcast", [&](ncclComm_t communicator) {
      return ncclBroadcast(buffer.address(), buffer.address(), buffer.size(), type_of(buffer), root, communicator,
                           raw(stream));
    });
  }

  Status wait(const Event& event, TimePoint deadline) override {
    const TimePoint begin = clock_.now();
    while (true) {
      SYNCOPATE_RETURN_IF_ERROR(communicator_.failure());
      if (interrupted_) return communicator_.give_up(Status::cancelled("interrupted in NCCL"));
      const TimePoint now = clock_.now();
      const Status waited = device_.wait(event, std::min(deadline, now + kAskNccl));
      if (waited.code() != Code::kDeadlineExceeded) return waited;
      SYNCOPATE_RETURN_IF_ERROR(communicator_.check());
      if (now >= deadline) return communicator_.give_up(no_answer("NCCL", now - begin));
    }
  }

  void interrupt() override {
    interrupted_ = true;
    communicator_.interrupt();
  }

 private:
  // Only once NCCL has given the operation to the GPU may anything else be given to its stream.
  template <typename Call>
  Status give(Stream& stream, const char* name, Call call) {
    SYNCOPATE_RETURN_IF_ERROR(communicator_.failure());
    failure_of(device_).giving(name);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(raw(stream), &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone) {
      communicator_.set_captured();
    }
    const TimePoint deadline = clock_.now() + options_.call_timeout;
    SYNCOPATE_RETURN_IF_ERROR(communicator_.settle(communicator_.call(name, call), name, deadline));
    stream.record(*last_);
    return Status();
  }

  const NcclOptions options_;
  Device& device_;
  const Clock& clock_;
  std::atomic<bool> interrupted_{false};
  // Behind the last operation: NCCL carries out those of a communicator one after another, on whatever streams.
  const std::unique_ptr<Event> last_;
  void* registration_ = nullptr;  // of the memory that was prepared
  NcclCommunicator communicator_;
};

// NCCL's unique id, made by rank 0; nobody needs MPI for it to go round.
Result<ncclUniqueId> agree_on_id(const NcclOptions& options, Rendezvous& rendezvous, TimePoint deadline) {
  ncclUniqueId id{};
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(id.internal));
  Status made;
  std::string value;
  if (options.rank == 0) {
    if (const ncclResult_t result = ncclGetUniqueId(&id); result == ncclSuccess) {
      value = to_hex(bytes);
    } else {
      made = nccl_failure(result, "ncclGetUniqueId");
    }
  }
  // Also without an id: the others are not to wait for it.
  const Result<std::vector<std::string>> values =
      rendezvous.exchange(options.group, options.rank, options.size, value, deadline);
  SYNCOPATE_RETURN_IF_ERROR(made);
  if (!values.ok()) return values.status();
  if (values->empty() || !from_hex(values->front(), bytes)) {
    return Status::peer_lost("rank 0 has not made a unique id of NCCL's");
  }
  return id;
}

}  // namespace

Result<std::unique_ptr<DeviceCollective>> connect_nccl(const NcclOptions& options, Device& device,
                                                       Rendezvous& rendezvous, const Clock& clock, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(ncclUniqueId id, agree_on_id(options, rendezvous, deadline));
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Event> last, device.make_event());
  auto collective = std::make_unique<NcclCollective>(options, device, std::move(last), clock);
  SYNCOPATE_RETURN_IF_ERROR(collective->connect(id, deadline));
  return std::unique_ptr<DeviceCollective>(std::move(collective));
}

}  // namespace syncopate::allreduce
