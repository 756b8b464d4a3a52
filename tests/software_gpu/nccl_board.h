// A board on which the ranks of an NCCL communicator meet: processes of this host, in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace software_gpu {

class NcclBoard {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of an operation

  // What a rank shows the others.
  struct Rank {
    std::atomic<int> pid;        // 0: has not come; -1: has left in order
    std::atomic<bool> connects;  // has come to its first operation
    int device;
    char host[64];                           // NCCL_HOSTID
    std::atomic<std::uint64_t> begun, done;  // operations
    std::atomic<std::uint64_t> what;         // of the one that it has begun: kind, root and bytes
  };

  // Maps the board of that name, which the first rank makes, and shows this one.
  NcclBoard(const std::string& name, int rank, int size, int device);
  NcclBoard(const NcclBoard&) = delete;
  NcclBoard& operator=(const NcclBoard&) = delete;

  bool all_have_come() const;
  bool all_connect() const;
  // Returns two ranks of one host that have the same device, "rank 1 and rank 0"; empty if there are none.
  std::string duplicates() const;
  // Whether a rank that has come is gone without having left.
  bool has_lost_a_rank() const;
  void leave() { me().pid = -1; }
  // Nobody can come to it any more.
  void take_name_away() const;

  Rank& rank(int number) const;
  Rank& me() const { return rank(rank_); }
  // Where a rank puts what it sends.
  float* slot(int number) const;

 private:
  const std::string path_;
  const int rank_, size_;
  char* memory_;
};

}  // namespace software_gpu
