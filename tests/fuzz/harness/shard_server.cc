// A shard's server among messages of which some are right, some late, some alien and some random bytes. The oracle: a
// message that was dropped has changed nothing, so that a server which is never sent it says the same to everybody.
#include "ps/server/shard_server.h"

#include <array>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/script_transport.h"

namespace syncopate::fuzz {
namespace {

using Line = ScriptTransport::Line;

constexpr ps::PsGroup kGroup{.workers = 2, .servers = 1, .shards_per_server = 1};
constexpr std::array<Range, 2> kChunks = {{{0, 16}, {40, 72}}};
constexpr std::uint64_t kShardSize = 48;
constexpr std::uint64_t kArenaSize = 2 * kShardSize;
constexpr std::array<Range, 3> kTensors = {{{0, 8}, {8, 45}, {48, kArenaSize}}};
constexpr std::uint64_t kLayout = 0xC0FFEE;
constexpr ps::TableOwnership kTable{.rows = 40, .width = 4, .rows_a_step = 6, .limit = 0.1f};
constexpr std::size_t kMostLines = 64;

constexpr std::array<const char*, 6> kConsistencies = {"sync",       "async",       "bounded:1",
                                                       "softsync:1", "local-sgd:2", "easgd:2"};
constexpr std::array<CodecConfig, 5> kCodecs = {{{.kind = CodecKind::kNone},
                                                 {.kind = CodecKind::kInt8},
                                                 {.kind = CodecKind::kTopK, .ratio = 0.25},
                                                 {.kind = CodecKind::kRandomK, .ratio = 0.25},
                                                 {.kind = CodecKind::kSign}}};

struct Scene {
  ps::ShardServerOptions options;
  bool has_table = false;
  std::vector<Line> lines;
  std::vector<bool> loses;  // with line i, which says nothing, worker 1 is said to be gone
};

std::vector<std::byte> bytes_of(Bytes bytes) {
  std::vector<std::byte> copy;
  for (const std::uint8_t byte : bytes) copy.push_back(std::byte{byte});
  return copy;
}

// So many bytes, of which the input gives what they repeat.
std::vector<std::byte> filled(Input& input, std::size_t size) {
  const Bytes pattern = input.bytes(4);
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size && !pattern.empty(); ++i) bytes[i] = std::byte{pattern[i % pattern.size()]};
  return bytes;
}

std::vector<std::byte> ascending_keys(Input& input) {
  std::vector<std::byte> bytes(input.below(7) * sizeof(RowKey));
  RowKey key = static_cast<RowKey>(input.below(8));
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(key)) {
    std::memcpy(bytes.data() + i, &key, sizeof(key));
    key += static_cast<RowKey>(input.below(9));
  }
  return bytes;
}

ps::wire::Join join_of(Input& input, bool has_table) {
  ps::wire::Join join;
  join.set_layout_hash(input.below(16) == 0 ? input.number() : kLayout);
  join.set_arena_size(input.below(16) == 0 ? input.number() : kArenaSize);
  join.set_shard_size(input.below(16) == 0 ? input.number() : kShardSize);
  join.set_chunks(input.below(16) == 0 ? input.number() : kChunks.size());
  join.set_tables(input.below(16) == 0 ? input.number() : has_table ? 1 : 0);
  return join;
}

ps::wire::Table table_of(Input& input) {
  ps::wire::Table table;
  const bool right = input.below(4) != 0;
  table.set_table(right ? 0 : input.number());
  table.set_rows(right ? kTable.rows : input.number());
  table.set_width(right ? kTable.width : input.number());
  table.set_rows_a_step(right ? kTable.rows_a_step : input.number());
  table.set_limit(right ? kTable.limit : input.value<float>());
  table.set_number(right ? 0 : input.number());
  return table;
}

// Where tensors lie: mostly as they do, ascending.
std::vector<std::byte> tensors_of(Input& input) {
  std::array<Range, 3> tensors = kTensors;
  if (input.below(8) == 0) tensors[input.below(tensors.size())].begin = input.number();
  const auto bytes = std::as_bytes(std::span(tensors));
  return {bytes.begin(), bytes.end()};
}

// Ranges that weight decay leaves out: mostly ascending and within the arena.
void fill_undecayed(Input& input, ps::wire::Undecayed& undecayed) {
  std::uint64_t bound = input.below(8);
  for (std::size_t left = input.below(7); left > 0; --left) {
    undecayed.add_bounds(input.below(16) == 0 ? input.number() : bound);
    bound += 1 + input.below(16);
  }
}

// The header and, mostly of the right length, the payload of one message.
void compose(Input& input, const Scene& scene, Line& line) {
  ps::wire::Header header;
  const ps::Compression& compression = scene.options.compression;
  const Codec codec(compression.codec, TensorRanges(kTensors.begin(), kTensors.end()));
  switch (input.below(15)) {
    case 0:
      *header.mutable_join() = join_of(input, scene.has_table);
      if (compression.of_pushes() && input.below(16) != 0) line.payload = tensors_of(input);
      break;
    case 1: {
      const std::size_t chunk = input.below(kChunks.size());
      header.mutable_initial()->set_chunk(chunk);
      header.mutable_initial()->set_begin(input.below(16) == 0 ? input.number() : kChunks[chunk].begin);
      header.mutable_initial()->set_end(input.below(16) == 0 ? input.number() : kChunks[chunk].end);
      if (input.below(4) == 0) header.mutable_initial()->set_updates(static_cast<std::int64_t>(input.number()));
      line.payload = filled(input, kChunks[chunk].size() * sizeof(float));
      break;
    }
    case 2:
    case 3: {
      const std::size_t chunk = input.below(kChunks.size());
      header.mutable_push()->set_chunk(input.below(16) == 0 ? input.number() : chunk);
      header.mutable_push()->set_clock(static_cast<std::int64_t>(input.number()));
      header.mutable_push()->set_version(static_cast<std::int64_t>(input.number()));
      header.mutable_push()->set_learning_rate(input.below(8) == 0 ? input.value<double>() : 0.1);
      line.payload = filled(input, codec.encoded_size(kChunks[chunk].size(), kChunks[chunk].begin));
      break;
    }
    case 4:
      *header.mutable_table() = table_of(input);
      break;
    case 5:
      header.mutable_pull()->set_table(input.below(8) == 0 ? input.number() : 0);
      header.mutable_pull()->set_clock(static_cast<std::int64_t>(input.number()));
      header.mutable_pull()->set_slot(input.number());
      header.mutable_pull()->set_known(input.coin());
      if (!header.pull().known()) line.payload = ascending_keys(input);
      break;
    case 6:
      header.mutable_push_rows()->set_clock(static_cast<std::int64_t>(input.number()));
      header.mutable_push_rows()->set_learning_rate(0.1);
      line.payload = filled(input, input.below(7) * kTable.width * sizeof(float));
      break;
    case 7:
      header.mutable_read_rows()->set_table(input.below(8) == 0 ? input.number() : 0);
      line.payload = ascending_keys(input);
      break;
    case 8:
      header.mutable_list_rows()->set_table(input.below(8) == 0 ? input.number() : 0);
      header.mutable_list_rows()->set_offset(input.number());
      break;
    case 9:
      header.mutable_leave();
      break;
    case 10:
      header.mutable_goodbye();
      break;
    case 11:
      fill_undecayed(input, *header.mutable_undecayed());
      break;
    case 12: {
      const std::size_t chunk = input.below(kChunks.size());
      header.mutable_memory()->set_chunk(chunk);
      header.mutable_memory()->set_memory(input.below(16) == 0 ? input.number() : input.below(2));
      header.mutable_memory()->set_begin(input.below(16) == 0 ? input.number() : kChunks[chunk].begin);
      line.payload = filled(input, kChunks[chunk].size() * sizeof(float));
      break;
    }
    case 13:
      header.mutable_read_chunk()->set_chunk(input.below(8) == 0 ? input.number() : input.below(kChunks.size()));
      header.mutable_read_chunk()->set_read(input.number());
      break;
    default:
      line.header = string_of(input.bytes(input.byte() % kMaxHeaderBytes));
      line.payload = bytes_of(input.bytes(input.byte()));
      return;
  }
  if (input.below(16) == 0) line.payload = bytes_of(input.bytes(input.byte()));
  header.SerializeToString(&line.header);
}

Scene scene_of(Bytes bytes) {
  Input input(bytes);
  Scene scene;
  scene.options = {.group = kGroup,
                   .consistency = *ps::Consistency::parse(kConsistencies[input.below(kConsistencies.size())]),
                   .optimizer = {.kind = static_cast<OptimizerKind>(input.below(6))},
                   .compression = {.codec = kCodecs[input.below(kCodecs.size())], .answers = input.coin()}};
  if (input.coin()) scene.options.optimizer.weight_decay = 0.5f;
  const bool compensates = input.below(4) == 0 && scene.options.consistency.applies_stale_gradients();
  if (compensates) scene.options.staleness.compensation.lambda = 0.5f;
  scene.has_table = input.coin();
  while (!input.empty() && scene.lines.size() < kMostLines) {
    const std::uint8_t who = input.byte();
    Line line{.from = who < 0xF0 ? who % 2 : static_cast<int>(who) - 0xF8};
    scene.loses.push_back(who >= 0xE0 && who < 0xE4);
    if (scene.loses.back()) {
      line.from = kGroup.rank_of_shard(0);
    } else {
      compose(input, scene, line);
    }
    scene.lines.push_back(std::move(line));
  }
  return scene;
}

struct Played {
  std::vector<ScriptTransport::Sent> sent;
  std::vector<bool> dropped;  // by line
};

Played play(const Scene& scene) {
  Played played;
  played.dropped.resize(scene.lines.size());
  ScriptTransport transport(kGroup.rank_of_shard(0), kGroup.size(), scene.lines);
  const ManualClock clock;
  ps::ShardServer server(scene.options, transport, clock);
  std::int64_t before = 0;
  transport.before_each([&](std::size_t index) {
    const std::int64_t now = server.counters().dropped;
    require(now - before <= 1, "a message is dropped once at most");
    if (index > 0) played.dropped[index - 1] = now > before;
    before = now;
    if (index < scene.loses.size() && scene.loses[index]) server.worker_lost(1);
  });
  const Status status = server.serve();
  require(status.code() != Code::kInternal, "no message of a peer is a defect of the server's");
  played.sent = transport.sent();
  return played;
}

const Harness shard_server("shard_server", [](Bytes bytes) {
  const Scene scene = scene_of(bytes);
  const Played first = play(scene);
  Scene without{.options = scene.options, .has_table = scene.has_table, .lines = {}, .loses = {}};
  for (std::size_t i = 0; i < scene.lines.size(); ++i) {
    if (first.dropped[i] && !scene.loses[i]) continue;
    without.lines.push_back(scene.lines[i]);
    without.loses.push_back(scene.loses[i]);
  }
  require(play(without).sent == first.sent, "a message that was dropped has changed nothing");
});

}  // namespace
}  // namespace syncopate::fuzz
