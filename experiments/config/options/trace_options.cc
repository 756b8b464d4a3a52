#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {

void add_trace_options(std::vector<OptionSpec>& table) {
  OptionSpec option{.group = "Run",
                    .name = "trace",
                    .placeholder = "STEPS",
                    .sentence =
                        "Writes what workers and servers do in these steps of each worker into trace.json, which "
                        "Perfetto opens (docs/tracing.md): alone, or with a COUNT, the first after the warm-up; of "
                        "several repeats the first is traced.",
                    .range = TraceRange::forms(),
                    .usual = "none",
                    .bare = "auto",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<TraceRange> parsed = TraceRange::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "steps");
    request.trace = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& run) { return run.trace ? run.trace->to_string() : std::string(); };
  table.push_back(std::move(option));
}

}  // namespace syncopate::experiments
