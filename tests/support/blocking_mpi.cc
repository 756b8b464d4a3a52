#include "tests/support/blocking_mpi.h"

#include <mpi.h>

#include <vector>

#include "common/os/aligned_buffer.h"

namespace syncopate::testing_support {
namespace {

class BlockingMpi final : public allreduce::Collective {
 public:
  BlockingMpi() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~BlockingMpi() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "ompi"; }
  Result<std::span<float>> allocate(std::size_t elements) override {
    memory_.emplace_back(elements);
    return memory_.back().span();
  }
  Status all_reduce(std::span<float> buffer, TimePoint) override {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return {};
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint) override {
    MPI_Bcast(buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, root, MPI_COMM_WORLD);
    return {};
  }
  Status barrier(TimePoint) override {
    MPI_Barrier(MPI_COMM_WORLD);
    return {};
  }
  Status reduce_pair(std::span<float>, int, TimePoint) override { return Status::internal("not measured"); }
  Status all_to_all(std::span<const allreduce::Bytes>, std::span<allreduce::Bytes>, TimePoint) override {
    return Status::internal("not measured");
  }
  void interrupt() override {}
  TransportCounters counters() const override { return {}; }

 private:
  int rank_ = 0;
  int size_ = 1;
  std::vector<AlignedBuffer> memory_;
};

}  // namespace

std::unique_ptr<allreduce::Collective> make_blocking_mpi() { return std::make_unique<BlockingMpi>(); }

}  // namespace syncopate::testing_support
