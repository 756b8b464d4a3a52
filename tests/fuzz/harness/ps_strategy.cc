// A worker among answers of which some are right and others late, alien or random bytes: what answers nothing is
// dropped, and weights change only by what is due.
#include "ps/client/ps_strategy.h"

#include <array>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/script_transport.h"

namespace syncopate::fuzz {
namespace {

using Line = ScriptTransport::Line;

constexpr ps::PsGroup kServers{.workers = 2, .servers = 2, .shards_per_server = 1};
constexpr int kOwnRank = 1;
constexpr std::size_t kMostAnswers = 96;
constexpr std::array<CodecConfig, 3> kClientCodecs = {
    {{.kind = CodecKind::kNone}, {.kind = CodecKind::kInt8}, {.kind = CodecKind::kTopK, .ratio = 0.25}}};

ParamLayout layout_of(bool has_table) {
  ParamLayout layout;
  if (has_table) layout.add_table("table", 40, 4, {.rows_a_step = 6, .limit = 0.1f});
  layout.add("first", {40});
  layout.add("second", {24});
  return layout;
}

std::vector<std::byte> repeated(Input& input, std::size_t size) {
  const std::byte value{input.byte()};
  return std::vector<std::byte>(size, value);
}

void compose(Input& input, const Codec& codec, Line& line) {
  ps::wire::Header header;
  const std::size_t elements = 16 * (1 + input.below(3));
  switch (input.below(8)) {
    case 0:
      header.mutable_welcome();
      break;
    case 1:
      header.mutable_farewell();
      break;
    case 2:
    case 3:
      header.mutable_weights()->set_chunk(input.number());
      header.mutable_weights()->set_clock(static_cast<std::int64_t>(input.number()));
      header.mutable_weights()->set_version(static_cast<std::int64_t>(input.number()));
      header.mutable_weights()->set_staleness(static_cast<std::int64_t>(input.number()));
      header.mutable_weights()->set_late(input.coin());
      line.payload = repeated(input, input.coin() ? codec.encoded_size(elements) : elements * sizeof(float));
      break;
    case 4:
      header.mutable_rows()->set_table(input.below(8) == 0 ? input.number() : 0);
      header.mutable_rows()->set_clock(static_cast<std::int64_t>(input.number()));
      header.mutable_rows()->set_staleness(static_cast<std::int64_t>(input.number()));
      line.payload = repeated(input, input.below(7) * 4 * sizeof(float));
      break;
    case 5:
      header.mutable_rows_read()->set_table(input.below(8) == 0 ? input.number() : 0);
      header.mutable_rows_read()->set_read(2);  // as the first of the rows; the keys are read before
      line.payload = repeated(input, input.below(7) * 4 * sizeof(float));
      break;
    case 6:
      header.mutable_rows_listed()->set_table(input.below(8) == 0 ? input.number() : 0);
      header.mutable_rows_listed()->set_offset(input.number());
      header.mutable_rows_listed()->set_total(input.number());
      header.mutable_rows_listed()->set_read(1);
      line.payload = repeated(input, input.below(7) * sizeof(RowKey));
      break;
    default:
      line.header = string_of(input.bytes(input.byte() % kMaxHeaderBytes));
      line.payload = repeated(input, input.byte());
      return;
  }
  header.SerializeToString(&line.header);
}

// What the shards answer to a join, in the order in which a shard does.
std::vector<Line> honest_welcome(const ParamLayout& layout, const ps::Sharding& sharding) {
  std::vector<Line> lines;
  const ps::ShardMap map = ps::shard_map(layout, static_cast<std::size_t>(kServers.shards()), sharding);
  for (int shard = 0; shard < kServers.shards(); ++shard) {
    ps::wire::Header header;
    header.mutable_welcome();
    lines.push_back({.from = kServers.rank_of_shard(shard), .header = header.SerializeAsString(), .payload = {}});
    const std::vector<Range>& chunks = map.chunks[static_cast<std::size_t>(shard)];
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      header.mutable_weights()->set_chunk(chunk);
      lines.push_back({.from = kServers.rank_of_shard(shard),
                       .header = header.SerializeAsString(),
                       .payload = std::vector<std::byte>(chunks[chunk].size() * sizeof(float))});
    }
  }
  return lines;
}

// A training of a few steps, as far as the answers let it go.
void train(ps::PsStrategy& strategy, const ParamLayout& layout) {
  const Result<ParamArenas> arenas = strategy.allocate(layout);
  if (!arenas.ok()) return;
  const Result<std::vector<Range>> buckets = strategy.join();
  if (!buckets.ok()) return;
  const std::array<RowKey, 3> keys = {1, 5, 30};
  const std::array<RowKeys, 1> rows = {RowKeys(keys)};
  for (std::int64_t step = 0; step < 3; ++step) {
    strategy.begin_step({.step = step, .learning_rate = 0.1, .rows = std::span(rows).first(layout.tables().size())});
    if (!strategy.weights_needed({0, layout.size()}).ok()) return;
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
    if (!strategy.finish_step().ok()) return;
  }
  if (!layout.tables().empty()) {
    std::vector<float> values(keys.size() * 4);
    if (!strategy.touched_rows(0).ok() || !strategy.read_rows(0, keys, values).ok()) return;
  }
  (void)strategy.leave();
}

const Harness ps_strategy("ps_strategy", [](Bytes bytes) {
  Input input(bytes);
  const ParamLayout layout = layout_of(input.coin());
  const CodecConfig codec = kClientCodecs[input.below(kClientCodecs.size())];
  const ps::PsStrategyOptions options{.group = kServers,
                                      .sharding = {.chunk_bytes = 128},
                                      .pipeline_depth = layout.tables().empty() ? static_cast<int>(input.below(2)) : 0,
                                      .overlap_forward = false,
                                      .compression = {.codec = codec, .answers = input.coin()}};
  std::vector<Line> lines;
  if (input.below(4) != 0) lines = honest_welcome(layout, options.sharding);
  while (!input.empty() && lines.size() < kMostAnswers) {
    const std::uint8_t who = input.byte();
    Line line{.from = who < 0xF0 ? kServers.rank_of_shard(who % 2) : static_cast<int>(who) - 0xF8};
    compose(input, Codec(codec), line);
    lines.push_back(std::move(line));
  }
  const std::size_t most = lines.size();
  ScriptTransport transport(kOwnRank, kServers.size(), std::move(lines));
  const ManualClock clock;
  ps::PsStrategy strategy(options, transport, clock, nullptr);
  train(strategy, layout);
  require(strategy.dropped() >= 0 && strategy.dropped() <= static_cast<std::int64_t>(most), "drops are messages");
});

}  // namespace
}  // namespace syncopate::fuzz
