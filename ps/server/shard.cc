#include "ps/server/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/optimizer/decay_parts.h"
#include "common/text/list_text.h"
#include "ps/group.h"

namespace syncopate::ps {
namespace {

// What a chief may say that weights have had: it leaves room to count.
constexpr std::int64_t kMostUpdates = std::int64_t{1} << 52;

// Why tables cannot be served under these options; empty if they can.
std::string objection_to_tables(const ShardOptions& options) {
  const Consistency& consistency = options.consistency;
  const auto serves_tables = [](const ConsistencyTraits& traits) { return traits.tables; };
  if (!serves_tables(consistency.traits())) {
    return fmt::format("row-sparse tables are served under {}, not {}",
                       list_text(consistency_usages(serves_tables), "and"), consistency.to_string());
  }
  if (consistency.backup_workers() > 0) return "row-sparse tables are served without backup workers";
  if (options.staleness.divide_rate || options.staleness.compensation.enabled() || options.staleness.correct_momentum) {
    return "row-sparse tables are served without means against staleness";
  }
  return {};
}

}  // namespace

Shard::Shard(ShardOptions options, WeightsPool::Allocate allocate, WeightsPool::Settle settle)
    : options_(std::move(options)),
      pool_(std::move(allocate), std::move(settle)),
      members_(options_.workers, options_.there, options_.restored != nullptr) {
  due_.reserve(static_cast<std::size_t>(options_.workers));
  described_.resize(static_cast<std::size_t>(options_.workers));
  stated_rates_.resize(static_cast<std::size_t>(options_.workers));
}

Shard::Answers Shard::on_join(int worker, const ArenaClaim& claim) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(members_.join(worker, claim));
  if (!laid_out_ && members_.describes(worker)) SYNCOPATE_RETURN_IF_ERROR(lay_out(claim));
  start_if_all_joined();
  return std::span<const Answer>(due_);
}

Status Shard::lay_out(const ArenaClaim& claim) {
  laid_out_ = true;
  claim_ = claim;
  if (claim.tables > 0) members_.object(objection_to_tables(options_));
  for (std::uint64_t i = 0; i < claim.chunks; ++i) {
    chunks_.emplace_back(ChunkOptions{options_.consistency, options_.optimizer, options_.staleness, options_.hosts,
                                      options_.leaves_out, options_.function},
                         members_, pool_);
  }
  return pool_.reserve(claim.shard_size);
}

Shard::Answers Shard::on_initial(int worker, std::size_t chunk, Range range, std::span<const float> weights,
                                 std::int64_t updates) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_describes(worker, claim_.tables + chunk, "initial weights"));
  // In a job that is resumed each worker sends it, and the first has said it for all.
  if (!members_.goes_on() || chunk >= created_ || range != ranges_[chunk]) {
    SYNCOPATE_RETURN_IF_ERROR(check_range(chunk, range));
    SYNCOPATE_RETURN_IF_ERROR(create(chunk, range, weights, updates));
  }
  ++described_[static_cast<std::size_t>(worker)];
  start_if_all_joined();
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_memory(int worker, std::size_t chunk, std::size_t memory, std::size_t begin,
                                std::span<const float> values) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_describes(worker, claim_.tables + chunk, "a memory"));
  const bool is_next = !members_.goes_on() && chunk == created_ && chunk < chunks_.size();
  if (!is_next || memory >= std::size(state_part::kOptimizer) || values.empty() || begin > claim_.arena_size ||
      values.size() > claim_.arena_size - begin || !brought_.pieces(state_part::kOptimizer[memory]).empty()) {
    return Status::invalid_argument(fmt::format("memory {} of {} floats at {} of chunk {}; {} of {} are there", memory,
                                                values.size(), begin, chunk, created_, chunks_.size()));
  }
  brought_.put(state_part::kOptimizer[memory], begin, values);
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_undecayed(int worker, std::span<const std::uint64_t> bounds) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_describes(worker, claim_.tables, "what is not decayed"));
  if (bounds.empty() || bounds.size() % 2 != 0)
    return Status::invalid_argument(fmt::format("{} bounds of ranges", bounds.size()));
  const std::size_t known_to = undecayed_.empty() ? 0 : undecayed_.back().end;
  if (bounds.back() <= known_to) return std::span<const Answer>(due_);
  std::size_t behind = known_to;
  for (std::size_t i = 0; i < bounds.size(); i += 2) {
    if (bounds[i] < behind || bounds[i] >= bounds[i + 1] || bounds[i + 1] > claim_.arena_size) {
      return Status::invalid_argument(fmt::format("a range {} to {} of an arena of {} behind {} that is not decayed",
                                                  bounds[i], bounds[i + 1], claim_.arena_size, behind));
    }
    behind = bounds[i + 1];
  }
  for (std::size_t i = 0; i < bounds.size(); i += 2) undecayed_.push_back({bounds[i], bounds[i + 1]});
  return std::span<const Answer>(due_);
}

Status Shard::create(std::size_t chunk, Range range, std::span<const float> weights, std::int64_t updates) {
  chunks_[chunk].place(range, ranges_within(undecayed_, range));
  if (options_.restored != nullptr) {
    SYNCOPATE_RETURN_IF_ERROR(chunks_[chunk].restore(range, *options_.restored));
  } else {
    if (weights.size() != range.size()) {
      return Status::invalid_argument(
          fmt::format("{} initial weights of chunk {} of {}", weights.size(), chunk, range.size()));
    }
    SYNCOPATE_RETURN_IF_ERROR(begin_with(chunk, range, weights, updates));
  }
  ranges_.push_back(range);
  ++created_;
  created_size_ += range.size();
  return Status();
}

Status Shard::begin_with(std::size_t chunk, Range range, std::span<const float> weights, std::int64_t updates) {
  if (updates == 0) {
    brought_ = TrainingState();
    return chunks_[chunk].create(weights);
  }
  bool is_whole = updates > 0 && updates <= kMostUpdates && !options_.consistency.pushes_weights();
  for (std::size_t memory = 0; memory < state_floats(options_.optimizer); ++memory) {
    is_whole = is_whole && brought_.covers(state_part::kOptimizer[memory], range);
  }
  if (!is_whole) {
    return Status::invalid_argument(
        fmt::format("chunk {} after {} updates, without what its optimizer remembers", chunk, updates));
  }
  brought_.put(state_part::kWeights, range.begin, weights);
  brought_.step = updates;
  const Status status = chunks_[chunk].restore(range, brought_);
  brought_ = TrainingState();
  return status;
}

Shard::Answers Shard::on_table(int worker, std::size_t table, const TableOwnership& claim) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_describes(worker, table, "a table"));
  if (!members_.goes_on() || table >= tables_.size()) SYNCOPATE_RETURN_IF_ERROR(create(table, claim));
  ++described_[static_cast<std::size_t>(worker)];
  start_if_all_joined();
  return std::span<const Answer>(due_);
}

Status Shard::create(std::size_t table, const TableOwnership& claim) {
  if (table != tables_.size() || table >= claim_.tables) {
    return Status::invalid_argument(fmt::format("table {}; {} of {} are there", table, tables_.size(), claim_.tables));
  }
  SYNCOPATE_RETURN_IF_ERROR(check(claim));
  if (!tables_.empty() && claim.number <= tables_.back().number()) {
    return Status::invalid_argument(
        fmt::format("table {} is the model's number {}, and the one before it number {}: they must ascend", table,
                    claim.number, tables_.back().number()));
  }
  tables_.emplace_back(TableShardOptions{.claim = claim,
                                         .shard = options_.shard,
                                         .shards = options_.shards,
                                         .consistency = options_.consistency,
                                         .optimizer = options_.optimizer,
                                         .seed = options_.seed},
                       members_);
  return options_.restored != nullptr ? tables_.back().restore(*options_.restored) : Status();
}

Shard::Answers Shard::on_push(const PushRequest& request, std::optional<double> own_rate) {
  due_.clear();
  if (!members_.started() || !members_.is_joined(request.step.worker)) {
    return Status::invalid_argument(fmt::format("a push from worker {}, which is not in the job", request.step.worker));
  }
  if (request.chunk >= chunks_.size()) {
    return Status::invalid_argument(fmt::format("a push to chunk {} of {}", request.chunk, chunks_.size()));
  }
  Chunk& chunk = chunks_[request.chunk];
  const Chunk::Gate before = chunk.gate();
  SYNCOPATE_RETURN_IF_ERROR(chunk.push(request));
  // All chunks of a step are pushed at the same rate.
  if (options_.agrees_on_rates && request.chunk == 0) {
    const double rate = own_rate.value_or(request.step.learning_rate);
    stated_rates_[static_cast<std::size_t>(request.step.worker)] = rate;
    rates_.on_push(request.step.worker, request.step.clock, rate);
  }
  if (chunk.gate() != before) {
    answer_pushes(request.chunk);
  } else if (chunk.may_respond(request.step.worker)) {
    answer(request.step.worker, request.chunk);
  }
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_time(TimePoint now) {
  due_.clear();
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk].meets_at() > now) continue;
    SYNCOPATE_RETURN_IF_ERROR(chunks_[chunk].update_if_enough_pushed(now));
    answer_pushes(chunk);
  }
  return std::span<const Answer>(due_);
}

TimePoint Shard::next_time() const {
  TimePoint next = TimePoint::max();
  if (options_.consistency.quorum().is_all()) return next;
  for (const Chunk& chunk : chunks_) next = std::min(next, chunk.meets_at());
  return next;
}

Shard::Answers Shard::on_pull(const PullRequest& request) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_trains(request.worker, request.table));
  SYNCOPATE_RETURN_IF_ERROR(tables_[request.table].pull(request));
  answer_pulls(request.table);
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_rows_push(const RowsPush& request) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_trains(request.step.worker, request.table));
  SYNCOPATE_RETURN_IF_ERROR(tables_[request.table].push(request));
  answer_pulls(request.table);
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_read_rows(const ReadRequest& request) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_reads(request.worker, request.table));
  SYNCOPATE_RETURN_IF_ERROR(tables_[request.table].ask(request));
  answer_pulls(request.table);
  return std::span<const Answer>(due_);
}

Result<TableShard::Page> Shard::on_list_rows(int worker, std::size_t table, std::size_t offset) {
  SYNCOPATE_RETURN_IF_ERROR(check_reads(worker, table));
  return tables_[table].list(worker, offset);
}

Status Shard::on_read_chunk(int worker, std::size_t chunk, bool renews) {
  if (!members_.started() || !members_.is_joined(worker) || chunk >= chunks_.size() ||
      chunks_[chunk].has_pending_pull(worker)) {
    return Status::invalid_argument(fmt::format(
        "worker {} reads chunk {} of {}, awaits its weights, or is not in the job", worker, chunk, chunks_.size()));
  }
  if (renews) chunks_[chunk].answer(worker);
  return Status();
}

Shard::Answers Shard::on_leave(int worker) {
  due_.clear();
  if (has_pending_pull(worker))
    return Status::invalid_argument(fmt::format("worker {} leaves before its last push was answered", worker));
  SYNCOPATE_RETURN_IF_ERROR(members_.leave(worker));
  for (Chunk& chunk : chunks_) chunk.returned(worker);
  return due_after_departure();
}

Shard::Answers Shard::on_goodbye(int worker) {
  due_.clear();
  if (tables_.empty() || !ended_ || !members_.is_leaving(worker)) {
    return Status::invalid_argument(fmt::format("a goodbye from worker {}, which has not had its farewell", worker));
  }
  members_.finish(worker);
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_worker_lost(int worker) {
  due_.clear();
  if (!members_.lose(worker)) return std::span<const Answer>(due_);
  ++workers_lost_;
  for (Chunk& chunk : chunks_) chunk.lose(worker);
  for (TableShard& table : tables_) table.lose(worker);
  start_if_all_joined();
  return due_after_departure();
}

ShardCounters Shard::counters() const {
  ShardCounters total;
  total.workers_lost = workers_lost_;
  for (const Chunk& chunk : chunks_) {
    total.pushes += chunk.counters().pushes;
    total.late += chunk.counters().late;
    total.updates += chunk.weights().version();
    total.staleness_sum += chunk.counters().staleness_sum;
    total.staleness_max = std::max(total.staleness_max, chunk.counters().staleness_max);
    total.copies += chunk.weights().copies();
  }
  for (const TableShard& table : tables_) {
    const TableCounters& counters = table.counters();
    total.pushes += counters.pushes;
    total.updates += table.version();
    total.staleness_sum += counters.staleness_sum;
    total.staleness_max = std::max(total.staleness_max, counters.staleness_max);
    total.rows_pulled += counters.rows_pulled;
    total.rows_pushed += counters.rows_pushed;
    total.rows_made += static_cast<std::int64_t>(table.rows().created());
    total.table_bytes += static_cast<std::int64_t>(table.rows().bytes());
  }
  return total;
}

Status Shard::check_describes(int worker, std::uint64_t number, std::string_view what) const {
  if (!members_.describes(worker)) {
    return Status::invalid_argument(fmt::format("{} from worker {}, which is not the chief of the job", what, worker));
  }
  if (members_.claim_of(worker) != claim_) {
    return Status::invalid_argument(fmt::format("{} from worker {}, whose arena is another one", what, worker));
  }
  if (number < described_[static_cast<std::size_t>(worker)]) {
    return Status::invalid_argument(fmt::format("{} from worker {}, which has come before", what, worker));
  }
  return Status();
}

Status Shard::check_range(std::size_t chunk, Range range) const {
  if (chunk >= chunks_.size() || chunk != created_) {
    return Status::invalid_argument(
        fmt::format("initial weights of chunk {}; {} of {} are there", chunk, created_, chunks_.size()));
  }
  const std::uint64_t left = claim_.shard_size - created_size_;
  const bool is_last = chunk + 1 == chunks_.size();
  const bool fits = range.begin < range.end && range.end <= claim_.arena_size &&
                    (ranges_.empty() || range.begin >= ranges_.back().end);
  if (!fits || range.size() > left || (is_last && range.size() < left)) {
    return Status::invalid_argument(fmt::format("initial weights {} to {} of the arena in chunk {}, where {} are left",
                                                range.begin, range.end, chunk, left));
  }
  return Status();
}

Status Shard::check_trains(int worker, std::size_t table) const {
  if (members_.started() && members_.is_joined(worker) && table < tables_.size()) return Status();
  return Status::invalid_argument(
      fmt::format("worker {} asks for table {} of {}, or is not in the job", worker, table, tables_.size()));
}

Status Shard::check_reads(int worker, std::size_t table) const {
  const bool is_here = members_.started() && (members_.is_joined(worker) || members_.is_leaving(worker));
  if (is_here && table < tables_.size()) return Status();
  return Status::invalid_argument(fmt::format("worker {} wants to read table {} of {}", worker, table, tables_.size()));
}

void Shard::save(TrainingState& state) const {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) save_chunk(chunk, state);
  for (std::size_t table = 0; table < tables_.size(); ++table) save_table(table, state);
  state.step = slowest_step();
}

// Returns the slowest step of the workers that are not lost. A held push has not been made.
std::int64_t Shard::slowest_step() const {
  std::optional<std::int64_t> slowest;
  const auto look_at = [&](const auto& part) {
    for (int worker = 0; worker < options_.workers; ++worker) {
      if (members_.is_lost(worker)) continue;
      const std::int64_t clock = part.clock(worker) - (part.has_pending_gradient(worker) ? 1 : 0);
      slowest = std::min(slowest.value_or(clock), clock);
    }
  };
  for (const Chunk& chunk : chunks_) look_at(chunk);
  for (const TableShard& table : tables_) look_at(table);
  return slowest.value_or(0) * options_.consistency.period();
}

// A worker that still describes does not read: what it is sent then might fill its inbox, and what it sends this one's.
bool Shard::all_have_described() const {
  for (int worker = 0; worker < options_.workers; ++worker) {
    const bool is_awaited = members_.describes(worker) && members_.claim_of(worker) == claim_;
    if (is_awaited && described_[static_cast<std::size_t>(worker)] < chunks_.size() + claim_.tables) return false;
  }
  return complete();
}

bool Shard::has_pending_pull(int worker) const {
  const auto is_pending = [worker](const auto& part) { return part.has_pending_pull(worker); };
  return std::ranges::any_of(chunks_, is_pending) || std::ranges::any_of(tables_, is_pending);
}

void Shard::start_if_all_joined() {
  if (!members_.start_if_all_joined(all_have_described())) return;
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!members_.is_joined(worker)) continue;
    due_.push_back({.kind = members_.started() ? Answer::Kind::kWelcome : Answer::Kind::kReject, .worker = worker});
    if (!members_.started()) members_.finish(worker);
    for (std::size_t chunk = 0; chunk < chunks_.size() && members_.started(); ++chunk) answer(worker, chunk, true);
  }
}

void Shard::answer_pushes(std::size_t chunk) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (chunks_[chunk].may_respond(worker)) answer(worker, chunk);
  }
}

void Shard::answer_pulls(std::size_t index) {
  TableShard& table = tables_[index];
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (table.may_respond(worker)) {
      due_.push_back({.kind = Answer::Kind::kRows, .worker = worker, .table = index, .rows = table.answer(worker)});
    }
    if (table.may_answer_ask(worker)) {
      const TableShard::Asked asked = table.answer_ask(worker);
      due_.push_back({.kind = Answer::Kind::kRowsRead,
                      .worker = worker,
                      .table = index,
                      .rows = {.keys = asked.keys},
                      .read = asked.read});
    }
  }
}

// Those who may still read are done with their goodbye.
Status Shard::end_if_all_left() {
  if (!members_.started() || members_.any_live() || std::exchange(ended_, true)) return Status();
  for (Chunk& chunk : chunks_) SYNCOPATE_RETURN_IF_ERROR(chunk.finish());
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!members_.is_leaving(worker)) continue;
    due_.push_back({.kind = Answer::Kind::kFarewell, .worker = worker});
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) answer(worker, chunk, true);
    if (tables_.empty()) members_.finish(worker);
  }
  return Status();
}

void Shard::answer(int worker, std::size_t chunk, bool greets) {
  due_.push_back({.kind = Answer::Kind::kWeights,
                  .worker = worker,
                  .chunk = chunk,
                  .weights = chunks_[chunk].answer(worker),
                  .greets = greets});
  if (!options_.agrees_on_rates || chunk > 0 || greets) return;
  Answer& answer = due_.back();
  answer.rates = rates_.difference(worker, answer.weights.clock, stated_rates_[static_cast<std::size_t>(worker)]);
}

// Those who stay may be waiting for nothing but the one who has gone.
Shard::Answers Shard::due_after_departure() {
  for (std::size_t chunk = 0; chunk < chunks_.size() && members_.started(); ++chunk) {
    SYNCOPATE_RETURN_IF_ERROR(chunks_[chunk].update_if_enough_pushed());
    answer_pushes(chunk);
  }
  for (std::size_t table = 0; table < tables_.size() && members_.started(); ++table) {
    SYNCOPATE_RETURN_IF_ERROR(tables_[table].update_if_all_pushed());
    answer_pulls(table);
  }
  SYNCOPATE_RETURN_IF_ERROR(end_if_all_left());
  return std::span<const Answer>(due_);
}

}  // namespace syncopate::ps
