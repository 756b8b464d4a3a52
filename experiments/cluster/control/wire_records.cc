#include "experiments/cluster/control/wire_records.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "common/text/format.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

std::string text_of(const allreduce::CollectiveOperation& operation) {
  const std::string how =
      operation.bytes == 0 ? std::string(operation.name)
                           : fmt::format("{}, {}", operation.name, format_bytes(static_cast<double>(operation.bytes)));
  switch (operation.stage) {
    case allreduce::CollectiveOperation::Stage::kJoining:
      return fmt::format("joining ({})", how);
    case allreduce::CollectiveOperation::Stage::kTraining:
      return fmt::format("step {}, bucket {} of {} ({})", operation.step, operation.bucket, operation.buckets, how);
    case allreduce::CollectiveOperation::Stage::kLeaving:
      return fmt::format("leaving ({})", how);
  }
  return how;
}

}  // namespace

static_assert(static_cast<int>(LinkFault::kCut) == control::ImpairLinks::CUT &&
              static_cast<int>(LinkFault::kDelay) == control::ImpairLinks::DELAY &&
              static_cast<int>(LinkFault::kDuplicate) == control::ImpairLinks::DUPLICATE &&
              static_cast<int>(LinkFault::kReorder) == control::ImpairLinks::REORDER &&
              control::ImpairLinks::Fault_ARRAYSIZE == kLinkFaults);

control::ImpairLinks::Fault to_wire(LinkFault fault) { return static_cast<control::ImpairLinks::Fault>(fault); }

std::optional<LinkFault> from_wire(control::ImpairLinks::Fault fault) {
  if (!control::ImpairLinks::Fault_IsValid(fault)) return std::nullopt;
  return static_cast<LinkFault>(fault);
}

control::Finished to_wire(const ServerFigures& figures) {
  control::Finished finished;
  for (const std::int64_t bits : bits_of(figures)) finished.add_figures(bits);
  return finished;
}

ServerFigures from_wire(const control::Finished& finished) {
  return server_figures_in(std::span(finished.figures().data(), static_cast<std::size_t>(finished.figures_size())));
}

control::Collective to_wire(const allreduce::CollectiveState& state) {
  control::Collective collective;
  collective.set_begun(state.begun);
  collective.set_what(text_of(state.last));
  collective.set_under_way(state.under_way);
  collective.set_age(state.age.count());
  collective.set_waits_for(state.waits_for);
  return collective;
}

CollectiveReport from_wire(const control::Collective& collective) {
  return {.begun = collective.begun(),
          .what = collective.what(),
          .under_way = collective.under_way(),
          .age = Duration(collective.age()),
          .waits_for = collective.waits_for()};
}

control::Failure to_wire(const Status& status, const Activity& activity) {
  control::Failure failure;
  failure.set_code(static_cast<int>(status.code()));
  failure.set_message(status.message());
  failure.set_operation(activity.operation());
  failure.set_step(activity.step());
  return failure;
}

Status from_wire(const control::Failure& failure) {
  constexpr int kFirst = static_cast<int>(Code::kOk) + 1, kLast = static_cast<int>(Code::kInternal);
  if (failure.code() >= kFirst && failure.code() <= kLast) {
    return Status(static_cast<Code>(failure.code()), failure.message());
  }
  return Status::internal(fmt::format("a failure of unknown code {}: {}", failure.code(), failure.message()));
}

control::CheckpointReport to_wire(const std::string& writer, const CheckpointReport& report) {
  control::CheckpointReport wire;
  wire.set_writer(writer);
  wire.set_membership_epoch(report.membership_epoch);
  wire.set_step(report.step);
  wire.set_kind(static_cast<int>(report.kind));
  if (report.kind == CheckpointReport::Kind::kWritten) wire.set_part(to_text(report.part));
  wire.set_reason(report.reason);
  wire.set_stall(report.stall.count());
  wire.set_taken(report.taken.time_since_epoch().count());
  return wire;
}

CheckpointReport from_wire(const control::CheckpointReport& wire) {
  using Kind = CheckpointReport::Kind;
  CheckpointReport report{.kind = Kind::kFailed,
                          .membership_epoch = wire.membership_epoch(),
                          .step = wire.step(),
                          .reason = wire.reason(),
                          .stall = Duration(wire.stall()),
                          .taken = TimePoint(Duration(wire.taken()))};
  if (wire.kind() >= 0 && wire.kind() <= static_cast<int>(Kind::kNothing)) report.kind = static_cast<Kind>(wire.kind());
  if (report.kind != Kind::kWritten) return report;
  Result<StoredPart> part = parse_part(wire.part());
  if (part.ok() && part->writer == wire.writer()) {
    report.part = std::move(*part);
  } else {
    report.kind = Kind::kFailed;
    report.reason = printable(part.ok() ? wire.writer() + " sent a part of " + part->writer : part.status().message());
  }
  return report;
}

control::NotFinite to_wire(const worker::NotFinite& what) {
  control::NotFinite wire;
  wire.set_step(what.step);
  wire.set_quantity(static_cast<int>(what.quantity));
  wire.set_tensor(what.tensor);
  wire.set_value(what.value);
  wire.set_loss(what.loss);
  return wire;
}

std::optional<worker::NotFinite> from_wire(const control::NotFinite& what) {
  using Quantity = worker::NotFinite::Quantity;
  if (what.quantity() < 0 || what.quantity() > static_cast<int>(Quantity::kLoss)) return std::nullopt;
  return worker::NotFinite{.step = what.step(),
                           .quantity = static_cast<Quantity>(what.quantity()),
                           .tensor = what.tensor(),
                           .value = what.value(),
                           .loss = what.loss()};
}

control::MembershipEpoch to_wire(const MembershipEpoch& membership) {
  control::MembershipEpoch wire;
  wire.set_number(membership.number);
  wire.set_begins(membership.begins);
  wire.mutable_workers()->Add(membership.workers.begin(), membership.workers.end());
  for (const ServerRanks& ranks : membership.servers) {
    control::ServerRanks& to = *wire.add_servers();
    to.set_has_server(ranks.has_server);
    to.set_has_standby(ranks.has_standby);
    to.set_standby_leads(ranks.standby_leads);
  }
  wire.set_restore(membership.restore);
  return wire;
}

MembershipEpoch from_wire(const control::MembershipEpoch& wire) {
  MembershipEpoch membership{.number = wire.number(),
                             .begins = wire.begins(),
                             .workers = {wire.workers().begin(), wire.workers().end()},
                             .servers = {},
                             .restore = wire.restore()};
  for (const control::ServerRanks& ranks : wire.servers()) {
    membership.servers.push_back(
        {.has_server = ranks.has_server(), .has_standby = ranks.has_standby(), .standby_leads = ranks.standby_leads()});
  }
  return membership;
}

control::Snapshot to_wire(const WeightsSnapshot& snapshot) {
  control::Snapshot stamp;
  stamp.set_point(snapshot.point);
  stamp.set_steps_done(snapshot.steps_done);
  stamp.set_taken(snapshot.taken.time_since_epoch().count());
  stamp.set_final(snapshot.final);
  for (const std::vector<RowKey>& keys : snapshot.rows)
    stamp.add_tables()->mutable_keys()->Add(keys.begin(), keys.end());
  return stamp;
}

TableKeys rows_of(const control::Snapshot& snapshot) {
  TableKeys rows;
  for (const control::TableRows& table : snapshot.tables()) rows.emplace_back(table.keys().begin(), table.keys().end());
  return rows;
}

WeightsSnapshot from_wire(const control::Snapshot& stamp, std::span<const std::byte> weights) {
  WeightsSnapshot snapshot{.point = stamp.point(),
                           .steps_done = stamp.steps_done(),
                           .taken = TimePoint(Duration(stamp.taken())),
                           .final = stamp.final(),
                           .weights = std::vector<float>(weights.size() / sizeof(float)),
                           .local_state = {stamp.local_state().begin(), stamp.local_state().end()},
                           .rows = rows_of(stamp)};
  if (!snapshot.weights.empty()) {
    std::memcpy(snapshot.weights.data(), weights.data(), snapshot.weights.size() * sizeof(float));
  }
  return snapshot;
}

control::Evaluation to_wire(const WeightsSnapshot& evaluated, const EvaluationScores& scores) {
  control::Evaluation evaluation;
  *evaluation.mutable_snapshot() = to_wire({.point = evaluated.point,
                                            .steps_done = evaluated.steps_done,
                                            .taken = evaluated.taken,
                                            .final = evaluated.final,
                                            .weights = {}});
  evaluation.set_accuracy(scores.accuracy);
  evaluation.set_loss(scores.loss);
  if (scores.figures.auc) evaluation.set_auc(*scores.figures.auc);
  if (scores.figures.hit_rate) evaluation.set_hit_rate(*scores.figures.hit_rate);
  if (scores.figures.ndcg) evaluation.set_ndcg(*scores.figures.ndcg);
  if (scores.figures.r2) evaluation.set_r2(*scores.figures.r2);
  if (scores.figures.rmse) evaluation.set_rmse(*scores.figures.rmse);
  if (scores.validation) {
    if (scores.validation->r2) evaluation.set_validation_r2(*scores.validation->r2);
    evaluation.set_validation_accuracy(scores.validation->accuracy);
    evaluation.set_validation_loss(scores.validation->loss);
  }
  return evaluation;
}

EvaluationScores scores_of(const control::Evaluation& evaluation) {
  EvaluationScores scores{.accuracy = evaluation.accuracy(), .loss = evaluation.loss()};
  if (evaluation.has_auc()) scores.figures.auc = evaluation.auc();
  if (evaluation.has_hit_rate()) scores.figures.hit_rate = evaluation.hit_rate();
  if (evaluation.has_ndcg()) scores.figures.ndcg = evaluation.ndcg();
  if (evaluation.has_r2()) scores.figures.r2 = evaluation.r2();
  if (evaluation.has_rmse()) scores.figures.rmse = evaluation.rmse();
  if (evaluation.has_validation_accuracy() && evaluation.has_validation_loss()) {
    scores.validation = {.accuracy = evaluation.validation_accuracy(), .loss = evaluation.validation_loss()};
    if (evaluation.has_validation_r2()) scores.validation->r2 = evaluation.validation_r2();
  }
  return scores;
}

}  // namespace syncopate::experiments
