#include "allreduce/collective/direct_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "allreduce/collective/direct_board.h"
#include "allreduce/collective/rank_order_sum.h"
#include "common/hash.h"
#include "common/os/read_once.h"
#include "common/param_layout.h"
#include "common/transport/shm_links.h"
#include "common/transport/shm_memory.h"

namespace syncopate::allreduce {
namespace {

const char* name_of(DirectOperation::Kind kind) {
  switch (kind) {
    case DirectOperation::kBarrier:
      return "barrier";
    case DirectOperation::kAllReduce:
      return "all_reduce";
    case DirectOperation::kReduceScatter:
      return "reduce_scatter";
    case DirectOperation::kAllGather:
      return "all_gather";
    case DirectOperation::kBroadcast:
      return "broadcast";
    case DirectOperation::kAllToAll:
      return "all_to_all";
  }
  return "nothing known";
}

std::string describe(const DirectOperation& operation) {
  return fmt::format("{} of elements {} to {} of arena {}", name_of(operation.kind), operation.offset,
                     operation.offset + operation.length, operation.arena);
}

// Ranks that do operations together, as this one sees them.
struct RankGroup {
  std::vector<int> members;  // ascending, with this rank
  DirectPlace* own = nullptr;
  std::vector<const DirectPlace*> places;  // by index in members
  std::vector<float*> buffers;             // of the operation under way, by index in members
  std::uint32_t number = 0;                // of the operation under way
};

bool has_come(const std::atomic<std::uint32_t>& counter, std::uint32_t number) {
  return static_cast<std::int32_t>(counter.load(std::memory_order_acquire) - number) >= 0;
}

class SharedBuffers final : public DirectCollective {
 public:
  SharedBuffers(const TransportOptions& options, SharedMemory board, std::vector<int> called)
      : rank_(options.rank),
        called_(std::move(called)),
        patience_(options.patience ? options.patience : std::make_shared<Patience>()),
        board_memory_(std::move(board)),
        board_(*::new (board_memory_.bytes().data()) DirectBoard),
        waiter_(board_.doorbell),
        peers_(static_cast<std::size_t>(options.size)),
        pairs_(static_cast<std::size_t>(options.size)) {
    if (!called_.empty()) return;
    called_.resize(peers_.size());
    std::iota(called_.begin(), called_.end(), 0);
  }

  Status connect(const TransportOptions& options, Rendezvous& rendezvous, TimePoint deadline) {
    const std::uint64_t run = hash_of(options.run_id + "/" + options.group);
    SYNCOPATE_ASSIGN_OR_RETURN(ShmLinks links, ShmLinks::connect(options, run, board_memory_, rendezvous, deadline));
    links_.emplace(std::move(links));
    counters_.rejected = links_->rejected();
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory board, SharedMemory::map(links_->take_inbox_of(rank), true));
      if (board.bytes().size() < DirectBoard::bytes_for(size())) {
        return Status::data_loss(fmt::format("the board of rank {} is too small", called(rank)));
      }
      peer(rank).board.emplace(std::move(board));
    }
    form_circles();
    return Status();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const char* name() const override { return "direct"; }
  bool works_in_memory() const override { return true; }

  Result<std::span<float>> allocate(std::size_t elements) override {
    SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory memory,
                               SharedMemory::create(std::max<std::size_t>(elements, 1) * sizeof(float)));
    SYNCOPATE_RETURN_IF_ERROR(links_->announce_arena(arenas_.size(), memory));
    arenas_.push_back(std::move(memory));
    return floats_of(arenas_.back()).first(elements);
  }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    return sum(all_, buffer, deadline).in("all_reduce");
  }

  Status reduce_scatter(std::span<float> buffer, TimePoint deadline) override {
    return sum_own_part(buffer, deadline).in("reduce_scatter");
  }
  Status all_gather(std::span<float> buffer, TimePoint deadline) override {
    return take_parts(buffer, deadline).in("all_gather");
  }

  Status all_reduce_by_parts(std::span<float> buffer, std::size_t owners, const PartFunction& work,
                             TimePoint deadline) override {
    return sum_by_parts(all_, buffer, owners, work, deadline).in("all_reduce");
  }

  Result<std::span<float>> buffer_of(int rank, std::span<const float> buffer) override {
    SYNCOPATE_ASSIGN_OR_RETURN(const DirectBytes place, place_of(std::as_bytes(buffer)));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> arena, arena_of(rank, place.arena));
    const std::size_t offset = place.offset / sizeof(float);
    if (offset + buffer.size() > arena.size()) {
      return Status::data_loss(fmt::format("rank {} has {} elements where rank {} has {}: ranks disagree", called(rank),
                                           arena.size(), called(rank_), floats_of(arenas_[place.arena]).size()));
    }
    return arena.subspan(offset, buffer.size());
  }

  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(check_partner(partner));
    return sum(pairs_[static_cast<std::size_t>(partner)], buffer, deadline).in("reduce_pair");
  }

  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return spread(buffer, root, deadline).in("broadcast");
  }

  Status barrier(TimePoint deadline) override {
    return enter(all_, {.kind = DirectOperation::kBarrier}, deadline).in("barrier");
  }

  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return exchange(given, taken, deadline).in("all_to_all");
  }

  void interrupt() override { waiter_.interrupt(); }
  int waiting_for() const override { return waiting_for_.load(std::memory_order_relaxed); }
  TransportCounters counters() const override { return counters_; }

 private:
  struct Peer {
    std::optional<SharedMemory> board;  // none for oneself
    std::vector<SharedMemory> arenas;   // by number
    bool lost = false;
  };

  int called(int rank) const { return called_[static_cast<std::size_t>(rank)]; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  DirectBoard& board_of(int rank) {
    return rank == rank_ ? board_ : *reinterpret_cast<DirectBoard*>(peer(rank).board->bytes().data());
  }
  static std::span<float> floats_of(const SharedMemory& memory) {
    return {reinterpret_cast<float*>(memory.bytes().data()), memory.bytes().size() / sizeof(float)};
  }

  void form_circles() {
    all_.members.resize(peers_.size());
    std::iota(all_.members.begin(), all_.members.end(), 0);
    for (int rank : all_.members) {
      all_.places.push_back(&board_of(rank).places[rank]);
      for (std::size_t side : {0, 1}) small_[side].push_back(board_of(rank).small[side]);
    }
    all_.own = &board_.places[rank_];
    for (int partner : all_.members) {
      if (partner == rank_) continue;
      RankGroup& pair = pairs_[static_cast<std::size_t>(partner)];
      pair.members = {std::min(rank_, partner), std::max(rank_, partner)};
      pair.own = &board_.places[partner];
      pair.places = {pair.own, &board_of(partner).places[rank_]};
      if (partner < rank_) std::swap(pair.places[0], pair.places[1]);
    }
  }

  Status sum(RankGroup& group, std::span<float> buffer, TimePoint deadline) {
    if (group.members.size() < 2) return Status();
    if (&group == &all_ && buffer.size() <= kDirectSmallFloats) return sum_small(buffer, deadline);
    const auto sum_part = [](std::span<float* const> parts, std::size_t count) {
      sum_everywhere(parts, count);
      return Status();
    };
    return sum_by_parts(group, buffer, group.members.size(), sum_part, deadline);
  }

  template <typename Work>
  Status sum_by_parts(RankGroup& group, std::span<float> buffer, std::size_t owners, const Work& work,
                      TimePoint deadline) {
    count(group, 2 * buffer.size_bytes());
    SYNCOPATE_RETURN_IF_ERROR(enter_on(group, DirectOperation::kAllReduce, buffer, deadline));
    const auto place = static_cast<std::size_t>(std::ranges::find(group.members, rank_) - group.members.begin());
    const Range part = place < owners ? balanced_ranges(buffer.size(), owners)[place] : Range();
    for (float*& each : group.buffers) each += part.begin;
    SYNCOPATE_RETURN_IF_ERROR(work(std::span<float* const>(group.buffers), part.size()));
    return leave(group, deadline);
  }

  Status sum_own_part(std::span<float> buffer, TimePoint deadline) {
    if (size() < 2) return Status();
    count(all_, buffer.size_bytes());
    SYNCOPATE_RETURN_IF_ERROR(enter_on(all_, DirectOperation::kReduceScatter, buffer, deadline));
    const Range part = own_part(buffer.size());
    for (float*& each : all_.buffers) each += part.begin;
    sum_in_one(all_.buffers, static_cast<std::size_t>(rank_), part.size());
    return leave(all_, deadline);
  }

  Status take_parts(std::span<float> buffer, TimePoint deadline) {
    if (size() < 2) return Status();
    count(all_, buffer.size_bytes());
    SYNCOPATE_RETURN_IF_ERROR(enter_on(all_, DirectOperation::kAllGather, buffer, deadline));
    const std::vector<Range> parts = balanced_ranges(buffer.size(), all_.members.size());
    for (std::size_t from = 0; from < parts.size(); ++from) {
      if (static_cast<int>(from) == rank_) continue;
      const float* const theirs = all_.buffers[from] + parts[from].begin;
      std::copy_n(theirs, parts[from].size(), slice(buffer, parts[from]).begin());
    }
    return leave(all_, deadline);
  }

  Status sum_small(std::span<float> buffer, TimePoint deadline) {
    SYNCOPATE_ASSIGN_OR_RETURN(DirectOperation operation, operation_on(DirectOperation::kAllReduce, buffer));
    count(all_, 2 * buffer.size_bytes());
    const std::size_t side = (all_.number + 1) % 2;
    std::ranges::copy(buffer, board_.small[side]);
    SYNCOPATE_RETURN_IF_ERROR(enter(all_, operation, deadline));
    sum_into(buffer.data(), small_[side], buffer.size());
    return Status();
  }

  Status spread(std::span<float> buffer, int root, TimePoint deadline) {
    if (size() < 2) return Status();
    SYNCOPATE_ASSIGN_OR_RETURN(DirectOperation operation, operation_on(DirectOperation::kBroadcast, buffer));
    operation.root = static_cast<std::uint16_t>(root);
    SYNCOPATE_RETURN_IF_ERROR(enter(all_, operation, deadline));
    SYNCOPATE_RETURN_IF_ERROR(find_buffers(all_, operation));
    const auto bytes = static_cast<std::int64_t>(buffer.size_bytes());
    if (root == rank_) {
      counters_.payload_bytes_out += bytes * (size() - 1);
    } else {
      std::copy_n(all_.buffers[static_cast<std::size_t>(root)], buffer.size(), buffer.begin());
      counters_.payload_bytes_in += bytes;
    }
    return leave(all_, deadline);
  }

  // Everybody shows where what it gives lies. It is read there.
  Status exchange(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) {
    const auto own = static_cast<std::size_t>(rank_);
    const std::size_t side = (all_.number + 1) % 2;
    for (std::size_t to = 0; to < given.size(); ++to) {
      if (to == own) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const DirectBytes place, place_of(given[to]));
      board_.given(side, peers_.size())[to] = place;
      counters_.payload_bytes_out += static_cast<std::int64_t>(given[to].size());
    }
    SYNCOPATE_RETURN_IF_ERROR(enter(all_, {.kind = DirectOperation::kAllToAll}, deadline));
    for (std::size_t from = 0; from < taken.size(); ++from) {
      if (from == own) continue;
      const int member = static_cast<int>(from);
      SYNCOPATE_ASSIGN_OR_RETURN(
          const Bytes bytes,
          bytes_at(member, read_once<DirectBytes>(&board_of(member).given(side, peers_.size())[own])));
      taken[from] = bytes;
      counters_.payload_bytes_in += static_cast<std::int64_t>(bytes.size());
    }
    taken[own] = given[own];
    return Status();
  }

  Result<Bytes> bytes_at(int member, const DirectBytes& place) {
    if (place.length == 0) return Bytes();
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> arena, arena_of(member, place.arena));
    if (place.offset > arena.size_bytes() || place.length > arena.size_bytes() - place.offset) {
      return Status::data_loss(fmt::format("rank {} gives bytes {} to {} of an arena of {} bytes", called(member),
                                           place.offset, place.offset + place.length, arena.size_bytes()));
    }
    return Bytes(std::as_bytes(arena).subspan(place.offset, place.length));
  }

  // Enters an operation on `buffer`, and finds all members' buffers.
  Status enter_on(RankGroup& group, DirectOperation::Kind kind, std::span<const float> buffer, TimePoint deadline) {
    SYNCOPATE_ASSIGN_OR_RETURN(const DirectOperation operation, operation_on(kind, buffer));
    SYNCOPATE_RETURN_IF_ERROR(enter(group, operation, deadline));
    return find_buffers(group, operation);
  }

  // Where `buffer` lies, which is where it lies on all ranks.
  Result<DirectOperation> operation_on(DirectOperation::Kind kind, std::span<const float> buffer) const {
    SYNCOPATE_ASSIGN_OR_RETURN(const DirectBytes place, place_of(std::as_bytes(buffer)));
    return DirectOperation{.kind = kind,
                           .arena = static_cast<std::uint32_t>(place.arena),
                           .offset = place.offset / sizeof(float),
                           .length = buffer.size()};
  }

  Result<DirectBytes> place_of(Bytes bytes) const {
    if (bytes.empty()) return DirectBytes();
    for (std::size_t number = 0; number < arenas_.size(); ++number) {
      const Bytes arena = arenas_[number].bytes();
      if (bytes.data() < arena.data() || bytes.data() + bytes.size() > arena.data() + arena.size()) continue;
      return DirectBytes{number, static_cast<std::uint64_t>(bytes.data() - arena.data()), bytes.size()};
    }
    return Status::invalid_argument("the buffer does not lie in memory from allocate()");
  }

  // Returns when all members have entered and are about to do the same.
  Status enter(RankGroup& group, const DirectOperation& operation, TimePoint deadline) {
    ++group.number;
    group.own->operations[group.number % 2] = operation;
    SYNCOPATE_RETURN_IF_ERROR(meet(group, &DirectPlace::entered, deadline));
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const auto other = read_once<DirectOperation>(&group.places[i]->operations[group.number % 2]);
      if (other == operation) continue;
      return Status::data_loss(fmt::format("rank {} is in {} where rank {} is in {}: ranks disagree on what they do",
                                           called(group.members[i]), describe(other), called(rank_),
                                           describe(operation)));
    }
    return Status();
  }

  Status leave(RankGroup& group, TimePoint deadline) { return meet(group, &DirectPlace::left, deadline); }

  // Sets this rank's counter to the operation's number and returns when all members' have come there.
  Status meet(RankGroup& group, std::atomic<std::uint32_t> DirectPlace::*counter, TimePoint deadline) {
    (group.own->*counter).store(group.number);
    for (int member : group.members) {
      ShmDoorbell& bell = board_of(member).doorbell;
      if (member != rank_ && bell.sleeping.load() != 0) bell.ring();
    }
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const std::atomic<std::uint32_t>& other = group.places[i]->*counter;
      if (has_come(other, group.number)) continue;
      const int member = group.members[i];
      waiting_for_.store(called(member), std::memory_order_relaxed);
      Status status = wait_patiently(
          [&](TimePoint until) {
            return waiter_.wait_for([&] { return has_come(other, group.number) || peer(member).lost; }, until,
                                    "it has not come", [this] { note_lost_peers(); });
          },
          deadline);
      waiting_for_.store(-1, std::memory_order_relaxed);
      if (status.ok() && !has_come(other, group.number)) status = Status::peer_lost("it is gone");
      if (!status.ok()) {
        return waited_for(called(member), status.in(fmt::format("waiting for rank {}", called(member))));
      }
    }
    return Status();
  }

  template <typename Wait>
  Status wait_patiently(const Wait& wait_until, TimePoint deadline) {
    PatientWait wait(*patience_, deadline, clock_.now());
    Status status = wait_until(wait.next(clock_.now()).value_or(deadline));
    while (status.code() == Code::kDeadlineExceeded) {
      const std::optional<TimePoint> next = wait.next(clock_.now());
      if (!next) break;
      status = wait_until(*next);
    }
    return status;
  }

  void note_lost_peers() {
    for (int rank : links_->newly_lost()) peer(rank).lost = true;
  }

  // Fills group.buffers.
  Status find_buffers(RankGroup& group, const DirectOperation& operation) {
    group.buffers.clear();
    for (int member : group.members) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> arena, arena_of(member, operation.arena));
      if (operation.offset + operation.length > arena.size()) {
        return Status::data_loss(fmt::format("rank {} has {} elements where rank {} has {}: ranks disagree",
                                             called(member), arena.size(), called(rank_),
                                             floats_of(arenas_[operation.arena]).size()));
      }
      group.buffers.push_back(arena.data() + operation.offset);
    }
    return Status();
  }

  // Members announce their arenas before they enter an operation on them.
  Result<std::span<float>> arena_of(int member, std::size_t number) {
    std::vector<SharedMemory>& arenas = member == rank_ ? arenas_ : peer(member).arenas;
    while (arenas.size() <= number) {
      std::optional<ReceivedParcel> received = links_->next_from(member);
      if (!received) return Status::peer_lost(fmt::format("rank {} has not shown its memory", called(member)));
      SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory memory, SharedMemory::map(std::move(received->file), true));
      arenas.push_back(std::move(memory));
    }
    return floats_of(arenas[number]);
  }

  // What goes from this rank's buffer to others' sums, (n-1)/n of the buffer, and as much if it goes from its sum to
  // others' buffers; `bytes`: of the buffer, once or twice.
  void count(const RankGroup& group, std::size_t bytes) {
    const auto n = static_cast<std::int64_t>(group.members.size());
    const std::int64_t each_way = (n - 1) * static_cast<std::int64_t>(bytes) / n;
    counters_.payload_bytes_out += each_way;
    counters_.payload_bytes_in += each_way;
  }

  const int rank_;
  std::vector<int> called_;  // the numbers of ranks in messages
  const std::shared_ptr<Patience> patience_;
  const SteadyClock clock_;
  SharedMemory board_memory_;
  DirectBoard& board_;
  ShmWaiter waiter_;
  std::optional<ShmLinks> links_;
  std::vector<Peer> peers_;           // by rank
  std::vector<SharedMemory> arenas_;  // own
  RankGroup all_;
  std::vector<RankGroup> pairs_;                    // by partner
  std::array<std::vector<const float*>, 2> small_;  // small buffers on the boards, by side and rank
  std::atomic<int> waiting_for_{-1};
  TransportCounters counters_;
};

}  // namespace

Result<std::unique_ptr<DirectCollective>> make_direct_collective(const TransportOptions& options,
                                                                 Rendezvous& rendezvous, TimePoint deadline,
                                                                 std::vector<int> called) {
  SYNCOPATE_ASSIGN_OR_RETURN(SharedMemory board, SharedMemory::create(DirectBoard::bytes_for(options.size)));
  auto collective = std::make_unique<SharedBuffers>(options, std::move(board), std::move(called));
  SYNCOPATE_RETURN_IF_ERROR(collective->connect(options, rendezvous, deadline));
  return std::unique_ptr<DirectCollective>(std::move(collective));
}

}  // namespace syncopate::allreduce
