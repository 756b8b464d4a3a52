// Which piece of work is ordered before which, whatever order is drawn: by its stream, an event, an edge of a graph, or
// by the host, which gave the one when it had waited for the other. Vector clocks, after Fidge and Mattern; the host is
// taken for one, since what its threads do among themselves is not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace software_gpu {

// What is known to have ended, as the number of pieces of each lane. A lane has pieces that are done one after the
// other: a stream's, or those that one stream gave to a graph.
class Knowledge {
 public:
  void join(const Knowledge& other);
  bool has(std::size_t lane, std::uint32_t piece) const { return lane < ended_.size() && ended_[lane] >= piece; }
  // Adds a piece, whose number is returned, to a lane.
  std::uint32_t add(std::size_t lane);
  bool operator==(const Knowledge&) const = default;

 private:
  std::vector<std::uint32_t> ended_;
};

// Returns the first of so many new lanes.
std::size_t new_lanes(std::size_t count);

// What the host knows: of all that it has waited for. With the lock.
std::shared_ptr<const Knowledge> known_to_host();
void tell_host(const Knowledge& knowledge);

// The piece of work that runs; they nest, as a node does in its graph. With the lock.
class Running {
 public:
  // `given_by`: where the call that gave the work returns to.
  Running(const std::string& name, const void* given_by, std::size_t lane, std::uint32_t piece, Knowledge& knowledge);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const std::string& name() const { return name_; }
  const void* given_by() const { return given_by_; }
  std::size_t lane() const { return lane_; }
  std::uint32_t piece() const { return piece_; }
  // Grows when the work waits for other work.
  Knowledge& knowledge() const { return knowledge_; }

  static const Running* now();  // null: none

 private:
  const std::string& name_;
  const void* const given_by_;
  const std::size_t lane_;
  const std::uint32_t piece_;
  Knowledge& knowledge_;
  const Running* const outer_;
};

}  // namespace software_gpu
