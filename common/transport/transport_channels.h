// TransportChannels: several endpoints over one. A message arrives at the channel of its receiver that has the number
// of the one that it was sent by, whoever receives it: what comes for another channel is kept until that is asked. So
// two parts of a program use one set of connections, one after the other, and a member that has gone on to the next
// part does not disturb those that are still at the one before.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate {

class TransportChannels {
 public:
  static constexpr int kMostChannels = 8;

  // `inner` outlives the channels and all that they have handed over. All members of the group make as many.
  TransportChannels(Transport& inner, int channels);
  ~TransportChannels();
  TransportChannels(const TransportChannels&) = delete;
  TransportChannels& operator=(const TransportChannels&) = delete;

  // One thread at a time uses any of them; interrupt() alone may be called from any thread, and ends the waits of all.
  // Memory of one is memory of all. A header is at most a byte shorter than the wire's (invalid argument). Counters are
  // those of the wire and all channels. A lost peer is told to the channel that happens to receive.
  Transport& channel(int number);

 private:
  class Channel;

  // The next message for `channel`.
  Result<Message> receive(std::size_t channel, TimePoint deadline);

  Transport& inner_;
  std::vector<std::deque<Message>> kept_;  // by channel
  std::int64_t dropped_ = 0;               // of no channel
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace syncopate
