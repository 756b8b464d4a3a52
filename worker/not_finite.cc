#include "worker/not_finite.h"

#include <fmt/format.h>

#include <cmath>

#include "common/finite.h"

namespace syncopate::worker {
namespace {

std::string name_of(const NotFinite& what) {
  switch (what.quantity) {
    case NotFinite::Quantity::kRate:
      return "the learning rate";
    case NotFinite::Quantity::kBatch:
      return "a value of its batch";
    case NotFinite::Quantity::kWeights:
      return "the weights of " + what.tensor;
    case NotFinite::Quantity::kGradient:
      return "the gradient of " + what.tensor;
    case NotFinite::Quantity::kLoss:
      return "the loss";
  }
  return {};
}

}  // namespace

std::string to_text(const NotFinite& what) {
  const bool has_loss = what.quantity != NotFinite::Quantity::kLoss && what.loss != 0;
  const std::string loss = !has_loss                  ? ""
                           : std::isfinite(what.loss) ? fmt::format(" (loss {:.4g})", what.loss)
                                                      : fmt::format(" (loss {})", name_of_not_finite(what.loss));
  const char* const verb = what.quantity == NotFinite::Quantity::kWeights ? "hold" : "is";
  return fmt::format("{} {} {}{}", name_of(what), verb, name_of_not_finite(what.value), loss);
}

bool ends_run(OnNan on_nan, NotFinite::Quantity quantity) {
  using Quantity = NotFinite::Quantity;
  const bool is_mended = quantity != Quantity::kWeights && quantity != Quantity::kRate;
  return on_nan == OnNan::kStop || (on_nan == OnNan::kSkip && !is_mended);
}

std::optional<FoundTensor> tensor_not_finite(const ParamLayout& layout, std::span<const float> values,
                                             std::span<const RowKeys> rows) {
  for (std::size_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
    const TensorSpec& spec = layout.tensors()[tensor];
    const Range range = spec.table ? spec.room_of(rows[tensor].size()) : spec.range;
    const std::span<const float> part = slice(values, range);
    if (all_finite(part)) continue;
    return FoundTensor{.name = spec.name, .value = part[*first_not_finite(part)]};
  }
  return std::nullopt;
}

}  // namespace syncopate::worker
