#include "experiments/lab/predict/stretch_text.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

using prediction::Lead;
using prediction::Stretch;

const std::string& lead_text(const Stretch& stretch, const LeadNames& names) {
  static const std::string neither = "the forms cannot tell";
  if (stretch.lead == Lead::kNeither) return neither;
  return stretch.lead == Lead::kFirst ? names.first : names.second;
}

// `where` returns what stands behind the lead of a stretch that is neither the only one nor nothing.
std::string joined_stretches(const std::vector<Stretch>& stretches, const LeadNames& names,
                             const std::function<std::string(std::size_t)>& where) {
  if (stretches.size() == 1) return lead_text(stretches.front(), names) + " throughout";
  std::string text;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", lead_text(stretches[i], names), where(i));
  }
  return text;
}

}  // namespace

std::string stretch_text(const std::vector<Stretch>& stretches, const LeadNames& names,
                         const std::function<std::string(double)>& shown) {
  return joined_stretches(stretches, names, [&](std::size_t i) {
    if (i == 0) return fmt::format("below {}", shown(stretches[i].to));
    if (i + 1 == stretches.size()) return fmt::format("from {} on", shown(stretches[i].from));
    return fmt::format("from {} to {}", shown(stretches[i].from), shown(stretches[i].to));
  });
}

std::string whole_stretch_text(const std::vector<Stretch>& stretches, const LeadNames& names) {
  return joined_stretches(stretches, names, [&](std::size_t i) {
    const Stretch& stretch = stretches[i];
    if (i + 1 == stretches.size()) return fmt::format("from {:.0f} on", stretch.from);
    if (stretch.from == stretch.to) return fmt::format("at {:.0f}", stretch.from);
    return fmt::format("from {:.0f} to {:.0f}", stretch.from, stretch.to);
  });
}

}  // namespace syncopate::experiments
