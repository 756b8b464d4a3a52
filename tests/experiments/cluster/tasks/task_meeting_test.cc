#include "experiments/cluster/tasks/task_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "common/os/socket_address.h"
#include "common/os/tcp_socket.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_identity.h"
#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Duration kPatience = 30s * testing_support::kSlowness;

TEST(MeetingPorts, AreThoseOfTheJobBelowTheOnesThatKernelsChoose) {
  EXPECT_EQ(meeting_ports("slurm-1.0"), meeting_ports("slurm-1.0"));
  EXPECT_NE(meeting_ports("slurm-1.0"), meeting_ports("slurm-1.1"));
  for (int job = 0; job < 1000; ++job) {
    const auto ports = meeting_ports("job-" + std::to_string(job));
    EXPECT_EQ(std::set(ports.begin(), ports.end()).size(), ports.size());
    for (const std::uint16_t port : ports) {
      EXPECT_GE(port, 20'000);
      EXPECT_LT(port, 32'768);
    }
  }
}

TEST(NetworkAddress, NamesTheTaskAndItsJob) {
  const TaskPlace place{.rank = 3, .size = 8, .job = "torchrun-a-29500-x/y-0"};
  const std::string text = network_address_of(place, *SocketAddress::parse("[fd00::7]:4711"));
  const Result<NetworkTask> task = parse_network_address(text);
  ASSERT_TRUE(task.ok()) << task.status().message();
  EXPECT_EQ(task->listener.to_string(), "[fd00::7]:4711");
  EXPECT_EQ(task->rank, 3);
  EXPECT_EQ(task->size, 8);
  EXPECT_EQ(task->job, place.job);
  for (const char* wrong : {"", "tcp://", "tcp://10.0.0.7:1/3/8", "tcp://10.0.0.7:1/8/8/job", "tcp://10.0.0.7/3/8/job",
                            "tcp://10.0.0.7:1/-1/8/job", "10.0.0.7:1/3/8/job"}) {
    EXPECT_EQ(parse_network_address(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
}

// Tasks of one job on "several hosts", all of them threads of this process.
class TaskMeeting : public testing::Test {
 protected:
  TaskPlace place_of(int rank, int size, const std::string& secret = "secret") {
    const std::string path = (folder_.path() / secret).string();
    if (!std::filesystem::exists(path)) {
      std::ofstream(path) << secret << std::string(32, 'x');
      std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    }
    return {.by = StartedBy::kTorchrun,
            .rank = rank,
            .size = size,
            .one_host = false,
            .first_host = "127.0.0.1",
            .secret_file = path,
            .job = job_};
  }
  // The task's own part, and that of a shell of its.
  std::jthread join(const TaskPlace& place, Duration patience = kPatience) {
    return std::jthread([place, patience] {
      Result<MeetingWithFirst> met = meet_first_task(place, patience);
      if (!met.ok()) return;
      (void)met->first.send({TaskMessage::Kind::kReport, std::to_string(place.rank)}, SteadyClock().now() + patience);
      const TimePoint deadline = SteadyClock().now() + patience;
      std::vector<TaskConnection> shells;
      while (shells.empty() && SteadyClock().now() < deadline) {
        std::vector<pollfd> items;
        met->entrance->add_to(items);
        poll(items.data(), items.size(), 100);
        shells = met->entrance->admit();
      }
      if (!shells.empty()) (void)shells[0].send({TaskMessage::Kind::kEnd, "0"}, deadline);
    });
  }
  void expect_a_shell_reaches(const MetTask& task) {
    Result<TaskConnection> shell =
        connect_to_task(task.address, place_of(0, 2).secret_file, SteadyClock().now() + kPatience);
    ASSERT_TRUE(shell.ok()) << shell.status().message();
    const Result<TaskMessage> answer = shell->receive_by(SteadyClock().now() + kPatience);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->kind, TaskMessage::Kind::kEnd);
  }

  const testing_support::TemporaryFolder folder_;
  const std::string job_ = "test-" + std::to_string(getpid());
};

TEST_F(TaskMeeting, BringsAllTasksToTheFirst) {
  std::vector<std::jthread> others;
  for (const int rank : {3, 1, 2}) others.push_back(join(place_of(rank, 4)));
  Result<std::vector<MetTask>> met = receive_tasks(place_of(0, 4), kPatience);
  ASSERT_TRUE(met.ok()) << met.status().message();
  ASSERT_EQ(met->size(), 3u);
  for (int rank = 1; rank < 4; ++rank) {
    MetTask& task = (*met)[static_cast<std::size_t>(rank) - 1];
    const Result<TaskMessage> said = task.connection.receive_by(SteadyClock().now() + kPatience);
    ASSERT_TRUE(said.ok()) << said.status().message();
    EXPECT_EQ(said->bytes, std::to_string(rank));
    expect_a_shell_reaches(task);
  }
}

TEST_F(TaskMeeting, IsEncrypted) {
  const TaskPlace place = place_of(1, 2);
  const auto identity = task_identity(place.secret_file, place.job, place.rank, place.size);
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_TRUE(identity->encrypted);
}

TEST_F(TaskMeeting, PassesOverAPortThatAMuteProgramHas) {
  SocketAddress taken = *SocketAddress::of_host("0.0.0.0");
  taken.set_port(meeting_ports(job_)[0]);
  const Result<FileDescriptor> mute = listen_over_tcp(taken);
  ASSERT_TRUE(mute.ok()) << mute.status().message();
  const std::jthread other = join(place_of(1, 2));
  const Result<std::vector<MetTask>> met = receive_tasks(place_of(0, 2), kPatience);
  ASSERT_TRUE(met.ok()) << met.status().message();
  expect_a_shell_reaches(met->front());
}

TEST_F(TaskMeeting, LetsInNobodyWithoutTheSecret) {
  const std::jthread intruder = join(place_of(1, 2, "another"), 500ms);
  const Status met = receive_tasks(place_of(0, 2), 3s).status();
  EXPECT_EQ(met.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(met.message(),
            "rank 1 of the 2 that torchrun has started has not come within 3 s; somebody came who did not show the "
            "same secret (SYNCOPATE_SECRET_FILE)");
}

TEST_F(TaskMeeting, SaysWhereTheFirstTaskWasNotFound) {
  const Status alone = meet_first_task(place_of(1, 2), 100ms).status();
  EXPECT_EQ(alone.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(alone.message(),
              testing::StartsWith("the process with rank 0 has not been found on 127.0.0.1 within 0.1 s: nobody with "
                                  "the same secret (SYNCOPATE_SECRET_FILE="));
  TaskPlace lost = place_of(1, 2);
  lost.first_host = "no-such-host.invalid";
  EXPECT_THAT(meet_first_task(lost, 100ms).status().message(), HasSubstr("no-such-host.invalid: no address is known"));
  lost.secret_file = (folder_.path() / "absent").string();
  EXPECT_EQ(meet_first_task(lost, 100ms).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace syncopate::experiments
