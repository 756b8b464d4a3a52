#include "ps/policy/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "common/text/list_text.h"
#include "common/text/number.h"
#include "ps/policy/dynamic_bound.h"
#include "ps/policy/staleness_bound.h"

namespace syncopate::ps {
namespace {

using Update = ConsistencyTraits::Update;

std::unique_ptr<StalenessBound> fixed_bound(const Consistency& consistency, int) {
  return std::make_unique<FixedBound>(consistency.parameter(0));
}

std::unique_ptr<StalenessBound> dynamic_bound(const Consistency& consistency, int workers) {
  return std::make_unique<DynamicBound>(consistency.parameter(0), consistency.parameter(1), workers);
}

constexpr ConsistencyTraits kTraits[] = {
    {.name = "sync", .sentence = "in step", .update = Update::kAllWorkers, .tables = true, .backup_workers = true},
    {.name = "bounded",
     .sentence = "by at most k pushes",
     .parameters = {{{.name = "k"}}},
     .tables = true,
     .bound = fixed_bound},
    {.name = "dynamic",
     .sentence = "by at most MIN pushes, or up to MAX where less waiting is predicted of it",
     .parameters = {{{.name = "MIN", .most = 1000}, {.name = "MAX", .most = 1000}}},
     .tables = true,
     .bound = dynamic_bound},
    {.name = "softsync",
     .sentence = "freely, at a staleness of about n",
     .parameters = {{{.name = "n", .least = 1, .with_all_workers = "it is async"}}},
     .update = Update::kSeveralPushes},
    {.name = "async", .sentence = "freely", .tables = true, .pipeline = true},
    {.name = "local-sgd",
     .sentence = "by k steps of their own, after which all take the mean of their weights",
     .parameters = {{{.name = "k", .least = 1}}},
     .update = Update::kAllWorkers,
     .pushes_weights = true,
     .quorum = true},
    {.name = "easgd",
     .sentence = "freely, each drawn to the center every k steps",
     .parameters = {{{.name = "k", .least = 1}}},
     .pushes_weights = true}};

// Returns the parameters that the kind has.
std::span<const ConsistencyParameter> parameters_of(const ConsistencyTraits& traits) {
  const auto end = std::ranges::find(traits.parameters, std::string_view(), &ConsistencyParameter::name);
  return {traits.parameters.begin(), end};
}

// Returns the usage with the range of each parameter: "bounded:k (k from 0 to 1000000)".
std::string form_of(const ConsistencyTraits& traits) {
  const std::span<const ConsistencyParameter> parameters = parameters_of(traits);
  if (parameters.empty()) return traits.usage();
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string least = i == 0 ? fmt::to_string(parameters[0].least) : std::string(parameters[i - 1].name);
    const std::string most = i + 1 < parameters.size()                ? std::string(parameters[i + 1].name)
                             : parameters[i].with_all_workers.empty() ? fmt::to_string(parameters[i].most)
                                                                      : "the workers";
    ranges.push_back(fmt::format("{} from {} to {}", parameters[i].name, least, most));
  }
  return fmt::format("{} ({})", traits.usage(), list_text(ranges, "and"));
}

std::vector<std::string> texts_of(ConsistencyTest test, std::string (*text)(const ConsistencyTraits&)) {
  std::vector<std::string> texts;
  for (const ConsistencyTraits& traits : kTraits) {
    if (test(traits)) texts.push_back(text(traits));
  }
  return texts;
}

// Takes the first of `text`'s parts between colons out of it.
std::string_view take_part(std::optional<std::string_view>& text) {
  const std::size_t colon = text->find(':');
  const std::string_view part = text->substr(0, colon);
  text = colon == text->npos ? std::nullopt : std::optional(text->substr(colon + 1));
  return part;
}

}  // namespace

std::span<const ConsistencyTraits> consistency_traits() { return kTraits; }

std::string ConsistencyTraits::usage() const {
  std::string text(name);
  for (const ConsistencyParameter& parameter : parameters_of(*this)) text.append(":").append(parameter.name);
  return text;
}

std::vector<std::string> consistency_names(ConsistencyTest test) {
  return texts_of(test, [](const ConsistencyTraits& traits) { return std::string(traits.name); });
}

std::vector<std::string> consistency_usages(ConsistencyTest test) {
  return texts_of(test, [](const ConsistencyTraits& traits) { return traits.usage(); });
}

Consistency::Consistency() : traits_(std::ranges::find(kTraits, "async", &ConsistencyTraits::name)) {}

Result<Consistency> Consistency::parse(std::string_view text) {
  const auto wrong = [text] { return Status::invalid_argument(fmt::format("'{}' is not {}", text, forms())); };
  std::optional<std::string_view> rest = text;
  const auto* const traits = std::ranges::find(kTraits, take_part(rest), &ConsistencyTraits::name);
  if (traits == std::end(kTraits)) return wrong();
  Consistency consistency;
  consistency.traits_ = traits;
  const std::span<const ConsistencyParameter> parameters = parameters_of(*traits);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!rest) return wrong();
    const auto number = parse_number<std::int64_t>(take_part(rest));
    const std::int64_t least = i == 0 ? parameters[i].least : consistency.parameters_[i - 1];
    if (!number || *number < least || *number > parameters[i].most) return wrong();
    consistency.parameters_[i] = *number;
  }
  if (rest) return wrong();
  return consistency;
}

std::string Consistency::forms() {
  return list_text(texts_of([](const ConsistencyTraits&) { return true; }, form_of), "or");
}

Consistency Consistency::with_backup_workers(int backup_workers) const {
  Consistency consistency = *this;
  consistency.backup_workers_ = backup_workers;
  return consistency;
}

Consistency Consistency::with_quorum(const Quorum& quorum) const {
  Consistency consistency = *this;
  consistency.quorum_ = quorum;
  return consistency;
}

std::string Consistency::to_string() const {
  std::string text(traits().name);
  for (std::size_t i = 0; i < parameters_of(traits()).size(); ++i) text += fmt::format(":{}", parameters_[i]);
  return text;
}

std::int64_t Consistency::period() const { return pushes_weights() ? parameters_[0] : 1; }
bool Consistency::updates_together() const { return traits().updates_together(); }
bool Consistency::sums_gradients() const { return traits().update == Update::kSeveralPushes; }
bool Consistency::pushes_weights() const { return traits().pushes_weights; }
bool Consistency::is_elastic() const { return traits().is_elastic(); }
bool Consistency::applies_stale_gradients() const { return traits().applies_stale_gradients(); }
bool Consistency::waits_for_others() const { return traits().waits_for_others(); }

int Consistency::pushes_an_update(int workers, int live) const {
  if (updates_together()) return std::min(quorum_.is_all() ? workers - backup_workers_ : quorum_.workers, live);
  return sums_gradients() ? std::max(1, static_cast<int>(workers / parameters_[0])) : 1;
}

std::unique_ptr<StalenessBound> Consistency::make_bound(int workers) const {
  return traits().bound == nullptr ? nullptr : traits().bound(*this, workers);
}

std::int64_t Consistency::least_bound() const {
  return traits().bound == nullptr ? std::numeric_limits<std::int64_t>::max() : parameters_[0];
}

Status Consistency::check_workers(int workers) const {
  const std::span<const ConsistencyParameter> parameters = parameters_of(traits());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].with_all_workers.empty() || parameters_[i] <= workers) continue;
    return Status::invalid_argument(fmt::format("{} must be {} to {}, the workers; with as many {}", parameters[i].name,
                                                parameters[i].least, workers, parameters[i].with_all_workers));
  }
  return Status();
}

}  // namespace syncopate::ps
