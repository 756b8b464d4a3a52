// What a process says to the coordinator, and asks of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "experiments/cluster/control/control_thread.h"
#include "experiments/cluster/control/wire_records.h"
#include "tests/experiments/cluster/control/fake_coordinator.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""ns;
using std::literals::chrono_literals::operator""s;
using std::literals::chrono_literals::operator""us;

TEST(ControlConnect, GivesUpAtItsDeadlineWhereNobodyAnswers) {
  FakeCoordinator nobody;
  Activity activity;
  const auto client =
      ControlClient::connect(options_to(nobody.address(), nobody.keys()), activity, SteadyClock().now() + 100ms);
  EXPECT_EQ(client.status().code(), Code::kDeadlineExceeded);
}

TEST(ControlConnect, SaysWhichAddressCannotBeUsed) {
  Activity activity;
  const auto client = ControlClient::connect(options_to("nonsense", *RunKeys::make()), activity, soon());
  EXPECT_THAT(client.status().message(), testing::HasSubstr("nonsense"));
}

TEST_F(Control, SaysHelloAndReceivesTheConfiguration) {
  EXPECT_EQ(hello_.run_id(), "run-7");
  EXPECT_EQ(hello_.pid(), getpid());
  EXPECT_FALSE(hello_.host().empty());
  EXPECT_EQ(client_->config_toml(), "mode = \"ps\"\n");
}

// A clock that is an hour ahead, as another host's may be.
TEST(ControlOfAnotherHost, ComparesClocksBeforeAnythingIsStamped) {
  FakeCoordinator coordinator;
  Activity activity;
  auto connecting = std::async(std::launch::async, [&] {
    return ControlClient::connect(options_to(coordinator.address(), coordinator.keys()), activity, soon());
  });
  ASSERT_TRUE(coordinator.next(ToCoordinator::kHello));
  coordinator.answer([](FromCoordinator& message) { message.mutable_welcome()->set_compare_clocks(true); });
  constexpr std::int64_t kHour = std::chrono::nanoseconds(std::chrono::hours(1)).count();
  for (int i = 0; i < 8; ++i) {
    const std::optional<Received> question = coordinator.next(ToCoordinator::kClockQuestion);
    ASSERT_TRUE(question);
    EXPECT_EQ(connecting.wait_for(0s), std::future_status::timeout) << "not yet";
    coordinator.answer([&](FromCoordinator& message) {
      const std::int64_t now = SteadyClock().now().time_since_epoch().count() + kHour;
      message.mutable_clock_answer()->set_sent(question->message.clock_question().sent());
      message.mutable_clock_answer()->set_received(now);
      message.mutable_clock_answer()->set_answered(now);
    });
  }
  const std::optional<Received> report = coordinator.next(ToCoordinator::kClockReport);
  ASSERT_TRUE(report);
  const std::int64_t uncertainty = report->message.clock_report().uncertainty();
  EXPECT_GT(uncertainty, 0);
  EXPECT_LE(std::abs(report->message.clock_report().offset() - kHour), uncertainty);
  EXPECT_TRUE(connecting.get().ok());
}

TEST_F(Control, LetsSeveralThreadsMeetInOneGroup) {
  std::vector<std::future<Result<std::vector<std::string>>>> members;
  for (int rank = 0; rank < 3; ++rank) {
    members.push_back(std::async(std::launch::async, [this, rank] {
      return client_->exchange("data", rank, 3, fmt::format("place {}", rank), soon());
    }));
  }
  std::map<int, std::string> published;
  for (int i = 0; i < 3; ++i) {
    const std::optional<Received> received = coordinator_.next(ToCoordinator::kPublish);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message.publish().group(), "data");
    EXPECT_EQ(received->message.publish().size(), 3);
    published[received->message.publish().rank()] = received->message.publish().value();
  }
  coordinator_.answer([&](FromCoordinator& message) {
    message.mutable_members()->set_group("data");
    for (const auto& [rank, value] : published) message.mutable_members()->add_values(value);
  });
  for (auto& member : members) {
    const Result<std::vector<std::string>> places = member.get();
    ASSERT_TRUE(places.ok()) << places.status().message();
    EXPECT_THAT(*places, ElementsAre("place 0", "place 1", "place 2"));
  }
}

TEST_F(Control, SaysWhatItWaitedForAtTheDeadline) {
  const auto places = client_->exchange("data", 0, 2, "here", SteadyClock().now() + 50ms);
  EXPECT_EQ(places.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(places.status().message(), testing::HasSubstr("group data"));
}

TEST_F(Control, AsksWhetherAnEpochIsToBeTrained) {
  auto asking = std::async(std::launch::async, [this] { return client_->ask_epoch(4, soon()); });
  const std::optional<Received> question = coordinator_.next(ToCoordinator::kEpochQuestion);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->message.epoch_question().epoch(), 4);
  const auto answer_for = [&](std::int64_t epoch, bool go_on) {
    coordinator_.answer([&](FromCoordinator& message) {
      message.mutable_epoch_answer()->set_epoch(epoch);
      message.mutable_epoch_answer()->set_go_on(go_on);
      message.mutable_epoch_answer()->set_snapshots(true);
      message.mutable_epoch_answer()->set_elapsed(1500);
    });
  };
  answer_for(3, false);  // not what was asked
  answer_for(4, true);
  const Result<ControlClient::EpochDecision> decision = asking.get();
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->go_on);
  EXPECT_EQ(decision->elapsed, 1500ns);
  EXPECT_TRUE(client_->wants_snapshots());
}

TEST_F(Control, HearsWhetherSnapshotsAreWanted) {
  EXPECT_FALSE(client_->wants_snapshots()) << "before it is told";
  for (const bool wanted : {true, false}) {
    coordinator_.answer([&](FromCoordinator& message) { message.mutable_snapshot_terms()->set_wanted(wanted); });
    // What comes behind it is heard after it.
    coordinator_.answer([&](FromCoordinator& message) { message.mutable_snapshot()->set_point(7); }, {1});
    ASSERT_TRUE(client_->next_snapshot().ok());
    EXPECT_EQ(client_->wants_snapshots(), wanted);
  }
}

TEST_F(Control, AsksWhetherItsFinalWeightsAreWanted) {
  auto asking = std::async(std::launch::async, [this] { return client_->ask_finish(soon()); });
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kFinishQuestion));
  coordinator_.answer([](FromCoordinator& message) { message.mutable_finish_answer()->set_send_weights(true); });
  const Result<bool> wanted = asking.get();
  ASSERT_TRUE(wanted.ok());
  EXPECT_TRUE(*wanted);
}

TEST_F(Control, SaysInItsHeartbeatsWhatTheProcessIsDoing) {
  activity_.set("wait for weights", 41);
  std::optional<Received> beat;
  do {  // those of before may still be under way
    beat = coordinator_.next(ToCoordinator::kHeartbeat);
  } while (beat && beat->message.heartbeat().step() != 41);
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->message.heartbeat().operation(), "wait for weights");
}

TEST(HeartbeatInterval, IsATenthOfTheTimeoutButNeverMoreThanASecond) {
  EXPECT_EQ(heartbeat_interval(1s), 100ms);
  EXPECT_EQ(heartbeat_interval(9s), 900ms);
  EXPECT_EQ(heartbeat_interval(10s), 1s);
  EXPECT_EQ(heartbeat_interval(3600s), 1s);
}

TEST(HeartbeatInterval, IsAlsoAFifthOfTheStallWarning) {
  EXPECT_EQ(heartbeat_interval(30s, 5s), 1s);
  EXPECT_EQ(heartbeat_interval(30s, 2s), 400ms);
  EXPECT_EQ(heartbeat_interval(1s, 2s), 100ms);
  EXPECT_EQ(heartbeat_interval(30s, 0s), 1s) << "no warning";
}

TEST_F(Control, SaysInItsHeartbeatsWhichCollectiveOperationTheProcessIsIn) {
  allreduce::CollectiveActivity collectives;
  const TimePoint begun = SteadyClock().now();
  collectives.begin({.name = "broadcast", .stage = allreduce::CollectiveOperation::Stage::kJoining}, begun);
  collectives.end();
  collectives.begin({.name = "all_reduce", .bytes = 1050000, .step = 17, .bucket = 3, .buckets = 9}, begun);
  Subscription on_beat = client_->on_heartbeat([&] {
    allreduce::CollectiveState state = collectives.state(begun + 1500ms);
    state.waits_for = 2;
    return state;
  });
  std::optional<Received> beat;
  do {  // those of before may still be under way
    beat = coordinator_.next(ToCoordinator::kHeartbeat);
  } while (beat && !beat->message.heartbeat().has_collective());
  ASSERT_TRUE(beat);
  const CollectiveReport report = from_wire(beat->message.heartbeat().collective());
  EXPECT_EQ(report.begun, 2);
  EXPECT_EQ(report.what, "step 17, bucket 3 of 9 (all_reduce, 1.05 MB)");
  EXPECT_TRUE(report.under_way);
  EXPECT_EQ(report.age, 1500ms);
  EXPECT_EQ(report.waits_for, 2);
  on_beat.reset();
}

// Records leave every 200 ms. With a timeout of 1 s heartbeats are due more often, the very first one included: none
// may wait for what the default timeout had set.
TEST_F(Control, BeatsAtOnceAsOftenAsANewTimeoutAsksFor) {
  client_->set_timeout(1s);
  client_->add({.step = 1});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));
  const int heartbeats = coordinator_.heartbeats();
  client_->add({.step = 2});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));
  EXPECT_GT(coordinator_.heartbeats(), heartbeats);
}

TEST_F(Control, HandsOverStepRecordsAsTheyAre) {
  StepRecord record;
  record.step = 5;
  record.epoch = 1;
  record.end = TimePoint(123456789ns);
  record.total = 900us;
  record.data = 1us;
  record.forward = 2us;
  record.backward = 3us;
  record.launch = 11us;
  record.straggle = 12us;
  record.sync = {.exposed_wait = 4us,
                 .communication = 5us,
                 .optimizer = 6us,
                 .codec = 13us,
                 .backward_codec = 14us,
                 .copy = 10us,
                 .bytes_out = 7,
                 .bytes_in = 8,
                 .staleness_mean = 1.5,
                 .staleness_max = 2,
                 .dropped = 0.25,
                 .last_shard = 3,
                 .last_shard_alone = 15us};
  record.core_wait = 16us;
  record.compute_core_wait = 17us;
  record.samples = 64;
  record.loss = 0.25;
  client_->add(record);
  const std::optional<Received> received = coordinator_.next(ToCoordinator::kSteps);
  ASSERT_TRUE(received);
  const Result<std::vector<SentStep>> steps = unpack_steps(received->message.steps().packed());
  ASSERT_TRUE(steps.ok() && steps->size() == 1);
  const StepRecord& got = steps->front().record;
  EXPECT_EQ(got.step, record.step);
  EXPECT_EQ(got.epoch, record.epoch);
  EXPECT_EQ(got.end, record.end);
  EXPECT_EQ(got.total, record.total);
  EXPECT_EQ(got.data, record.data);
  EXPECT_EQ(got.forward, record.forward);
  EXPECT_EQ(got.backward, record.backward);
  EXPECT_EQ(got.sync.exposed_wait, record.sync.exposed_wait);
  EXPECT_EQ(got.sync.communication, record.sync.communication);
  EXPECT_EQ(got.sync.optimizer, record.sync.optimizer);
  EXPECT_EQ(got.sync.codec, record.sync.codec);
  EXPECT_EQ(got.sync.backward_codec, record.sync.backward_codec);
  EXPECT_EQ(got.sync.last_shard, record.sync.last_shard);
  EXPECT_EQ(got.sync.last_shard_alone, record.sync.last_shard_alone);
  EXPECT_EQ(got.core_wait, record.core_wait);
  EXPECT_EQ(got.compute_core_wait, record.compute_core_wait);
  EXPECT_EQ(got.sync.copy, record.sync.copy);
  EXPECT_EQ(got.launch, record.launch);
  EXPECT_EQ(got.straggle, record.straggle);
  EXPECT_EQ(got.sync.bytes_out, record.sync.bytes_out);
  EXPECT_EQ(got.sync.bytes_in, record.sync.bytes_in);
  EXPECT_EQ(got.sync.staleness_mean, record.sync.staleness_mean);
  EXPECT_EQ(got.sync.staleness_max, record.sync.staleness_max);
  EXPECT_EQ(got.sync.dropped, record.sync.dropped);
  EXPECT_EQ(got.samples, record.samples);
  EXPECT_EQ(got.loss, record.loss);
}

TEST_F(Control, CarriesSnapshotsBothWays) {
  const WeightsSnapshot stamp{.point = 2,
                              .steps_done = 300,
                              .taken = TimePoint(77ns),
                              .final = true,
                              .weights = {},
                              .rows = {{1, 5}, {4000000000}}};
  client_->send_snapshot(stamp, std::vector<float>{1, 2, 3});
  const std::optional<Received> sent = coordinator_.next(ToCoordinator::kSnapshot);
  ASSERT_TRUE(sent);
  EXPECT_THAT(sent->weights, ElementsAre(1, 2, 3));

  coordinator_.answer([&](FromCoordinator& message) { *message.mutable_snapshot() = sent->message.snapshot(); },
                      sent->weights);
  const Result<WeightsSnapshot> got = client_->next_snapshot();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->point, 2);
  EXPECT_EQ(got->steps_done, 300);
  EXPECT_EQ(got->taken, stamp.taken);
  EXPECT_TRUE(got->final);
  EXPECT_EQ(got->rows, stamp.rows);
  EXPECT_THAT(got->weights, ElementsAre(1, 2, 3));
}

TEST_F(Control, SendsOfAnEvaluationTheFiguresThatThereAre) {
  const EvaluationScores ranked{.accuracy = 0.5, .loss = 0.25, .figures = {.auc = {}, .hit_rate = 0.75, .ndcg = 0.375}};
  const EvaluationScores validated{.accuracy = 0.5, .loss = 0.25, .validation = {{.accuracy = 0.75, .loss = 0.125}}};
  for (const EvaluationScores& scores : {ranked, validated}) {
    client_->send_evaluation({}, scores);
    const std::optional<Received> sent = coordinator_.next(ToCoordinator::kEvaluation);
    ASSERT_TRUE(sent);
    EXPECT_EQ(scores_of(sent->message.evaluation()), scores);
  }
}

TEST_F(Control, CarriesLocalStatesToTheCoordinatorAndTheirMeanBack) {
  client_->send_local_state(4, std::vector<float>{0.5f, 2});
  const std::optional<Received> sent = coordinator_.next(ToCoordinator::kLocalState);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->message.local_state().point(), 4);
  EXPECT_THAT(sent->message.local_state().values(), ElementsAre(0.5f, 2));

  coordinator_.answer(
      [](FromCoordinator& message) {
        message.mutable_snapshot()->add_local_state(1.5f);
        message.mutable_snapshot()->add_local_state(3);
      },
      {7});
  const Result<WeightsSnapshot> got = client_->next_snapshot();
  ASSERT_TRUE(got.ok());
  EXPECT_THAT(got->weights, ElementsAre(7));
  EXPECT_THAT(got->local_state, ElementsAre(1.5f, 3));
}

}  // namespace
}  // namespace syncopate::experiments
