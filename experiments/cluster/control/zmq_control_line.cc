#include "experiments/cluster/control/zmq_control_line.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "common/os/exhaustion.h"
#include "common/os/file_descriptor.h"
#include "common/text/log.h"
#include "common/transport/secure_sockets.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr Duration kLastWords = std::chrono::seconds(1);

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

class ZmqControlLine final : public ControlLine {
 public:
  ZmqControlLine(const std::string& address, const RunKeys& keys, const ProcessIdentity& self, ControlChannel& channel);
  ~ZmqControlLine() override;
  ZmqControlLine(const ZmqControlLine&) = delete;
  ZmqControlLine& operator=(const ZmqControlLine&) = delete;

  void open(Handlers handlers) override;
  void set_linger(Duration linger) override { linger_ = linger; }
  [[noreturn]] void end_process(ExitCode code) override;
  Place place() const override;
  Coordinator coordinator() const override;

 private:
  void loop(const std::stop_token& stop);
  void wait_until(TimePoint time);
  void send_queued();
  void receive_all();

  const SteadyClock clock_;
  const FileDescriptor wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // readable once there is something to send
  ControlChannel& channel_;
  zmq::context_t context_;
  zmq::socket_t socket_;  // used by the thread alone, once it runs
  Handlers handlers_;
  std::atomic<Duration> linger_{std::chrono::seconds(1)};
  std::jthread thread_;
};

ZmqControlLine::ZmqControlLine(const std::string& address, const RunKeys& keys, const ProcessIdentity& self,
                               ControlChannel& channel)
    : channel_(channel), context_(1), socket_(context_, zmq::socket_type::dealer) {
  channel_.wake_by([this] {
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
  });
  socket_.set(zmq::sockopt::linger, milliseconds(kLastWords));
  socket_.set(zmq::sockopt::sndhwm, 0);  // a coordinator that is stopped must not block this thread
  secure_connector(socket_, coordinator_key(keys).public_key, control_key(keys, self));
  connect_to(socket_, address);
}

ZmqControlLine::~ZmqControlLine() {
  thread_.request_stop();
  channel_.wake();
  if (thread_.joinable()) thread_.join();
}

void ZmqControlLine::open(Handlers handlers) {
  handlers_ = std::move(handlers);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    // Without this thread the coordinator receives nothing from this process: the failure can only go to its log.
    const Status status = caught([&] { loop(stop); });
    if (status.ok()) return;
    log_error("the control thread: {}: {}", name_of(status.code()), status.message());
    _exit(static_cast<int>(exit_code_of(status)));
  });
}

void ZmqControlLine::loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    send_queued();
    receive_all();
    const TimePoint next = handlers_.on_tick(clock_.now());
    wait_until(next);
  }
  send_queued();
  socket_.set(zmq::sockopt::linger, milliseconds(linger_.load()));
}

void ZmqControlLine::wait_until(TimePoint time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - clock_.now());
  zmq::pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_.get(), ZMQ_POLLIN, 0}};
  zmq::poll(items, 2, std::max(left, std::chrono::milliseconds(0)));
  std::uint64_t wakes = 0;
  (void)!read(wake_.get(), &wakes, sizeof(wakes));
}

void ZmqControlLine::send_queued() {
  for (ControlChannel::Outgoing& next : channel_.take_outgoing()) {
    zmq::message_t head(next.message.ByteSizeLong());
    next.message.SerializeToArray(head.data(), static_cast<int>(head.size()));
    socket_.send(head, next.weights ? zmq::send_flags::sndmore : zmq::send_flags::none);
    if (next.weights) socket_.send(*next.weights, zmq::send_flags::none);
  }
}

void ZmqControlLine::receive_all() {
  zmq::message_t head;
  while (socket_.recv(head, zmq::recv_flags::dontwait)) {
    zmq::message_t weights;
    bool has_more = head.more() && socket_.recv(weights, zmq::recv_flags::none) && weights.more();
    const bool fits = !has_more && std::in_range<int>(head.size());
    // Otherwise the rest of a message would be taken for the next one.
    for (zmq::message_t rest; has_more;) has_more = socket_.recv(rest, zmq::recv_flags::none) && rest.more();
    control::FromCoordinator message;
    if (fits && message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
      handlers_.on_message(message, weights);
    }
  }
}

void ZmqControlLine::end_process(ExitCode code) {
  send_queued();
  socket_.close();
  context_.close();  // waits, within the linger time, for messages being sent
  _exit(static_cast<int>(code));
}

ControlLine::Place ZmqControlLine::place() const {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return {.pid = getpid(), .host = host};
}

// On another host there is no starter, and nothing is known.
ControlLine::Coordinator ZmqControlLine::coordinator() const {
  if (starter_lives()) return Coordinator::kLives;
  return starter_has_died() ? Coordinator::kHasDied : Coordinator::kUnknown;
}

}  // namespace

LineMaker zmq_control_line(const std::string& address, const RunKeys& keys, const ProcessIdentity& self) {
  return [=](ControlChannel& channel) { return std::make_unique<ZmqControlLine>(address, keys, self, channel); };
}

}  // namespace syncopate::experiments
