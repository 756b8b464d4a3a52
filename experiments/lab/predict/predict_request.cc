#include "experiments/lab/predict/predict_request.h"

namespace syncopate::experiments {

Result<PredictRequest> parse_predict_request(const std::vector<std::string>& words) {
  std::vector<std::string> optional = optional_job_options();
  optional.insert(optional.end(), {"servers", "sharding", "bucket-bytes"});
  SYNCOPATE_ASSIGN_OR_RETURN(GivenWords given, given_words("predict", words, required_job_options(), optional));
  given.insert({{"servers", "1"}, {"sharding", "even"}, {"bucket-bytes", "25000000"}});
  PredictRequest request;
  SYNCOPATE_ASSIGN_OR_RETURN(request.job, read_scaled_job(given));
  SYNCOPATE_ASSIGN_OR_RETURN(request.servers,
                             number_in<int>("servers", given["servers"], 1, kMostPredictedWorkers, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(request.sharding, read_sharding(given["sharding"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.bucket_bytes,
                             bytes_in("bucket-bytes", given["bucket-bytes"], 0, kMostBucketBytes, kBucketRange));
  return request;
}

}  // namespace syncopate::experiments
