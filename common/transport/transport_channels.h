// TransportChannels: several endpoints over one. A message arrives at the channel with the number of the channel that
// it was sent by, whichever channel is receiving: messages for another channel are kept until that one receives. So two
// parts of a program use one set of connections, one after the other, and a member that has gone on to the next part
// does not disturb those that are still in the previous one.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate {

class TransportChannels {
 public:
  static constexpr int kMostChannels = 8;

  // `inner` must outlive the channels and all messages that they have delivered. All members of the group must make as
  // many.
  TransportChannels(Transport& inner, int channels);
  ~TransportChannels();
  TransportChannels(const TransportChannels&) = delete;
  TransportChannels& operator=(const TransportChannels&) = delete;

  // One thread at a time uses any of them; only interrupt() may be called from any thread, and it ends the waits of
  // all. They share memory. A header may be at most a byte shorter than the wire's (invalid argument). Counters are
  // those of the wire and all channels. A lost peer is reported to the channel that happens to receive.
  Transport& channel(int number);

 private:
  class Channel;

  // The next message for `channel`.
  Result<Message> receive(std::size_t channel, TimePoint deadline);

  Transport& inner_;
  std::vector<std::deque<Message>> kept_;  // by channel
  std::int64_t dropped_ = 0;               // for no channel
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace syncopate
