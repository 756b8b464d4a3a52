#include "worker/data/label_parts.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <tuple>

#include "common/hash.h"

namespace syncopate::worker {

SampleParts parts_by_label(std::span<const int> labels, int workers) {
  assert(workers >= 1);
  std::vector<std::size_t> next;  // by label: the place of its next sample among all, sorted
  for (const int label : labels) {
    const auto at = static_cast<std::size_t>(label);
    if (next.size() < at + 2) next.resize(at + 2);
    ++next[at + 1];
  }
  for (std::size_t label = 1; label < next.size(); ++label) next[label] += next[label - 1];
  SampleParts parts;
  parts.reserve(labels.size());
  for (const int label : labels) {
    const std::size_t place = next[static_cast<std::size_t>(label)]++;
    // The part that [part x size / workers, (part + 1) x size / workers) has the place in.
    parts.push_back(static_cast<int>(((place + 1) * static_cast<std::size_t>(workers) - 1) / labels.size()));
  }
  return parts;
}

Result<std::shared_ptr<const SampleParts>> parts_by_label(const Dataset& dataset, int workers) {
  using Key = std::tuple<std::uint64_t, std::int64_t, int>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const SampleParts>> known;
  std::vector<int> labels;
  Fnv hash;
  for (std::int64_t sample = 0; sample < dataset.size(); ++sample) {
    const std::optional<int> label = dataset.fixed_label(sample);
    if (!label) return Status::invalid_argument("samples of this data set have no label to divide them by");
    labels.push_back(*label);
    hash.add(static_cast<std::size_t>(*label));
  }
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<const SampleParts>& kept = known[{hash.value(), dataset.size(), workers}];
  if (std::shared_ptr<const SampleParts> parts = kept.lock()) return parts;
  const auto made = std::make_shared<const SampleParts>(parts_by_label(labels, workers));
  kept = made;
  return std::shared_ptr<const SampleParts>(made);
}

void interleave_parts(const SampleParts& parts, int workers, std::span<std::int64_t> permutation) {
  assert(parts.size() == permutation.size());
  std::vector<std::vector<std::int64_t>> own(static_cast<std::size_t>(workers));
  for (const std::int64_t sample : permutation) {
    own[static_cast<std::size_t>(parts[static_cast<std::size_t>(sample)])].push_back(sample);
  }
  const std::size_t least = std::ranges::min(own, {}, &std::vector<std::int64_t>::size).size();
  std::size_t at = 0;
  for (std::size_t i = 0; i < least; ++i) {
    for (const std::vector<std::int64_t>& part : own) permutation[at++] = part[i];
  }
  for (const std::vector<std::int64_t>& part : own) {
    for (std::size_t i = least; i < part.size(); ++i) permutation[at++] = part[i];
  }
}

}  // namespace syncopate::worker
