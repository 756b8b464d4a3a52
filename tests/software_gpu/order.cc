#include "tests/software_gpu/order.h"

#include <algorithm>

#include "tests/software_gpu/accesses.h"

namespace software_gpu {
namespace {

const Running* innermost = nullptr;

std::shared_ptr<const Knowledge>& of_host() {
  static auto* const known = new std::shared_ptr<const Knowledge>(std::make_shared<Knowledge>());
  return *known;
}

}  // namespace

void Knowledge::join(const Knowledge& other) {
  if (ended_.size() < other.ended_.size()) ended_.resize(other.ended_.size());
  for (std::size_t lane = 0; lane < other.ended_.size(); ++lane) {
    ended_[lane] = std::max(ended_[lane], other.ended_[lane]);
  }
}

std::uint32_t Knowledge::add(std::size_t lane) {
  if (ended_.size() <= lane) ended_.resize(lane + 1);
  return ++ended_[lane];
}

std::size_t new_lanes(std::size_t count) {
  static std::size_t made = 0;
  made += count;
  return made - count;
}

std::shared_ptr<const Knowledge> known_to_host() { return of_host(); }

void tell_host(const Knowledge& knowledge) {
  Knowledge more = *of_host();
  more.join(knowledge);
  // Pieces that were given keep what was known then.
  if (!(more == *of_host())) of_host() = std::make_shared<const Knowledge>(std::move(more));
}

Running::Running(const std::string& name, const void* given_by, std::size_t lane, std::uint32_t piece,
                 Knowledge& knowledge)
    : name_(name), given_by_(given_by), lane_(lane), piece_(piece), knowledge_(knowledge), outer_(innermost) {
  innermost = this;
  begin_accesses();
}

Running::~Running() {
  end_accesses();
  innermost = outer_;
}

const Running* Running::now() { return innermost; }

}  // namespace software_gpu
