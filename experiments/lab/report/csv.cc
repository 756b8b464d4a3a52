#include "experiments/lab/report/csv.h"

#include <fmt/format.h>

#include <optional>

namespace syncopate::experiments {

std::string steps_csv_header() {
  return "repeat,worker,step,epoch,position,end_s,total_us,data_us,forward_us,backward_us,straggle_us,exposed_wait_us,"
         "optimizer_us,communication_us,codec_us,copy_us,launch_us,bytes_out,bytes_in,staleness_mean,staleness_max,"
         "dropped,"
         "samples,loss\n";
}

std::string evals_csv_header() { return "repeat,epoch,step,samples_seen,training_s,accuracy,loss,auc,hr10,ndcg10\n"; }

std::string steps_csv_row(int repeat, int worker, TimePoint origin, const StepRecord& step) {
  const auto us = [](Duration duration) { return microseconds(duration); };
  const SyncStats& sync = step.sync;
  return fmt::format(
      "{},{},{},{},{},{:.6f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{},{},{:.3f},"
      "{},"
      "{:.4g},"
      "{},{:.6g}\n",
      repeat, worker, step.step, step.epoch, step.position, seconds(step.end - origin), us(step.total), us(step.data),
      us(step.forward), us(step.backward), us(step.straggle), us(sync.exposed_wait), us(sync.optimizer),
      us(sync.communication), us(sync.codec), us(sync.copy), us(step.launch), sync.bytes_out, sync.bytes_in,
      sync.staleness_mean, sync.staleness_max, sync.dropped, step.samples, step.loss);
}

std::string evals_csv_row(int repeat, const EvalRecord& eval) {
  const auto cell = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; };
  return fmt::format("{},{:.6g},{},{},{:.6f},{:.6g},{:.6g},{},{},{}\n", repeat, eval.epoch, eval.step,
                     eval.samples_seen, eval.training_seconds, eval.accuracy, eval.loss, cell(eval.figures.auc),
                     cell(eval.figures.hit_rate), cell(eval.figures.ndcg));
}

}  // namespace syncopate::experiments
