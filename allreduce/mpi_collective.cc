#include "allreduce/mpi_collective.h"

#include <fmt/format.h>
#include <mpi.h>

#include <vector>

#include "common/aligned_buffer.h"

namespace syncopate::allreduce {
namespace {

Status check(int code, const char* operation) {
  if (code == MPI_SUCCESS) return Status();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status(Code::kInternal,
                fmt::format("{}: {}", operation, std::string_view(text, static_cast<std::size_t>(length))));
}

class MpiCollective final : public Collective {
 public:
  MpiCollective(int rank, int size) : rank_(rank), size_(size) {}
  ~MpiCollective() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "mpi"; }

  Result<std::span<float>> allocate(std::size_t elements) override {
    memory_.emplace_back(elements);
    return memory_.back().span();
  }

  Status all_reduce(std::span<float> buffer, TimePoint) override {
    count(2 * (size_ - 1) * static_cast<std::int64_t>(buffer.size_bytes()) / size_);
    return check(
        MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
        "MPI_Allreduce");
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint) override {
    return check(MPI_Bcast(buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, root, MPI_COMM_WORLD),
                 "MPI_Bcast");
  }
  Status barrier(TimePoint) override { return check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  Status reduce_pair(std::span<float> buffer, int partner, TimePoint) override {
    SYNCOPATE_RETURN_IF_ERROR(check_partner(partner));
    const auto length = static_cast<int>(buffer.size());
    partners_.resize(buffer.size());
    count(static_cast<std::int64_t>(buffer.size_bytes()));
    SYNCOPATE_RETURN_IF_ERROR(check(MPI_Sendrecv(buffer.data(), length, MPI_FLOAT, partner, 0, partners_.data(), length,
                                                 MPI_FLOAT, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                                    "MPI_Sendrecv"));
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] += partners_[i];
    return Status();
  }

  void interrupt() override {}

  // MPI does not say what it sends: this is what an allreduce must at least (2·(n-1)/n of the buffer each way).
  TransportCounters counters() const override { return counters_; }

 private:
  void count(std::int64_t bytes) {
    counters_.payload_bytes_out += bytes;
    counters_.payload_bytes_in += bytes;
  }

  const int rank_;
  const int size_;
  std::vector<AlignedBuffer> memory_;
  std::vector<float> partners_;  // what a pair's other rank has sent
  TransportCounters counters_;
};

}  // namespace

Result<std::unique_ptr<Collective>> make_mpi_collective(int rank, int size) {
  int provided = MPI_THREAD_SINGLE;
  // The communication thread and the compute thread both make calls, never two at once.
  SYNCOPATE_RETURN_IF_ERROR(check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init"));
  auto collective = std::make_unique<MpiCollective>(rank, size);
  if (provided < MPI_THREAD_SERIALIZED) {
    return Status(Code::kInternal, "this MPI cannot be called from a thread of its own (MPI_THREAD_SERIALIZED)");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int world_rank = 0, world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (world_rank != rank || world_size != size) {
    return Status(Code::kInvalidArgument, fmt::format("MPI says rank {} of {}, the plan says rank {} of {}", world_rank,
                                                      world_size, rank, size));
  }
  return std::unique_ptr<Collective>(std::move(collective));
}

}  // namespace syncopate::allreduce
