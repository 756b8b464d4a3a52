#include "experiments/cluster/coordinator/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/cluster/control/packed_steps.h"
#include "experiments/cluster/control/wire_records.h"
#include "tests/experiments/cluster/coordinator/coordinated_run.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Long, so that nobody is silent for too long in here.
constexpr double kTimeoutSeconds = 600;

RunRequest ps_async(int workers, int servers = 1) {
  RunRequest config;
  config.mode = Mode::kPs;
  config.workers = workers;
  config.servers = servers;
  config.timeout_seconds = kTimeoutSeconds;
  return config;
}

void ask_epoch(Peer& worker, std::int64_t epoch) {
  ToCoordinator message;
  message.mutable_epoch_question()->set_epoch(epoch);
  worker.say(message);
}

// The next that a worker hears, as text: "epoch 3: go on", "epoch 3: end", "... with snapshots".
std::string epoch_heard_by(Peer& worker) {
  const FromCoordinator message = worker.hear().first;
  if (!message.has_epoch_answer()) return message.ShortDebugString();
  const control::EpochAnswer& answer = message.epoch_answer();
  return fmt::format("epoch {}: {}{}", answer.epoch(), answer.go_on() ? "go on" : "end",
                     answer.snapshots() ? " with snapshots" : "");
}

void ask_finish(Peer& worker) {
  ToCoordinator message;
  message.mutable_finish_question();
  worker.say(message);
}

std::string finish_heard_by(Peer& worker) {
  const FromCoordinator message = worker.hear().first;
  if (!message.has_finish_answer()) return message.ShortDebugString();
  return message.finish_answer().send_weights() ? "send weights" : "done";
}

// Whether nothing waits to be heard: what comes next is the answer to a heartbeat, which comes after all that was sent
// before.
bool hears_nothing(Peer& peer) {
  peer.say_step(0);
  return peer.hear().first.has_alive();
}

void finish(Peer& peer) {
  ToCoordinator message;
  message.mutable_finished();
  peer.say(message);
}

void lose_worker(CoordinatedRun& run, int rank) {
  run.processes().kill(fmt::format("worker {}", rank));
  EXPECT_EQ(run.server(0).hear().first.worker_lost().rank(), rank);
}

// Workers 0 to `workers` - 1 ask for the first epoch, and hear that it begins.
void begin_training(CoordinatedRun& run, int workers) {
  for (int rank = 0; rank < workers; ++rank) ask_epoch(run.worker(rank), 0);
  for (int rank = 0; rank < workers; ++rank) epoch_heard_by(run.worker(rank));
}

// A job whose lost processes are started again at once.
RunRequest respawning(int workers) {
  RunRequest config = ps_async(workers);
  config.respawn_seconds = 0;
  return config;
}

// Worker `rank` is lost while it trains, and started again: its new connection, once it has been welcomed.
std::unique_ptr<Peer> lose_and_welcome_again(CoordinatedRun& run, int rank) {
  lose_worker(run, rank);
  EXPECT_EQ(run.processes().started_again(), fmt::format("worker{}", rank));
  std::unique_ptr<Peer> again = run.connect(Role::kWorker, rank, 1);
  again->say_hello("run-7");
  EXPECT_TRUE(again->hear().first.has_welcome());
  return again;
}

ToCoordinator join_request() {
  ToCoordinator request;
  request.mutable_join_request()->set_after(-1);
  return request;
}

TEST(Coordinator, WelcomesProcessesOfItsOwnRunAlone) {
  CoordinatedRun run(ps_async(2));
  const auto worker = run.connect(Role::kWorker, 0);
  worker->say_hello("run-6");
  worker->say_step(0);  // of run-6, for all that is known
  worker->say_hello("run-7");
  worker->say_step(0);
  EXPECT_NE(worker->hear().first.welcome().config_toml(), "");
  EXPECT_TRUE(worker->hear().first.has_alive());
  EXPECT_EQ(run.end().rejected_connections, (std::map<std::string, std::int64_t>{{"coordinator", 2}}));
}

TEST(Coordinator, TellsAGroupOfItsMembersOnceAllHavePublished) {
  CoordinatedRun run(ps_async(2));
  const auto publish = [](Peer& peer, int rank, const std::string& value) {
    ToCoordinator message;
    message.mutable_publish()->set_group("data");
    message.mutable_publish()->set_rank(rank);
    message.mutable_publish()->set_size(2);
    message.mutable_publish()->set_value(value);
    peer.say(message);
  };
  publish(run.worker(1), 1, "there");
  publish(run.worker(1), 2, "no such rank");
  EXPECT_TRUE(hears_nothing(run.worker(1)));
  publish(run.worker(0), 0, "here");
  for (int rank : {0, 1}) {
    const FromCoordinator message = run.worker(rank).hear().first;
    EXPECT_EQ(message.members().group(), "data");
    EXPECT_THAT(message.members().values(), ElementsAre("here", "there"));
  }
}

TEST(Coordinator, AnswersTheFirstEpochToAllWorkersTogether) {
  CoordinatedRun run(ps_async(2));
  ask_epoch(run.worker(0), 0);
  EXPECT_TRUE(hears_nothing(run.worker(0)));
  ask_epoch(run.worker(1), 0);
  EXPECT_EQ(epoch_heard_by(run.worker(0)), "epoch 0: go on with snapshots");
  EXPECT_EQ(epoch_heard_by(run.worker(1)), "epoch 0: go on");
  run.end();
  EXPECT_EQ(run.observer().trainings_begun, 1);
}

TEST(Coordinator, DecidesAboutAnEpochOnceForAllAlsoWhereTheTargetIsReachedBetweenTheAskers) {
  RunRequest config = ps_async(2);
  config.target_accuracy = 0.95;
  config.stop_at_target = true;
  CoordinatedRun run(config);
  begin_training(run, 2);
  const auto evaluate = [&](double accuracy) {
    ToCoordinator message;
    message.mutable_snapshot();
    run.worker(0).say(message, {1, 2, 3});
    EXPECT_TRUE(run.evaluator().hear().first.has_snapshot());
    message.mutable_evaluation()->set_accuracy(accuracy);
    run.evaluator().say(message);
    EXPECT_TRUE(hears_nothing(run.evaluator()));  // so it has been handled
  };
  evaluate(0.9499);
  ask_epoch(run.worker(1), 1);
  EXPECT_EQ(epoch_heard_by(run.worker(1)), "epoch 1: go on");
  evaluate(0.95);
  ask_epoch(run.worker(0), 1);
  EXPECT_EQ(epoch_heard_by(run.worker(0)), "epoch 1: go on with snapshots");
  for (int rank : {0, 1}) ask_epoch(run.worker(rank), 2);
  EXPECT_EQ(epoch_heard_by(run.worker(0)), "epoch 2: end");
  EXPECT_EQ(epoch_heard_by(run.worker(1)), "epoch 2: end");
  EXPECT_TRUE(run.end().stopped_at_target);
  EXPECT_THAT(run.observer().accuracies, ElementsAre(0.9499, 0.95));
}

// Whether snapshots are wanted, as the worker hears next.
bool snapshots_wanted_of(Peer& worker) {
  const FromCoordinator message = worker.hear().first;
  EXPECT_TRUE(message.has_snapshot_terms()) << message.ShortDebugString();
  return message.snapshot_terms().wanted();
}

TEST(Coordinator, AsksTheLowestWorkerThatIsLeftForSnapshots) {
  CoordinatedRun run(ps_async(3));
  begin_training(run, 3);
  lose_worker(run, 0);
  EXPECT_TRUE(snapshots_wanted_of(run.worker(1))) << "at once, and not with its next epoch";
  for (int rank : {2, 1}) ask_epoch(run.worker(rank), 1);
  EXPECT_EQ(epoch_heard_by(run.worker(2)), "epoch 1: go on");
  EXPECT_EQ(epoch_heard_by(run.worker(1)), "epoch 1: go on with snapshots");
}

TEST(Coordinator, WantsNoSnapshotsWhileTheEvaluatorIsBehindAndThenSomeAgain) {
  CoordinatedRun run(ps_async(1));
  begin_training(run, 1);
  const auto send = [&](std::int64_t point) {
    ToCoordinator message;
    message.mutable_snapshot()->set_point(point);
    run.worker(0).say(message, {1, 2, 3});
  };
  for (std::size_t i = 1; i <= EvaluationBacklog::kMostWaiting; ++i) send(static_cast<std::int64_t>(i));
  EXPECT_FALSE(snapshots_wanted_of(run.worker(0)));
  ToCoordinator evaluation;
  evaluation.mutable_evaluation()->mutable_snapshot()->set_point(1);
  run.evaluator().say(evaluation);
  EXPECT_TRUE(snapshots_wanted_of(run.worker(0)));
  run.end();
  EXPECT_THAT(run.observer().reports,
              testing::Contains(testing::HasSubstr("wait to be evaluated; until fewer do, points are "
                                                   "left out")));
}

TEST(Coordinator, TellsWithTheFirstEpochHowLongTrainingHasGoneOn) {
  CoordinatedRun run(respawning(2));
  begin_training(run, 2);
  const TimePoint has_begun = SteadyClock().now();
  const std::unique_ptr<Peer> again = lose_and_welcome_again(run, 1);
  const TimePoint asked = SteadyClock().now();
  ask_epoch(*again, 3);
  const FromCoordinator answer = again->hear().first;
  ASSERT_TRUE(answer.has_epoch_answer()) << answer.ShortDebugString();
  EXPECT_GE(Duration(answer.epoch_answer().elapsed()), asked - has_begun);
}

TEST(Coordinator, TellsEveryServerOfALostWorkerAndNobodyElse) {
  CoordinatedRun run(ps_async(3, 3));
  run.worker(0), run.evaluator();
  run.processes().kill("worker 1");
  for (int rank : {0, 1, 2}) {
    const FromCoordinator message = run.server(rank).hear().first;
    ASSERT_TRUE(message.has_worker_lost()) << message.ShortDebugString();
    EXPECT_EQ(message.worker_lost().rank(), 1);
  }
  EXPECT_TRUE(hears_nothing(run.worker(0)));
  EXPECT_TRUE(hears_nothing(run.evaluator()));
  run.end();
  EXPECT_EQ(run.observer().lost.front(), 1);
}

TEST(Coordinator, StartsALostWorkerAgainAndTellsEverybodyOfTheMembershipThatItIsIn) {
  CoordinatedRun run(respawning(2));
  begin_training(run, 2);
  const std::unique_ptr<Peer> again = lose_and_welcome_again(run, 1);
  again->say(join_request());
  for (Peer* peer : {again.get(), &run.worker(0), &run.server(0)}) {
    const control::MembershipEpoch membership = peer->hear().first.membership();
    EXPECT_EQ(membership.number(), 1);
    EXPECT_FALSE(membership.begins());
    EXPECT_THAT(membership.workers(), ElementsAre(0, 1));
  }
  run.end();
  EXPECT_THAT(run.observer().joined, ElementsAre(1));
}

// It hears of the membership epoch by its own question, before the others are told, and what it publishes then counts.
TEST(Coordinator, KeepsWhatIsPublishedForAMembershipBeforeAllHaveHeardOfIt) {
  CoordinatedRun run(respawning(2));
  begin_training(run, 2);
  const std::unique_ptr<Peer> again = lose_and_welcome_again(run, 1);
  // All in one go, so that they are handled together.
  ToCoordinator publish;
  publish.mutable_publish()->set_group("data@1");
  publish.mutable_publish()->set_size(2);
  publish.mutable_publish()->set_value("here");
  again->say(join_request());
  again->say(join_request());
  again->say(publish);
  EXPECT_EQ(run.worker(0).hear().first.membership().number(), 1);
  publish.mutable_publish()->set_rank(1);
  run.worker(0).say(publish);
  EXPECT_EQ(run.worker(0).hear().first.members().values_size(), 2);
}

TEST(Coordinator, AsksAnotherWorkerForTheFinalWeightsWhereTheOneThatWasAskedIsLost) {
  CoordinatedRun run(ps_async(4));
  for (int rank : {0, 1, 2}) {
    ask_finish(run.worker(rank));
    EXPECT_TRUE(hears_nothing(run.worker(rank))) << "worker 3 may still meet the others";
  }
  ask_finish(run.worker(3));
  EXPECT_EQ(finish_heard_by(run.worker(0)), "send weights");
  lose_worker(run, 1);  // who waits to be answered
  lose_worker(run, 0);
  EXPECT_EQ(finish_heard_by(run.worker(2)), "send weights");
  EXPECT_TRUE(hears_nothing(run.worker(3)));
  ToCoordinator snapshot;
  snapshot.mutable_snapshot()->set_final(true);
  run.worker(2).say(snapshot, {1, 2, 3});
  EXPECT_EQ(finish_heard_by(run.worker(3)), "done");
  const auto [passed_on, bytes] = run.evaluator().hear();
  EXPECT_TRUE(passed_on.snapshot().final());
  EXPECT_EQ(bytes, 3 * sizeof(float));
  run.end();
  EXPECT_THAT(run.observer().final_weights, ElementsAre(1, 2, 3));
}

TEST(Coordinator, TakesStepsOfWorkersAlone) {
  CoordinatedRun run(ps_async(2));
  ToCoordinator message;
  message.mutable_steps()->set_packed(pack_steps(std::vector<SentStep>{{.record = {.step = 41}}}));
  run.server(0).say(message);
  run.worker(1).say(message);
  EXPECT_TRUE(hears_nothing(run.server(0)));
  EXPECT_TRUE(hears_nothing(run.worker(1)));
  run.end();
  EXPECT_THAT(run.observer().steps, ElementsAre(Pair(1, 41)));
}

TEST(Coordinator, HandsOnWhatAProcessSaysOfItself) {
  CoordinatedRun run(ps_async(2));
  ToCoordinator message;
  message.mutable_fact()->set_name("collective");
  message.mutable_fact()->set_value("ring");
  run.worker(1).say(message);
  EXPECT_TRUE(hears_nothing(run.worker(1)));
  run.end();
  EXPECT_THAT(run.observer().facts, ElementsAre(Pair("collective", "ring")));
}

// Its end is seen at once; what it said before travels longer. Here as late as can be: once the coordinator has seen
// the end.
TEST(Coordinator, HearsWhatAProcessSaidBeforeItEndedInOrder) {
  CoordinatedRun run(ps_async(2));
  run.worker(0), run.worker(1), run.server(0);
  run.processes().exit_and_wait("worker 0");
  finish(run.worker(0));
  finish(run.worker(1));
  ToCoordinator message;
  *message.mutable_finished() = to_wire(ServerFigures{.updates = 12, .pushes = 20, .dropped = 3, .bytes_in = 4000});
  message.mutable_finished()->set_peak_memory(1000);
  run.server(0).say(message);
  EXPECT_TRUE(run.server(0).hear().first.has_stop());  // all is done
  const RunOutcome& outcome = run.end();
  EXPECT_EQ(outcome.verdict ? outcome.verdict->line : "success", "success");
  EXPECT_THAT(outcome.reports, IsEmpty());
  EXPECT_EQ(outcome.server_updates, 12);
  EXPECT_EQ(outcome.rejected_connections, (std::map<std::string, std::int64_t>{{"server 0", 3}}));
  EXPECT_EQ(outcome.peak_memory.at("server 0"), 1000);
  EXPECT_EQ(outcome.servers.size(), 1u) << "workers have pushed nothing to themselves";
  EXPECT_EQ(outcome.servers.at(0).bytes_in, 4000);
}

// Its clock is an hour ahead of ours.
TEST(Coordinator, CorrectsTheStampsOfAnotherHostsClock) {
  CoordinatedRun run(ps_async(1), true);
  const Duration offset = -std::chrono::hours(1);
  ToCoordinator question, report, steps, snapshot;
  question.mutable_clock_question()->set_sent(7);
  run.worker(0).say(question);
  const FromCoordinator answer = run.worker(0).hear().first;
  EXPECT_EQ(answer.clock_answer().sent(), 7);
  EXPECT_LE(answer.clock_answer().received(), answer.clock_answer().answered());
  EXPECT_LE(answer.clock_answer().answered(), SteadyClock().now().time_since_epoch().count());

  report.mutable_clock_report()->set_offset(offset.count());
  report.mutable_clock_report()->set_uncertainty(25'000);
  run.worker(0).say(report);
  const TimePoint stamp(std::chrono::hours(5));
  steps.mutable_steps()->set_packed(pack_steps(std::vector<SentStep>{{.record = {.end = stamp}}}));
  run.worker(0).say(steps);
  snapshot.mutable_snapshot()->set_taken(stamp.time_since_epoch().count());
  run.worker(0).say(snapshot, {1, 2, 3});
  const FromCoordinator passed_on = run.evaluator().hear().first;
  EXPECT_EQ(passed_on.snapshot().taken(), (stamp + offset).time_since_epoch().count());
  EXPECT_EQ(run.end().clock_uncertainty, (std::map<std::string, Duration>{{"worker 0", Duration(25'000)}}));
  EXPECT_THAT(run.observer().ends, ElementsAre(stamp + offset));
}

TEST(Coordinator, AsksProcessesOfOtherHostsAloneToCompareClocks) {
  for (const bool elsewhere : {false, true}) {
    CoordinatedRun run(ps_async(1), elsewhere);
    const std::unique_ptr<Peer> worker = run.connect(Role::kWorker, 0);
    worker->say_hello("run-7");
    EXPECT_EQ(worker->hear().first.welcome().compare_clocks(), elsewhere);
  }
}

// Has a worker say more than twice what is much, for as long as a mean is not yet said and a little more; returns what
// the run has reported.
std::vector<std::string> reports_of_much_traffic(bool workers_are_elsewhere) {
  CoordinatedRun run(ps_async(2), workers_are_elsewhere);
  Peer& worker = run.worker(0);
  ToCoordinator steps, fact;
  steps.mutable_steps()->set_packed(pack_steps(std::vector<SentStep>{{.record = {.step = 0}}}));
  fact.mutable_fact()->set_value(std::string(500'000, 'x'));
  worker.say(steps);
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  double said = 0;
  while (clock.now() - begin < std::chrono::seconds(4)) {
    worker.say(fact);
    said += 500'000;
    worker.say_step(1);
    while (!worker.hear().first.has_alive()) {  // nothing else is said meanwhile, or it is another answer
    }
  }
  EXPECT_GT(said / seconds(clock.now() - begin), 2 * kMuchControlTraffic);
  run.end();
  std::vector<std::string> reports = run.observer().reports;
  std::erase_if(reports, [](const std::string& line) { return line.find("MB/s") == line.npos; });
  return reports;
}

TEST(Coordinator, SaysOnceThatItHasMuchTrafficWithOtherHosts) {
  EXPECT_THAT(reports_of_much_traffic(true),
              ElementsAre(testing::ContainsRegex("the coordinator takes .* MB/s from processes on other hosts, .* are "
                                                 "heartbeats and the like")));
  EXPECT_THAT(reports_of_much_traffic(false), IsEmpty()) << "it takes no link";
}

}  // namespace
}  // namespace syncopate::experiments
