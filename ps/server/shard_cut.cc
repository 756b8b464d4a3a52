#include "ps/server/shard_cut.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <utility>

namespace syncopate::ps {
namespace {

// All have been answered alike: any worker that is not lost stands for them.
std::optional<int> first_that_is_there(const Membership& members) {
  for (int worker = 0; worker < members.workers(); ++worker) {
    if (!members.is_lost(worker)) return worker;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> ShardCut::advance(const Shard& shard, const ShardCodec* codec) {
  if (!shard.complete()) return false;
  if (shard.consistency().updates_together()) return copy_those_at_version(shard, codec);
  shard.save(state_);
  return true;
}

Result<bool> ShardCut::copy_those_at_version(const Shard& shard, const ShardCodec* codec) {
  if (!std::exchange(begun_, true)) {
    chunks_.resize(shard.chunks());
    std::iota(chunks_.begin(), chunks_.end(), std::size_t{0});
    tables_.resize(shard.tables());
    std::iota(tables_.begin(), tables_.end(), std::size_t{0});
  }
  const std::optional<int> who = first_that_is_there(shard.members());
  Status passed;
  const auto is_copied = [&](std::int64_t version, const auto& copy) {
    if (version > version_) {
      passed =
          Status::invalid_argument(fmt::format("a state with {} updates, where {} have been made", version_, version));
    }
    if (version == version_) copy();
    return version == version_;
  };
  std::erase_if(chunks_, [&](std::size_t chunk) {
    return is_copied(shard.chunk(chunk).weights().version(), [&] {
      shard.save_chunk(chunk, state_);
      if (codec != nullptr && who) codec->save(*who, chunk, shard.range(chunk).begin, state_);
    });
  });
  std::erase_if(tables_, [&](std::size_t table) {
    return is_copied(shard.table(table).version(), [&] { shard.save_table(table, state_); });
  });
  if (!passed.ok()) return passed;
  state_.step = version_ * shard.consistency().period();
  return chunks_.empty() && tables_.empty();
}

}  // namespace syncopate::ps
