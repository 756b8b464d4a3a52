#include "allreduce/collective/mpi_collective.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/collective/receive_buffers.h"
#include "common/float_loops.h"
#include "common/os/aligned_buffer.h"
#include "common/pause.h"

namespace syncopate::allreduce {
namespace {

// Open MPI gives names to the files of its shared memory (those of its vader transport, below /dev/shm) and removes
// them in MPI_Finalize; a rank that is killed cannot, and the memory would stay until somebody removes it. This removes
// the names at once, so that the memory lives only as long as it is mapped. Call it once every rank of this host has
// mapped what it needs of the others.
void forget_shared_memory_names() {
  constexpr const char* kBeginning = "/dev/shm/vader_segment.";
  std::vector<std::string> names;  // first all: the list is of the kernel's making, and changes as they go
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (const std::size_t at = line.find(kBeginning); at != std::string::npos) names.push_back(line.substr(at));
  }
  // What another rank has taken back already is not there any more.
  for (const std::string& name : names) unlink(name.c_str());
}

Status check(int code) {
  if (code == MPI_SUCCESS) return Status();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::internal(std::string(text, static_cast<std::size_t>(length)));
}

// A buffer goes through the library piece by piece. Of a large one, its non-blocking allreduce makes messages of half
// the buffer and more, and takes up to twice as long as the blocking one, which cuts them up; with pieces of this size
// it takes half as long (64 MiB, two ranks), since what is summed is still in the cache.
constexpr std::size_t kPieceElements = (std::size_t{1} << 20) / sizeof(float);
// A rank that waits asks again and again at first, then sleeps between its questions and leaves the core to others;
// what it finds out too late is then at most a hundredth of what it has waited. MPI yields the core itself within a
// question (mpi_yield_when_idle, which our mpirun command asks for).
constexpr Duration kAskFor = std::chrono::milliseconds(10);
constexpr Duration kSleep = std::chrono::microseconds(100);

class MpiCollective final : public Collective {
 public:
  MpiCollective(int rank, int size, std::shared_ptr<Patience> patience)
      : rank_(rank),
        size_(size),
        patience_(patience ? std::move(patience) : std::make_shared<Patience>()),
        requests_(2 * static_cast<std::size_t>(size)),
        received_(size),
        sizes_(2 * static_cast<std::size_t>(size)) {}
  // MPI_Finalize waits for all ranks, and for what is under way.
  ~MpiCollective() override {
    if (!given_up_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "mpi"; }

  Result<std::span<float>> allocate(std::size_t elements) override {
    memory_.emplace_back(elements);
    return memory_.back().span();
  }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    count(2 * (size_ - 1) * static_cast<std::int64_t>(buffer.size_bytes()) / size_);
    return in_pieces(buffer,
                     [&](std::span<float> piece) {
                       return carry_out(
                           [&](Requests requests) {
                             return MPI_Iallreduce(MPI_IN_PLACE, piece.data(), length_of(piece), MPI_FLOAT, MPI_SUM,
                                                   MPI_COMM_WORLD, &requests[0]);
                           },
                           deadline);
                     })
        .in("all_reduce");
  }
  // In place, MPI puts this rank's sums where the buffer begins.
  Status reduce_scatter(std::span<float> buffer, TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(cut(buffer.size()).in("reduce_scatter"));
    count((size_ - 1) * static_cast<std::int64_t>(buffer.size_bytes()) / size_);
    const auto reduce = [&](Requests requests) {
      return MPI_Ireduce_scatter(MPI_IN_PLACE, buffer.data(), part_sizes_.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                 &requests[0]);
    };
    SYNCOPATE_RETURN_IF_ERROR(carry_out(reduce, deadline).in("reduce_scatter"));
    const Range own = own_part(buffer.size());
    std::copy_backward(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(own.size()),
                       buffer.begin() + static_cast<std::ptrdiff_t>(own.end));
    return Status();
  }
  Status all_gather(std::span<float> buffer, TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(cut(buffer.size()).in("all_gather"));
    count((size_ - 1) * static_cast<std::int64_t>(buffer.size_bytes()) / size_);
    const auto gather = [&](Requests requests) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer.data(), part_sizes_.data(), part_begins_.data(),
                             MPI_FLOAT, MPI_COMM_WORLD, &requests[0]);
    };
    return carry_out(gather, deadline).in("all_gather");
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return in_pieces(buffer,
                     [&](std::span<float> piece) {
                       return carry_out(
                           [&](Requests requests) {
                             return MPI_Ibcast(piece.data(), length_of(piece), MPI_FLOAT, root, MPI_COMM_WORLD,
                                               &requests[0]);
                           },
                           deadline);
                     })
        .in("broadcast");
  }
  Status barrier(TimePoint deadline) override {
    return carry_out([](Requests requests) { return MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]); }, deadline)
        .in("barrier");
  }

  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    if (partner < 0 || partner >= size_ || partner == rank_) {
      return Status::invalid_argument(fmt::format(
          "reduce_pair of rank {} with rank {}: the partner must be another of {} ranks", rank_, partner, size_));
    }
    count(static_cast<std::int64_t>(buffer.size_bytes()));
    return in_pieces(buffer, [&](std::span<float> piece) { return add_partners(piece, partner, deadline); })
        .in(fmt::format("reduce_pair with rank {}", partner));
  }

  // MPI_Ialltoallv wants all that is given in one buffer; what lies anywhere goes by messages, as it does inside it.
  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return exchange(given, taken, deadline).in("all_to_all");
  }

  void interrupt() override { pause_.interrupt(); }

  // MPI does not say what it sends: this is what an allreduce must at least (2·(n-1)/n of the buffer each way).
  TransportCounters counters() const override { return counters_; }

 private:
  using Requests = std::span<MPI_Request>;  // of one operation, two a rank; those that it does not need are null

  static int length_of(std::span<float> piece) { return static_cast<int>(piece.size()); }

  template <typename Operation>
  Status in_pieces(std::span<float> buffer, const Operation& operation) {
    while (!buffer.empty()) {
      const std::span<float> piece = buffer.first(std::min(buffer.size(), kPieceElements));
      SYNCOPATE_RETURN_IF_ERROR(operation(piece));
      buffer = buffer.subspan(piece.size());
    }
    return Status();
  }

  // Sets where the ranks' parts of a buffer lie.
  Status cut(std::size_t length) {
    if (length > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      return Status::invalid_argument(fmt::format("{} elements: MPI's parts end at 2^31", length));
    }
    part_sizes_.clear();
    part_begins_.clear();
    for (const Range& part : balanced_ranges(length, static_cast<std::size_t>(size_))) {
      part_sizes_.push_back(static_cast<int>(part.size()));
      part_begins_.push_back(static_cast<int>(part.begin));
    }
    return Status();
  }

  Status add_partners(std::span<float> piece, int partner, TimePoint deadline) {
    partners_.resize(std::max(partners_.size(), piece.size()));
    const auto exchange = [&](Requests requests) {
      const int code =
          MPI_Irecv(partners_.data(), length_of(piece), MPI_FLOAT, partner, 0, MPI_COMM_WORLD, &requests[0]);
      if (code != MPI_SUCCESS) return code;
      return MPI_Isend(piece.data(), length_of(piece), MPI_FLOAT, partner, 0, MPI_COMM_WORLD, &requests[1]);
    };
    SYNCOPATE_RETURN_IF_ERROR(carry_out(exchange, deadline));
    add(partners_.data(), piece.data(), piece.size());
    return Status();
  }

  Status exchange(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) {
    const auto count = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
    const std::span<std::int64_t> sizes = std::span(sizes_).first(count), theirs = std::span(sizes_).last(count);
    for (std::size_t to = 0; to < count; ++to) {
      sizes[to] = std::ssize(given[to]);
      if (sizes[to] <= std::numeric_limits<int>::max()) continue;
      return Status::invalid_argument(fmt::format("{} bytes to rank {}: MPI's messages end at 2 GiB", sizes[to], to));
    }
    const auto tell_sizes = [&](Requests requests) {
      return MPI_Ialltoall(sizes.data(), 1, MPI_INT64_T, theirs.data(), 1, MPI_INT64_T, MPI_COMM_WORLD, &requests[0]);
    };
    SYNCOPATE_RETURN_IF_ERROR(carry_out(tell_sizes, deadline));
    for (std::size_t from = 0; from < count; ++from) {
      if (theirs[from] >= 0 && theirs[from] <= std::numeric_limits<int>::max()) continue;
      return Status::data_loss(fmt::format("rank {} announces {} bytes", from, theirs[from]));
    }
    const auto send_bytes = [&](Requests requests) {
      for (std::size_t peer = 0; peer < count; ++peer) {
        if (peer == own) continue;
        const int rank = static_cast<int>(peer);
        const std::span<std::byte> place = received_.take(rank, static_cast<std::size_t>(theirs[peer]));
        taken[peer] = place;
        int code = MPI_Irecv(place.data(), static_cast<int>(place.size()), MPI_BYTE, rank, 0, MPI_COMM_WORLD,
                             &requests[2 * peer]);
        if (code != MPI_SUCCESS) return code;
        code = MPI_Isend(given[peer].data(), static_cast<int>(given[peer].size()), MPI_BYTE, rank, 0, MPI_COMM_WORLD,
                         &requests[2 * peer + 1]);
        if (code != MPI_SUCCESS) return code;
        counters_.payload_bytes_out += sizes[peer];
        counters_.payload_bytes_in += theirs[peer];
      }
      return MPI_SUCCESS;
    };
    taken[own] = given[own];
    return carry_out(send_bytes, deadline);
  }

  // Begins an operation and drives it to its end. One that does not end is left to itself, and none is begun after it.
  template <typename Begin>
  Status carry_out(const Begin& begin, TimePoint deadline) {
    if (given_up_) return Status::cancelled("an operation before this one was given up");
    given_up_ = true;  // until it has ended
    if (!pause_.wait(Duration::zero())) return Status::cancelled("interrupted");
    std::ranges::fill(requests_, MPI_REQUEST_NULL);
    SYNCOPATE_RETURN_IF_ERROR(check(begin(requests_)));
    SYNCOPATE_RETURN_IF_ERROR(finish(deadline));
    given_up_ = false;
    return Status();
  }

  Status finish(TimePoint deadline) {
    const TimePoint begin = clock_.now(), sleep_from = begin + kAskFor;
    PatientWait wait(*patience_, deadline, begin);
    while (true) {
      int done = 0;
      SYNCOPATE_RETURN_IF_ERROR(
          check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE)));
      if (done != 0) return Status();
      const TimePoint now = clock_.now();
      if (now >= sleep_from && !wait.next(now)) return Status::deadline_exceeded("not every rank has come to it");
      if (now >= sleep_from && !pause_.wait(kSleep)) return Status::cancelled("interrupted");
    }
  }

  void count(std::int64_t bytes) {
    counters_.payload_bytes_out += bytes;
    counters_.payload_bytes_in += bytes;
  }

  const int rank_;
  const int size_;
  const std::shared_ptr<Patience> patience_;
  const SteadyClock clock_;
  std::vector<AlignedBuffer> memory_;
  std::vector<MPI_Request> requests_;  // of the operation under way
  ReceiveBuffers received_;
  std::vector<std::int64_t> sizes_;            // of what is given and taken, by rank
  std::vector<int> part_sizes_, part_begins_;  // of a buffer, by rank
  std::vector<float> partners_;                // what a pair's other rank has sent
  TransportCounters counters_;
  Pause pause_;
  bool given_up_ = false;
};

}  // namespace

namespace {

// Each rank hears from each other one: all have mapped each other's memory when all are through.
Status meet_everybody(int rank, int size) {
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size, from = (rank + size - step) % size;
    char sent = 0, heard = 0;
    SYNCOPATE_RETURN_IF_ERROR(check(
        MPI_Sendrecv(&sent, 1, MPI_CHAR, to, 0, &heard, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
  }
  return check(MPI_Barrier(MPI_COMM_WORLD));
}

}  // namespace

Result<std::unique_ptr<Collective>> make_mpi_collective(int rank, int size, std::shared_ptr<Patience> patience) {
  int provided = MPI_THREAD_SINGLE;
  // The communication thread and the compute thread both make calls, never two at once.
  SYNCOPATE_RETURN_IF_ERROR(check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided)).in("MPI_Init"));
  auto collective = std::make_unique<MpiCollective>(rank, size, std::move(patience));
  if (provided < MPI_THREAD_SERIALIZED) {
    return Status::internal("this MPI cannot be called from a thread of its own (MPI_THREAD_SERIALIZED)");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int world_rank = 0, world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (world_rank != rank || world_size != size) {
    return Status::invalid_argument(
        fmt::format("MPI says rank {} of {}, the plan says rank {} of {}", world_rank, world_size, rank, size));
  }
  SYNCOPATE_RETURN_IF_ERROR(meet_everybody(rank, size).in("meeting the other ranks"));
  forget_shared_memory_names();
  return std::unique_ptr<Collective>(std::move(collective));
}

}  // namespace syncopate::allreduce
