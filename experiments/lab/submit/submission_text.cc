#include "experiments/lab/submit/submission_text.h"

#include <fmt/format.h>

#include <string_view>

#include "common/text/printable_text.h"
#include "experiments/lab/submit/kubernetes_manifests.h"
#include "experiments/lab/submit/slurm_script.h"
#include "experiments/lab/submit/yaml_text.h"

namespace syncopate::experiments {
namespace {

std::string comment(std::string_view text) {
  constexpr std::size_t kLongest = 1 << 20;
  return fmt::format("# {}\n", printable(text, kLongest));
}

}  // namespace

std::string submission_text(const CommandLine& line, const std::string& program) {
  if (line.submission->target == SubmitTarget::kSlurm) return slurm_script(line, program);
  const KubernetesManifests manifests = kubernetes_manifests(line);
  std::string text = comment("Made by: " + line.typed);
  for (const KubernetesManifests::Step& step : manifests.steps) {
    text += comment(step.what + ":");
    for (const std::string& command : step.commands) text += comment("  " + command);
  }
  return text + yaml_text(manifests.documents);
}

}  // namespace syncopate::experiments
