// The job that a prediction is about: a model, how long a worker's step takes, and the hosts that it is to run on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/options/given_options.h"
#include "prediction/host_prices.h"
#include "prediction/model_profile.h"

namespace syncopate::experiments {

inline constexpr int kMostPredictedWorkers = 1 << 16;  // and servers
inline constexpr double kMostBucketBytes = 1e12;
inline constexpr const char* kBucketRange = "0 to 1000000000000 bytes, as 25000000, 25MB or 24MiB";

// How a run names a model that can be trained here, whose layers and activations are known.
struct OwnModelWords {
  std::vector<std::string> words;   // {"--model=gpt:4-8-256", "--dataset=grammar"}
  bool has_generated_data = false;  // of as many samples as a run asks for
};

struct ScaledJob {
  std::string profile_name;  // as it was given: a name, or a file
  prediction::ModelProfile profile;
  std::optional<OwnModelWords> own_model = {};  // none: the model is known by its profile
  std::vector<int> workers;                     // the sizes to predict for, at least one
  int workers_per_host = 1;
  int batch_size = 0;       // samples a worker
  double step_seconds = 0;  // of one worker alone
  std::string device;       // whose typical step it is, as it was given; empty for another step
  std::string basis;        // the rows that the device's step is from
  LinkShape link;           // of a host; the delay is that of each message
  // What processes of one host share with each other. As the forms have it, it costs nothing: this is the fastest link
  // that there may be.
  LinkShape inside = {.bits_per_second = 1'000'000'000'000, .delay = std::chrono::microseconds(1)};
  std::optional<prediction::HostPrices> prices;

  prediction::Network network(int workers) const;
  double samples_per_second(int workers, double step) const;  // the whole job's, at `step` seconds
};

// What files say of a job, for what is not given.
struct JobDefaults {
  std::string profile_name = {};
  std::optional<prediction::ModelProfile> profile = {};
  int batch_size = 0;                   // 0: not said
  double samples_per_second_alone = 0;  // of one worker; 0: not said
  std::optional<LinkShape> link = {};
  std::optional<int> workers_per_host = {};
};

// Returns the options of a command that predicts; `words` are those behind it. Fails as command_words() does, and if
// --workers is missing.
Result<GivenOptions> job_words(const std::string& command, const std::vector<std::string>& words);

// Fails with invalid argument for values out of range, an unknown or wrong profile, and for one
// price without the other; and for a --batch-size that is not that of `defaults`. Pure, but for the file that --profile
// may name.
Result<ScaledJob> read_scaled_job(const GivenOptions& given, const JobDefaults& defaults = {});

// Returns the link that --shape or --cluster gives; --shape is missing where neither is given.
Result<LinkShape> link_in(const GivenOptions& given);

// Fails with invalid argument unless `text` is even or whole.
Result<prediction::Sharding> read_sharding(const std::string& text);

// Returns "resnet50: 25,557,032 parameters in 161 tensors, ...": what a prediction was given, in one line. `kind` says
// what it is.
inline constexpr const char* kClosedForm = "Closed form, nothing is simulated or measured";
std::string title_of(const ScaledJob& job, const char* kind = kClosedForm);

}  // namespace syncopate::experiments
