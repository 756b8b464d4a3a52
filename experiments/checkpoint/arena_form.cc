#include "experiments/checkpoint/arena_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "common/training_state.h"
#include "experiments/checkpoint/safetensors.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kBlock = (std::size_t{1} << 20) / sizeof(float);

}  // namespace

ArenaForm::ArenaForm(const ParamLayout& layout, const std::map<std::string, std::string>& metadata)
    : arena_(layout.dense()) {
  std::vector<TensorForm> forms;
  for (const TensorSpec& tensor : layout.tensors()) {
    if (!tensor.table) forms.push_back({tensor.name, tensor.shape});
  }
  header_ = safetensors_header(forms, metadata);
  file_bytes_ = header_.size();
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.table) continue;
    tensors_.push_back({tensor.range, file_bytes_});
    file_bytes_ += tensor.range.size() * sizeof(float);
  }
}

std::vector<ArenaForm::Stretch> ArenaForm::stretches(Range range) const {
  std::vector<Stretch> found;
  const auto ends_after = [&](const Stretch& tensor) { return tensor.range.end <= range.begin; };
  auto tensor = std::ranges::partition_point(tensors_, ends_after);
  for (; tensor != tensors_.end() && tensor->range.begin < range.end; ++tensor) {
    const Range part{std::max(tensor->range.begin, range.begin), std::min(tensor->range.end, range.end)};
    found.push_back({part, tensor->offset + (part.begin - tensor->range.begin) * sizeof(float)});
  }
  return found;
}

std::vector<Range> ArenaForm::gaps(Range range) const {
  std::vector<Range> gaps;
  std::size_t reached = range.begin;
  for (const Stretch& stretch : stretches(range)) {
    if (stretch.range.begin > reached) gaps.push_back({reached, stretch.range.begin});
    reached = stretch.range.end;
  }
  if (reached < range.end) gaps.push_back({reached, range.end});
  return gaps;
}

std::vector<Range> blocks_of(Range range) {
  std::vector<Range> blocks;
  for (std::size_t begin = range.begin; begin < range.end;) {
    const std::size_t end = std::min(range.end, (begin / kBlock + 1) * kBlock);
    blocks.push_back({begin, end});
    begin = end;
  }
  return blocks;
}

namespace {

constexpr std::string_view kWorker = ".worker", kReplica = ".replica";

// Returns the number after the last `mark`, if the text ends with it; else -1.
int number_behind(std::string_view mark, const std::string& part) {
  const std::size_t at = part.rfind(mark);
  if (at == std::string::npos) return -1;
  int number = -1;
  const char* const end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data() + at + mark.size(), end, number);
  return error == std::errc() && rest == end ? number : -1;
}

}  // namespace

int owner_of(const std::string& part) { return std::max(number_behind(kWorker, part), number_behind(kReplica, part)); }

std::string replica_part(const std::string& part, int worker) { return fmt::format("{}{}{}", part, kReplica, worker); }

std::string name_to_owner(const std::string& part) {
  return number_behind(kReplica, part) < 0 ? part : part.substr(0, part.rfind(kReplica));
}

std::string arena_file(const std::string& part) { return part + ".safetensors"; }

StateForms::StateForms(const ParamLayout& layout, const ParamLayout& local_layout)
    : layout_(layout), local_size_(local_layout.size()), weights_(layout), local_(local_layout) {}

const ArenaForm* StateForms::form_of(const std::string& part) const {
  const bool is_optimizer = std::ranges::find(state_part::kOptimizer, part) != std::end(state_part::kOptimizer);
  if (part == state_part::kWeights || is_optimizer) return &weights_;
  return part.starts_with("local_state.") ? &local_ : nullptr;
}

}  // namespace syncopate::experiments
