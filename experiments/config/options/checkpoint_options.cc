#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using C = RunRequest;

constexpr const char* kCheckpointGroup = "Checkpoints";

OptionSpec checkpoint_every() {
  OptionSpec option{.group = kCheckpointGroup,
                    .name = "checkpoint-every",
                    .placeholder = "INTERVAL",
                    .sentence =
                        "Writes all that training needs to go on into the results, in the background: 200 every "
                        "200 steps of a worker, 30s every 30 seconds, 1epoch after each epoch.",
                    .range = CheckpointInterval::forms(),
                    .usual = "never",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<CheckpointInterval> parsed = CheckpointInterval::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "interval");
    request.checkpoint_every = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) {
    return config.checkpoint_every ? config.checkpoint_every->to_string() : std::string();
  };
  return option;
}

}  // namespace

void add_checkpoint_options(std::vector<OptionSpec>& table) {
  table.push_back(checkpoint_every());
  table.push_back(option_kinds::only(
      option_kinds::number(
          {.group = kCheckpointGroup,
           .name = "keep",
           .placeholder = "N",
           .sentence = "Checkpoints that are kept: an older one goes when a newer one is complete. While "
                       "one is written the disk holds one more.",
           .unit = "checkpoints"},
          &C::keep, "kept checkpoints", 1, 1000000),
      conditions::kWritesCheckpoints));
  table.push_back(option_kinds::only(
      option_kinds::number({.group = kCheckpointGroup,
                            .name = "grace",
                            .placeholder = "SECONDS",
                            .sentence = "How long a run that is asked to end by SIGTERM, as schedulers do some time "
                                        "before they kill, may take for one more checkpoint; then it ends with 143, "
                                        "else with 130. 0: it takes none. Asked again, it ends at once.",
                            .unit = "seconds"},
                           &C::grace_seconds, "grace", 0.0, 3600.0),
      conditions::kWritesCheckpoints));
  // Not recorded: a record that named it would depend on another run's files. The run reaches the same result without
  // it.
  table.push_back(
      option_kinds::text({.group = kCheckpointGroup,
                          .name = "resume",
                          .placeholder = "DIR",
                          .sentence = "Goes on from the newest whole checkpoint of a run's results, or from "
                                      "the checkpoint that lies there, up to the end that --epochs or --steps "
                                      "say; results go to a folder of their own. auto: goes on in --output, where the "
                                      "same command was interrupted; the first time, it begins there.",
                          .range = "a run's results, a checkpoint, or auto",
                          .usual = "none",
                          .in_file = false},
                         &C::resume, "checkpoint"));
  // Not recorded: the record describes the job and is readable by anybody; the location of a key is private.
  table.push_back(option_kinds::only(
      option_kinds::text({.group = kCheckpointGroup,
                          .name = "checkpoint-key-file",
                          .placeholder = "FILE",
                          .sentence = "Authenticates checkpoints by the secret in this file, those that are written "
                                      "and the one that is taken up: one that was not written with it, or was changed "
                                      "since, is refused.",
                          .range = "a file of 32 to 4096 bytes that only you can read",
                          .usual = "none",
                          .in_file = false},
                         &C::checkpoint_key_file, "key"),
      conditions::kUsesCheckpoints));
}

}  // namespace syncopate::experiments
