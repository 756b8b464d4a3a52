#include "experiments/lab/predict/own_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/cluster/process/data_of.h"
#include "experiments/config/commands.h"
#include "experiments/config/resolution.h"
#include "experiments/config/rules/table_rules.h"
#include "experiments/lab/run/run_prediction.h"
#include "worker/gpt.h"
#include "worker/model.h"
#include "worker/pipeline/stage_model.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::experiments {
namespace {

// Divides the FLOPs of all layers among tensors as the profile divides its own.
void set_flops(const worker::ChainFacts& facts, prediction::ModelProfile& profile) {
  double flops = 0;
  for (const worker::LayerFacts& layer : facts.layers) flops += layer.cost;
  const double stretch = flops / profile.forward_flops();
  for (prediction::TensorProfile& tensor : profile.tensors) tensor.forward_flops *= stretch;
}

}  // namespace

void set_usual_data(GivenOptions& given) {
  if (given.contains("dataset")) return;
  const std::string& model = given.at("model");
  if (worker::is_gpt(model)) given["dataset"] = "grammar";
  if (model == "resnet50") given["dataset"] = "patterns";
}

bool names_own_model(const GivenOptions& given) {
  const auto model = given.find("model");
  if (model == given.end() || given.contains("profile")) return false;
  const std::string& name = model->second;
  if (name.starts_with(kProfilePrefix) || name.ends_with(".json")) return false;
  if (prediction::built_in_profile(name).ok()) return given.contains("dataset");
  const auto is_its = [&](const std::string& known) { return worker::family_of(known) == worker::family_of(name); };
  return std::ranges::any_of(worker::model_names(), is_its);
}

Result<OwnModel> take_own_model(GivenOptions& given) {
  set_usual_data(given);
  OwnModel own{.name = given.at("model"), .profile = {}, .words = {}};
  GivenOptions of_model;
  for (const char* const name : kOfModels) {
    if (const auto found = given.find(name); found != given.end()) of_model.insert(given.extract(found));
  }
  for (const auto& [name, value] : of_model) own.words.push_back(fmt::format("--{}={}", name, value));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest request, apply_options(of_model));
  const ResolvedRun config = presumed(request);
  SYNCOPATE_RETURN_IF_ERROR(check_effect(of_model, {config}));
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  own.has_generated_data = generates_data(config);
  if (is_recommender(config)) {
    return Status::invalid_argument(
        fmt::format("--model={}: has row-sparse tables, of which no form knows what a step exchanges; name another "
                    "model, or a profile",
                    own.name));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::ChainFacts facts, worker::chain_facts(model_spec(config), form));
  std::optional<prediction::ModelProfile> profile = profile_like(config);
  if (!profile) return Status::internal(fmt::format("--model={}: has layers and no tensors", own.name));
  own.profile = std::move(*profile);
  set_flops(facts, own.profile);
  return own;
}

}  // namespace syncopate::experiments
