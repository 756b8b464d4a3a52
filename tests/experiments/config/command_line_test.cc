#include "experiments/config/command_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "experiments/config/help_text.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(CommandLine, WithoutFlagsRunsTheDefaults) {
  const Result<CommandLine> line = parse({});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->action, CommandLine::Action::kRun);
  EXPECT_EQ(to_toml(presumed(line->config)), to_toml(presumed(RunRequest())));
}

TEST(CommandLine, WarmsUpForHalfOfAShortRun) {
  const auto warm_up = [](std::vector<const char*> flags) { return presumed(parse(flags)->config).warmup_steps; };
  EXPECT_EQ(warm_up({}), 10);
  EXPECT_EQ(warm_up({"--steps=100"}), 10);
  EXPECT_EQ(warm_up({"--steps=7"}), 3);
  EXPECT_EQ(warm_up({"--steps=1"}), 0);
  EXPECT_EQ(warm_up({"--steps=7", "--warmup-steps=5"}), 5);
}

TEST(CommandLine, TakesValuesBehindAnEqualsSignOrASpace) {
  const Result<CommandLine> line =
      parse({"--mode=ps", "--workers", "4", "--servers=2", "--consistency=bounded:3", "--timeout=2.5", "--dry-run"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.mode, Mode::kPs);
  EXPECT_EQ(line->config.workers, 4);
  EXPECT_EQ(line->config.servers, 2);
  EXPECT_EQ(line->config.consistency.to_string(), "bounded:3");
  EXPECT_EQ(line->config.timeout_seconds, 2.5);
  EXPECT_TRUE(line->config.dry_run);
}

TEST(CommandLine, ReadsWhereServersAre) {
  const auto servers_of = [](const char* text) {
    const Result<CommandLine> line = parse({"--mode=ps", "--workers=4", text});
    EXPECT_TRUE(line.ok()) << line.status().message();
    return servers_text(line->config);
  };
  for (const std::string text : {"3", "colocated", "colocated+3"})
    EXPECT_EQ(servers_of(("--servers=" + text).c_str()), text);
}

TEST(CommandLine, SaysWhatWouldBeRightForABadValue) {
  EXPECT_EQ(refusal({"--mode=ps", "--servers=0"}),
            "--servers=0: parameter servers must be 1 to 1024, colocated or colocated+K");
  EXPECT_EQ(refusal({"--mode=ps", "--servers=two"}),
            "--servers=two: parameter servers must be 1 to 1024, colocated or colocated+K");
  for (const std::string text : {"colocated+0", "colocated+", "colocated2", "colocated+1025", "+1", "colocated+x"}) {
    EXPECT_EQ(refusal({"--mode=ps", "--workers=4", ("--servers=" + text).c_str()}),
              "--servers=" + text + ": parameter servers must be 1 to 1024, colocated or colocated+K");
  }
  EXPECT_EQ(refusal({"--workers=99999999999"}), "--workers=99999999999: workers must be 1 to 1024");
  EXPECT_EQ(refusal({"--workers=1025"}), "--workers=1025: workers must be 1 to 1024");
  EXPECT_EQ(refusal({"--mode=ps", "--servers=1025"}),
            "--servers=1025: parameter servers must be 1 to 1024, colocated or colocated+K");
  EXPECT_EQ(refusal({"--mode=pss"}),
            "--mode=pss: mode must be local, allreduce, sharded, ps or hybrid; did you mean ps?");
  EXPECT_EQ(refusal({"--timeout=nan"}),
            "--timeout=nan: timeout must be 1 to 3600 (seconds, or with us, ms, s, min, h or d)");
  EXPECT_EQ(refusal({"--mode=ps", "--consistency=bounded:-1"}),
            "--consistency=bounded:-1: consistency must be " + ps::Consistency::forms());
  EXPECT_EQ(refusal({"--mode=ps", "--delay-compensation=much"}),
            "--delay-compensation=much: delay compensation must be LAMBDA or adaptive:LAMBDA with LAMBDA from 0 (none) "
            "to 1000");
  EXPECT_EQ(refusal({"--mode=ps", "--servers=2", "--sharding=even"}),
            "--sharding=even: sharding must be auto, balanced, tensor, hash, least-loaded or whole");
  EXPECT_EQ(refusal({"--mode=ps", "--chunk-bytes=1024"}),
            "--chunk-bytes=1024: chunk size must be 4096 to 1073741824 (bytes, or with B, kB, MB, GB, TB, KiB, MiB, "
            "GiB or TiB)");
  EXPECT_THAT(refusal({"--lr-schedule=stair"}), StartsWith("--lr-schedule=stair: "));
}

TEST(CommandLine, TakesAThousandAndTwentyFourWorkersAndServers) {
  const Result<CommandLine> line = parse({"--mode=ps", "--workers=1024", "--servers=1024", "--batch-size=8"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.workers, 1024);
  EXPECT_EQ(line->config.servers, 1024);
}

TEST(CommandLine, TracesTheUsualStepsUnlessOthersAreNamed) {
  EXPECT_FALSE(parse({})->config.trace);
  for (const std::vector<const char*>& flags :
       std::vector<std::vector<const char*>>{{"--trace"}, {"--trace", "--epochs=2"}, {"--trace=auto"}}) {
    const Result<CommandLine> line = parse(flags);
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_EQ(line->config.trace, TraceRange());
    EXPECT_EQ(line->given.at("trace"), "auto");
  }
  EXPECT_EQ(parse({"--trace=100:119"})->config.trace, (TraceRange{.count = 20, .first = 100}));
  EXPECT_EQ(refusal({"--trace=100:99"}), "--trace=100:99: steps must be " + TraceRange::forms());
  EXPECT_EQ(refusal({"--trace="}), "accepted");
  EXPECT_EQ(refusal({"--trace", "--trace"}), "--trace: given 2 times; once is enough");
}

TEST(CommandLine, EndsTrainingAtATargetOnlyOfOneRunThatHasOne) {
  EXPECT_EQ(refusal({"--stop-at-target"}),
            "--stop-at-target: has an effect only with --target-accuracy; leave it out or add that");
  EXPECT_EQ(refusal({"--stop-at-target", "--target-accuracy=0.9"}), "accepted");
  EXPECT_EQ(refusal({"compare", "--stop-at-target", "--target-accuracy=0.9"}),
            "--stop-at-target: the runs of a comparison train equally long; leave it out, or give it to one run");
  EXPECT_EQ(refusal({"--evaluate-every=often"}),
            std::string("--evaluate-every=often: interval must be ") + EvaluationInterval::forms());
}

TEST(CommandLine, RefusesASeedBehindWhichThereAreNotEnough) {
  EXPECT_EQ(refusal({"--seed=9223372036854775807", "--repeat=2"}),
            "--seed=9223372036854775807: --repeat=2 takes the seeds behind it, too, up to 9223372036854775807 at most; "
            "use --seed=9223372036854775806 or less");
  EXPECT_EQ(refusal({"--seed=9223372036854775806", "--repeat=2"}), "accepted");
  EXPECT_EQ(refusal({"--seed=9223372036854775807"}), "accepted");
}

TEST(CommandLine, SuggestsTheNearestNameForAnUnknownOne) {
  EXPECT_EQ(refusal({"--sevrers=2"}), "--sevrers: no such flag; did you mean --servers?");
  EXPECT_EQ(refusal({"--lr=0.1"}), "--lr: no such flag; did you mean --learning-rate?");
  EXPECT_EQ(refusal({"--num-workers=2"}), "--num-workers: no such flag; did you mean --workers?");
  EXPECT_EQ(refusal({"--batch=3"}), "--batch: no such flag; did you mean --batch-size?");
  EXPECT_EQ(refusal({"-v"}), "-v: no such flag; --help lists all");
  EXPECT_EQ(refusal({"--mode=PS"}),
            "--mode=PS: mode must be local, allreduce, sharded, ps or hybrid; did you mean ps?");
  EXPECT_EQ(refusal({"--learning_rate", "0.1"}), "--learning_rate: no such flag; did you mean --learning-rate?");
  EXPECT_EQ(refusal({"--gpus=2"}),
            "--gpus: an option of submit: put that command first; a run has none of that name, and trains on GPUs "
            "with --device=cuda, one of each worker");
  EXPECT_EQ(refusal({"--image", "x"}),
            "--image: an option of submit: put that command first; a run has none of that name");
  EXPECT_EQ(refusal({"--qqqqqq"}), "--qqqqqq: no such flag; --help lists all");
  EXPECT_EQ(refusal({"campare"}), "campare: no such command; did you mean compare?");
  EXPECT_EQ(refusal({"--modes=ps"}),
            "--modes: an option of compare or study: put that command first; a run has none of that name");
  EXPECT_EQ(refusal({"compare", "--predictions=x"}),
            "--predictions: an option of evaluate: put that command first; compare has none of that name");
  EXPECT_THAT(refusal({""}), StartsWith(": no such command; leave it out to run one job"));
  EXPECT_EQ(refusal({"profile", "extra"}), "profile: 'extra': it takes options alone; leave that out");
}

TEST(CommandLine, RefusesAFlagWithoutAValueOrGivenTwice) {
  EXPECT_EQ(refusal({"--servers"}), "--servers: needs a value, as in --servers=K");
  EXPECT_EQ(refusal({"--resume", "--dry-run"}),
            "--resume: needs a value, as in --resume=DIR (--dry-run is an option of its own)");
  EXPECT_EQ(refusal({"--config=", "--dry-run"}),
            "--config: needs a value, as in --config=FILE (--dry-run is an option of its own)");
  EXPECT_EQ(refusal({"compare", "--vary", "--dry-run"}),
            "--vary: needs a value, as in --vary=OPTION=LIST (--dry-run is an option of its own)");
  EXPECT_THAT(refusal({"--learning-rate", "-0.1"}), StartsWith("--learning-rate=-0.1: "));
  EXPECT_EQ(refusal({"--dry-run=no"}), "--dry-run=no: takes no value; give --dry-run, or leave it out");
  EXPECT_EQ(refusal({"--seed=1", "--seed=2"}), "--seed: given 2 times; once is enough");
}

TEST(CommandLine, DividesLabelsAmongWorkersWhereThereAreBoth) {
  EXPECT_EQ(refusal({"--mode=ps", "--shard=labels"}), "accepted");
  EXPECT_EQ(refusal({"--mode=allreduce", "--shard=labels", "--elastic"}), "accepted");
  EXPECT_EQ(refusal({"--mode=ps", "--shard=label"}),
            "--shard=label: shard must be random or labels; did you mean labels?");
  EXPECT_THAT(refusal({"--shard=labels"}),
              StartsWith("--shard=labels: has an effect only with --mode=allreduce, --mode=sharded, --mode=ps or"));
  EXPECT_THAT(refusal({"--mode=ps", "--model=gpt", "--dataset=grammar", "--shard=labels"}),
              HasSubstr("--dataset=digits, mnist, fashion-mnist, cifar10, patterns or your own"));
  // Nobody trains another's part, so that there is no queue to share, and every quota is a whole part.
  EXPECT_THAT(refusal({"--mode=ps", "--shard=labels", "--work=shared"}),
              StartsWith("--work=shared: has an effect only with --shard=random, --shuffle=global or off, and "));
}

TEST(CommandLine, RefusesCombinationsThatCannotWork) {
  EXPECT_EQ(refusal({"--servers=2"}),
            "--servers=2: has an effect only with --mode=ps or --mode=hybrid; leave it out or add that");
  EXPECT_THAT(refusal({"--mode=allreduce", "--consistency=sync"}), HasSubstr("only with --mode=ps"));
  EXPECT_EQ(refusal({"--mode=ps", "--sharding=tensor"}),
            "--sharding=tensor: has an effect only with --mode=ps and several shards (--servers, "
            "--shards-per-server); leave it out or add that");
  EXPECT_EQ(refusal({"--mode=ps", "--sharding=tensor", "--shards-per-server=2"}), "accepted");
  EXPECT_EQ(refusal({"--mode=ps", "--straggler=2:4x"}),
            "--straggler=2:4x: 2:4x names worker 2; there are workers 0 to 1");
  EXPECT_EQ(refusal({"--straggler=0:+500", "--timeout=1"}), "accepted");
  EXPECT_THAT(refusal({"--straggler=0:+501", "--timeout=1"}), HasSubstr("500 ms, half of --timeout, is the most"));
  EXPECT_THAT(refusal({"--straggler=0:fast"}), StartsWith("--straggler=0:fast: '0:fast' must be a rank or all"));
  EXPECT_THAT(refusal({"--straggler="}), StartsWith("--straggler: needs a value"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--chunk-bytes=65536"}), HasSubstr("only with --mode=ps"));
  EXPECT_THAT(refusal({"--mode=ps", "--collective=ring"}), HasSubstr("only with --mode=allreduce"));
  EXPECT_THAT(refusal({"--mode=ps", "--overlap=off"}), HasSubstr("only with --mode=allreduce"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--overlap=no"}), "--overlap=no: overlap must be on or off");
  EXPECT_THAT(refusal({"--transport=tcp"}),
              HasSubstr("only with --mode=ps or --mode=hybrid, or a --collective of our own"));
  EXPECT_THAT(refusal({"--mode=ps", "--connections=2"}), HasSubstr("only with --transport=ipc or --transport=tcp"));
  EXPECT_THAT(refusal({"--mode=ps", "--transport=sockets", "--connections=2"}),
              HasSubstr("only with --transport=ipc or --transport=tcp"));
  EXPECT_EQ(refusal({"--mode=ps", "--transport=tcp", "--connections=17"}),
            "--connections=17: connections must be 1 to 16");
  EXPECT_THAT(refusal({"--optimizer=sgd", "--beta1=0.8"}),
              HasSubstr("only with --optimizer=adam, adamw, adamax, radam or lamb"));
  EXPECT_THAT(refusal({"--workers=2"}), StartsWith("--workers=2: --mode=local trains in one process"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=mpi"}),
              StartsWith("--collective=mpi needs --launcher=mpirun: "));
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=nccl", "--device=cpu"}),
              StartsWith("--collective=nccl needs --device=cuda: "));
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=nccl:tree", "--device=cpu"}),
              StartsWith("--collective=nccl:tree needs --device=cuda: "));
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=nccl:mesh"}), HasSubstr("nccl, nccl:ring or nccl:tree"));
  EXPECT_THAT(refusal({"--precision=tf32"}), HasSubstr("only with --device=cuda"));
  EXPECT_EQ(refusal({"--share-gpu"}), "--share-gpu: has an effect only with --device=cuda; leave it out or add that");
  EXPECT_THAT(refusal({"--device=cuda", "--backend=reference"}), HasSubstr("only with --device=cpu"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--workers=3", "--global-batch-size=64"}),
            "--global-batch-size=64: must be a multiple of the 3 workers; 63 would be");
  EXPECT_EQ(refusal({"--batch-size=8", "--global-batch-size=8"}),
            "--batch-size=8: cannot stand beside --global-batch-size=8; give one of the two");
  EXPECT_THAT(refusal({"--epochs=1", "--steps=100"}), HasSubstr("cannot stand beside"));
  EXPECT_THAT(refusal({"--steps=10", "--warmup-steps=10"}), HasSubstr("must be 11 or more"));
  EXPECT_THAT(refusal({"--train-samples=10"}), HasSubstr("here 64 samples"));
}

TEST(Hosts, GiveAWorkerForEachSlotAndTcpBetweenThem) {
  const Result<CommandLine> line = parse({"--mode=ps", "--hosts=node1:2,localhost:1"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_TRUE(spans_hosts(line->config));
  const ResolvedRun config = resolved(line->config);
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.transport, TransportKind::kTcp);
  EXPECT_THAT(to_toml(config), HasSubstr("hosts = \"node1:2,localhost:1\""));
  EXPECT_EQ(from_toml_text(to_toml(config))->hosts, config.hosts);
}

TEST(Hosts, HaveSocketsBetweenThemForAllreduceUnlessAnotherWireIsAskedFor) {
  const auto transport_of = [](const std::vector<const char*>& more) {
    std::vector<const char*> flags{"--mode=allreduce", "--hosts=node1:2,node2:1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return resolved(parse(flags)->config, "").transport;
  };
  EXPECT_EQ(transport_of({}), TransportKind::kSockets);
  EXPECT_EQ(transport_of({"--transport=tcp"}), TransportKind::kTcp);
}

TEST(StallWarning, IsFiveSecondsOrAQuarterOfAShortTimeout) {
  const auto of = [](const std::vector<const char*>& words) {
    const Result<CommandLine> line = parse(words);
    return line.ok() ? resolved(line->config).stall_warning_seconds : -2;
  };
  EXPECT_EQ(of({"--mode=allreduce"}), 5);
  EXPECT_EQ(of({"--mode=allreduce", "--timeout=6"}), 1.5);
  EXPECT_EQ(of({"--mode=allreduce", "--stall-warning=0"}), 0);
  EXPECT_EQ(of({"--mode=allreduce", "--stall-warning=29.5"}), 29.5);
}

TEST(StallWarning, IsRefusedWhereItWouldHaveNoEffect) {
  EXPECT_EQ(refusal({"--mode=allreduce", "--timeout=8", "--stall-warning=8"}),
            "--stall-warning=8: must be less than --timeout=8, which ends the run");
  EXPECT_THAT(refusal({"--mode=ps", "--stall-warning=3"}), HasSubstr("has an effect only with --mode=allreduce"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--device=cuda", "--collective=nccl", "--stall-warning=3"}),
              HasSubstr("has an effect only with"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--stall-warning=-1"}),
            "--stall-warning=-1: stall warning must be 0 to 3600 (seconds, or with us, ms, s, min, h or d)");
}

TEST(Hosts, ThatAreThisOneAloneLeaveEverythingAsItIs) {
  const Result<CommandLine> line = parse({"--mode=ps", "--hosts=localhost:3"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_FALSE(spans_hosts(line->config));
  EXPECT_EQ(resolved(line->config).workers, 3);
  EXPECT_EQ(resolved(line->config).transport, TransportKind::kShm);
}

TEST(Hosts, AreReadFromAFileAndRecordedAsAList) {
  const std::string path = testing::TempDir() + "command_line_test.hosts";
  std::ofstream(path) << "node1 slots=2\nnode2\n";
  const std::string flag = "--hostfile=" + path;
  const Result<CommandLine> line = parse({"--mode=allreduce", flag.c_str()});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("hosts = \"node1:2,node2:1\""));
  EXPECT_THAT(refusal({"--mode=allreduce", flag.c_str(), "--hosts=a"}), HasSubstr("cannot stand beside"));
  std::remove(path.c_str());
  EXPECT_EQ(refusal({"--mode=allreduce", flag.c_str()}),
            flag + ": must be a file that can be read (" + path + ": cannot be read: No such file or directory)");
}

TEST(Hosts, AreRefusedWhereTheyCannotWork) {
  EXPECT_EQ(refusal({"--mode=ps", "--workers=5", "--hosts=a:2,b:2"}),
            "--workers=5: --hosts=a:2,b:2 has 4 slots; use --workers=4, or give hosts more slots");
  EXPECT_EQ(refusal({"--mode=ps", "--hosts=a:2,a:1"}),
            "--hosts=a:2,a:1: a stands there twice; give it once, with all its slots");
  for (const char* wire : {"--transport=shm", "--transport=ipc"}) {
    EXPECT_EQ(refusal({"--mode=ps", "--hosts=a:2", wire}),
              std::string(wire) + ": connects processes of one host, and --hosts=a:2 names others; use tcp or sockets");
  }
  EXPECT_THAT(refusal({"--hosts=a"}),
              HasSubstr("only with --mode=allreduce, --mode=sharded, --mode=ps or --mode=hybrid"));
  EXPECT_THAT(refusal({"--mode=ps", "--remote-shell=rsh"}), HasSubstr("only with --hosts that names another host"));
  EXPECT_THAT(refusal({"--mode=ps", "--hosts=localhost:2", "--listen-address=10.0.0.1"}),
              HasSubstr("only with --hosts that names another host"));
  EXPECT_EQ(refusal({"--mode=ps", "--hosts=a", "--remote-shell=ssh 'x"}),
            "--remote-shell=ssh 'x: remote shell must be words, quoted as for a shell");
}

TEST(CommandLine, RefusesWhatHasNoMeaningUnderAConsistency) {
  EXPECT_EQ(refusal({"--mode=ps", "--backup-workers=1"}),
            "--backup-workers=1: has an effect only with --consistency=sync; leave it out or add that");
  EXPECT_EQ(refusal({"--mode=ps", "--consistency=sync", "--workers=3", "--backup-workers=3"}),
            "--backup-workers=3: must be fewer than the 3 workers, of whom an update needs the others");
  EXPECT_EQ(refusal({"--mode=ps", "--consistency=softsync:3"}),
            "--consistency=softsync:3: n must be 1 to 2, the workers; with as many it is async");
  EXPECT_THAT(refusal({"--mode=ps", "--elastic-alpha=0.3"}), HasSubstr("only with --consistency=easgd"));
  for (const char* option : {"--staleness-lr=divide", "--delay-compensation=0.04", "--momentum-correction"}) {
    for (const char* consistency : {"--consistency=sync", "--consistency=local-sgd:2", "--consistency=easgd:2"}) {
      EXPECT_THAT(refusal({"--mode=ps", "--optimizer=momentum", consistency, option}),
                  HasSubstr("only with --consistency=bounded, "));
    }
  }
  EXPECT_THAT(refusal({"--mode=ps", "--momentum-correction"}), HasSubstr("and --optimizer=momentum or nesterov"));
}

TEST(CommandLine, RefusesWhatHasNoMeaningWhereWeightsAreAveraged) {
  for (const char* averaging : {"--sync-every=8", "--gossip", "--gossip=async"}) {
    EXPECT_EQ(refusal({"--mode=allreduce", averaging}), "accepted");
    EXPECT_THAT(refusal({"--mode=ps", averaging}), HasSubstr("only with --mode=allreduce"));
    for (const char* option : {"--bucket-bytes=4096", "--overlap=off"}) {
      EXPECT_THAT(refusal({"--mode=allreduce", averaging, option}),
                  HasSubstr(", and without --sync-every and --gossip"));
    }
    EXPECT_THAT(refusal({"--mode=allreduce", averaging, "--device=cuda", "--collective=nccl"}),
                StartsWith("--collective=nccl: sums gradients alone"));
    EXPECT_THAT(refusal({"compare", averaging}), HasSubstr("compare takes its modes from --modes"));
  }
  EXPECT_EQ(refusal({"--mode=allreduce", "--sync-every=1", "--overlap=off"}), "accepted");
  EXPECT_EQ(refusal({"--mode=allreduce", "--sync-every=8", "--sync-fragments=4", "--sync-overlap=1"}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", "--sync-every=8", "--sync-fragments=9"}),
              StartsWith("--sync-fragments=9: each meets in a step of its own; use at most 8"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--sync-every=8", "--sync-fragments=4", "--sync-overlap=2"}),
              StartsWith("--sync-overlap=2: a meeting must have ended when the next begins, which is 2 steps later"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--gossip", "--sync-overlap=1"}),
              HasSubstr("--sync-overlap=1: has an effect only with --mode=allreduce, with --sync-every and without"));
}

// It sends messages of its own, draws batches from one queue, and has no state of one moment.
TEST(CommandLine, TakesAsynchronousGossipAndRefusesWhatItCannotHave) {
  const std::vector<const char*> flags = {"--mode=allreduce", "--gossip=async"};
  const auto refused = [&](std::vector<const char*> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return refusal(more);
  };
  const ResolvedRun config = resolved(parse(flags)->config, "now");
  EXPECT_EQ(config.collective, CollectiveKind::kRing);
  EXPECT_EQ(config.output, "results/now-allreduce-ring-gossip-async-1");
  EXPECT_TRUE(averages_weights(config) && has_replicas_of_their_own(config) && shares_work(config));
  EXPECT_FALSE(may_report_stalls(config));
  EXPECT_THAT(to_toml(config), HasSubstr("gossip = \"async\""));
  EXPECT_EQ(from_toml_text(to_toml(config))->gossip, Gossip::kAsync);
  EXPECT_THAT(to_toml(presumed(parse({"--mode=allreduce", "--gossip"})->config)), HasSubstr("gossip = true"));
  EXPECT_EQ(from_toml_text("mode = \"allreduce\"\ngossip = true\n")->gossip, Gossip::kInStep);

  for (const char* accepted : {"--sync-every=8", "--work=quota", "--straggler=1:+20", "--transport=sockets",
                               "--collective=tree", "--shape=1gbit", "--launcher=mpirun"}) {
    EXPECT_EQ(refused({accepted}), "accepted") << accepted;
  }
  EXPECT_EQ(refused({"--collective=direct", "--transport=sockets"}), "accepted");
  EXPECT_THAT(refused({"--collective=direct"}), StartsWith("--collective=direct: --gossip=async sends messages"));
  EXPECT_THAT(refused({"--collective=mpi", "--launcher=mpirun"}), StartsWith("--collective=mpi: --gossip=async"));
  EXPECT_THAT(refused({"--collective=nccl", "--device=cuda"}), StartsWith("--collective=nccl: sums gradients alone"));
  for (const char* checkpoints : {"--checkpoint-every=5", "--resume=results/somewhere"}) {
    EXPECT_THAT(refused({checkpoints}),
                testing::AllOf(StartsWith(checkpoints), HasSubstr("under --gossip=async averages are")));
  }
  EXPECT_THAT(refused({"--elastic"}), HasSubstr("--elastic"));
  EXPECT_THAT(refused({"--stall-warning=2"}), HasSubstr("--stall-warning=2: has an effect only with"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--gossip=slow"}), "--gossip=slow: must be --gossip alone, or --gossip=async");
  EXPECT_THAT(refusal({"--mode=ps", "--gossip=async"}), StartsWith("--gossip=async: has an effect only with"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--gossip", "--work=quota"}), HasSubstr("or --gossip=async"));
}

TEST(CommandLine, CompressesGradientsWhereTheHostSumsThem) {
  const Result<CommandLine> line = parse({"--mode=allreduce", "--compress=topk:0.02"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.compress, (CodecConfig{.kind = CodecKind::kTopK, .ratio = 0.02}));
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("compress = \"topk:0.02\""));
  EXPECT_EQ(from_toml_text(to_toml(presumed(line->config)))->compress, line->config.compress);
  EXPECT_EQ(resolved(line->config, "now").output, "results/now-allreduce-direct-topk-0.02");
  EXPECT_EQ(refusal({"--mode=allreduce", "--compress=topk:0.02", "--sync-every=4"}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", "--compress=topk:0.02", "--sync-every=4", "--optimizer=momentum",
                       "--compress-momentum=correction"}),
              HasSubstr("--compress-momentum=correction: has an effect only with"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--compress=int4"}),
              StartsWith("--compress=int4: codec must be none, fp16"));
  for (std::vector<const char*> flags :
       std::vector<std::vector<const char*>>{{"--mode=local"},
                                             {"--mode=ps", "--consistency=easgd:4"},
                                             {"--mode=allreduce", "--gossip"},
                                             {"--mode=allreduce", "--gossip=async"},
                                             {"--mode=allreduce", "--device=cuda", "--collective=nccl"}}) {
    flags.push_back("--compress=int8");
    EXPECT_THAT(refusal(flags), HasSubstr("--compress=int8: has an effect only with --mode=allreduce"));
  }
}

TEST(CommandLine, CompressesWhatWorkersAndShardsSend) {
  const Result<CommandLine> line = parse({"--mode=ps", "--compress=int8", "--compress-answers=off", "--seed=9"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_TRUE(compression_of(presumed(line->config)).of_pushes());
  EXPECT_FALSE(compression_of(presumed(line->config)).of_answers());
  EXPECT_EQ(compression_of(presumed(line->config)).seed, 9u);
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("compress-answers = \"off\""));
  EXPECT_TRUE(compression_of(presumed(parse({"--mode=ps", "--compress=int8"})->config)).of_answers());
  EXPECT_THAT(refusal({"--mode=ps", "--compress-answers=off"}), HasSubstr("only with --mode=ps and --compress"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--compress=int8", "--compress-answers=off"}),
              HasSubstr("only with --mode=ps and --compress"));
  EXPECT_THAT(refusal({"--mode=ps", "--compress=powersgd:2"}), StartsWith("--compress=powersgd:2: works by sums"));
  EXPECT_THAT(refusal({"--mode=ps", "--compress=int8", "--delay-compensation=0.04"}),
              StartsWith("--delay-compensation=0.04: needs to know the weights that a worker has"));
  EXPECT_EQ(refusal({"--mode=ps", "--compress=int8", "--delay-compensation=0.04", "--compress-answers=off"}),
            "accepted");
}

TEST(CommandLine, RoundsInt8ByChanceWhereThatIsWanted) {
  const Result<CommandLine> line = parse({"--mode=ps", "--compress=int8", "--int8-rounding=stochastic"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(compression_of(presumed(line->config)).codec.rounding, Int8Rounding::kStochastic);
  EXPECT_EQ(from_toml_text(to_toml(presumed(line->config)))->int8_rounding, Int8Rounding::kStochastic);
  EXPECT_EQ(codec_of(presumed(parse({"--mode=allreduce", "--compress=int8"})->config)).rounding,
            Int8Rounding::kNearest);
  EXPECT_THAT(refusal({"--mode=ps", "--compress=int8", "--int8-rounding=up"}),
              StartsWith("--int8-rounding=up: rounding must be nearest or stochastic"));
  EXPECT_THAT(refusal({"--mode=ps", "--compress=sign", "--int8-rounding=stochastic"}),
              HasSubstr("only with --compress=int8"));
}

TEST(CommandLine, KeepsVelocitiesWithWorkersWhereMomentumIsCorrected) {
  const std::vector<const char*> usual = {
      "--mode=ps",      "--consistency=sync", "--compress=topk:0.001", "--compress-warmup=4",
      "--momentum=0.8", "--epochs=9",         "--optimizer=nesterov",  "--compress-momentum=masking"};
  const Result<CommandLine> line = parse(usual);
  ASSERT_TRUE(line.ok()) << line.status().message();
  const CodecConfig codec = compression_of(presumed(line->config)).codec;
  EXPECT_EQ(codec.warmup_epochs, 4);
  EXPECT_EQ(codec.momentum, (LocalMomentum{.how = CompressMomentum::kMasking, .momentum = 0.8f, .nesterov = true}));
  EXPECT_EQ(optimizer_of(presumed(line->config)).kind, OptimizerKind::kSgd) << "of what arrives";
  EXPECT_EQ(codec_of(*from_toml_text(to_toml(presumed(line->config)))), codec);
  // With other values of some flags, or more flags.
  const auto with = [&](std::vector<const char*> flags) {
    const auto name_of_flag = [](std::string_view flag) { return flag.substr(0, flag.find('=')); };
    const std::vector<const char*> given = flags;
    std::ranges::copy_if(usual, std::back_inserter(flags), [&](const char* flag) {
      return std::ranges::find(given, name_of_flag(flag), name_of_flag) == given.end();
    });
    return refusal(flags);
  };
  EXPECT_THAT(with({"--compress-warmup=9"}), StartsWith("--compress-warmup=9: must be fewer than the 9 epochs"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--compress=topk:0.1", "--compress-warmup=9", "--steps=100"}), "accepted");
  EXPECT_THAT(with({"--weight-decay=0.001"}), StartsWith("--compress-momentum=masking: the velocity is the workers'"));
  EXPECT_THAT(with({"--optimizer=adam", "--momentum=0.9"}), HasSubstr("has an effect only with"));
  EXPECT_THAT(with({"--compress=sign"}), HasSubstr("has an effect only with --compress=topk:R"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--compress=topk:0.1", "--optimizer=sgd", "--compress-momentum=correction"}),
              HasSubstr("only with --compress=topk:R and --optimizer=momentum or nesterov"));
}

TEST(CommandLine, GoesOnByOneBitAdamWhereTheVarianceIsFrozenUnderACodec) {
  for (const char* codec : {"--compress=sign", "--compress=int8", "--compress=topk:0.1", "--compress=powersgd:2"}) {
    const Result<CommandLine> line =
        parse({"--mode=allreduce", codec, "--optimizer=adamw", "--adam-freeze-variance=20"});
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_TRUE(is_one_bit_adam(presumed(line->config)));
    EXPECT_EQ(codec_of(presumed(line->config)).whole_updates, 20);
    EXPECT_EQ(optimizer_of(presumed(line->config)).frozen_after, 20);
    EXPECT_TRUE(optimizer_of(presumed(line->config)).takes_momentum);
    EXPECT_EQ(codec_of(*from_toml_text(to_toml(presumed(line->config)))), codec_of(presumed(line->config)));
  }
  for (const std::vector<const char*>& flags :
       std::vector<std::vector<const char*>>{{"--mode=allreduce", "--optimizer=adam", "--adam-freeze-variance=20"},
                                             {"--mode=ps", "--optimizer=adam", "--adam-freeze-variance=20"},
                                             {"--mode=local", "--optimizer=adam", "--adam-freeze-variance=20"},
                                             {"--mode=allreduce", "--optimizer=adam", "--compress=sign"}}) {
    const Result<CommandLine> line = parse(flags);
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_FALSE(is_one_bit_adam(presumed(line->config)));
    EXPECT_FALSE(optimizer_of(presumed(line->config)).takes_momentum);
    EXPECT_EQ(codec_of(presumed(line->config)).whole_updates, 0);
  }
}

TEST(CommandLine, RefusesOneBitAdamWhereItCannotBe) {
  const auto with = [](std::vector<const char*> flags) {
    flags.insert(flags.end(), {"--compress=int8", "--optimizer=adam", "--adam-freeze-variance=200"});
    return refusal(flags);
  };
  for (const char* consistency : {"--consistency=sync", "--consistency=async", "--consistency=bounded:2"}) {
    EXPECT_EQ(with({"--mode=ps", consistency}),
              "--adam-freeze-variance=200: with --compress=int8 workers send momentum, which goes on from that of all "
              "(1-bit Adam); parameter servers answer with weights, which do not tell it; use --mode=allreduce, or "
              "leave one of the two out");
  }
  EXPECT_EQ(with({"--mode=allreduce", "--model=ncf", "--dataset=ratings"}),
            "--adam-freeze-variance=200: with --compress=int8 a row of a table that is first touched later would have "
            "no variance (1-bit Adam); use --embeddings=dense, or leave one of the two out");
  EXPECT_EQ(with({"--mode=allreduce", "--model=ncf", "--dataset=ratings", "--embeddings=dense"}), "accepted");
  EXPECT_EQ(with({"--mode=allreduce", "--steps=200"}),
            "--adam-freeze-variance=200: must be fewer than --steps=200, or --compress=int8 never begins (1-bit Adam); "
            "a sixth of all steps is usual");
  EXPECT_EQ(with({"--mode=allreduce", "--steps=201"}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", "--optimizer=sgd", "--compress=int8", "--adam-freeze-variance=200"}),
              HasSubstr("only with --optimizer=adam or adamw"));
}

TEST(CommandLine, CompressesGradientsOfGpusInTheMemoryOfTheHost) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  config.device = DeviceKind::kCuda;
  config.compress = *parse_codec("int8");
  EXPECT_EQ(resolved(config).collective, CollectiveKind::kDirect);
  EXPECT_TRUE(is_staged(resolved(config)));
}

TEST(CommandLine, SearchesForABucketSizeWhereTheHostSends) {
  const Result<CommandLine> line = parse({"--mode=allreduce", "--bucket-bytes=auto"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.bucket_bytes, std::nullopt);
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("bucket-bytes = \"auto\""));
  EXPECT_EQ(from_toml_text(to_toml(presumed(line->config)))->bucket_bytes, std::nullopt);
  EXPECT_EQ(refusal({"--mode=allreduce", "--bucket-bytes=0"}),
            "--bucket-bytes=0: bucket size must be 1024 to 1073741824, or auto (bytes, or with B, kB, MB, GB, TB, KiB, "
            "MiB, GiB or TiB)");
  EXPECT_EQ(refusal({"--mode=allreduce", "--bucket-bytes=auto", "--device=cuda", "--collective=ring"}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", "--bucket-bytes=auto", "--device=cuda"}),
              StartsWith("--bucket-bytes=auto: searches among buckets that the host sends"));
}

TEST(CommandLine, AveragesWeightsOfGpusInTheMemoryOfTheHost) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  config.device = DeviceKind::kCuda;
  config.gossip = Gossip::kInStep;
  EXPECT_EQ(resolved(config).collective, CollectiveKind::kDirect);
  EXPECT_TRUE(is_staged(resolved(config)));
  EXPECT_EQ(resolved(config, "now").output, "results/now-allreduce-direct-gossip-1");
}

TEST(CommandLine, RefusesToRunAheadOrToReorderWhereThatCannotBeRight) {
  const auto refuses = [&](std::vector<const char*> flags) { return !refusal(flags).empty(); };
  EXPECT_TRUE(refuses({"--mode=ps", "--consistency=sync", "--pipeline-depth=1"}));
  EXPECT_TRUE(refuses({"--mode=ps", "--delay-compensation=0.04", "--pipeline-depth=1"}));
  EXPECT_TRUE(refuses({"--mode=ps", "--pipeline-depth=1", "--overlap-forward"}));
  EXPECT_TRUE(refuses({"--mode=ps", "--consistency=easgd:4", "--overlap-forward"}));
  EXPECT_TRUE(refuses({"--mode=ps", "--push-order=priority"}));
  EXPECT_TRUE(refuses({"--mode=ps", "--consistency=sync", "--overlap-forward", "--push-order=priority"}));
  EXPECT_TRUE(parse({"--mode=ps", "--pipeline-depth=1"}).ok());
  EXPECT_TRUE(parse({"--mode=ps", "--consistency=sync", "--overlap-forward"}).ok());
  EXPECT_TRUE(parse({"--mode=ps", "--overlap-forward", "--push-order=priority"}).ok());
}

TEST(CommandLine, TakesWhatHelpsAgainstStaleness) {
  const Result<CommandLine> line =
      parse({"--mode=ps", "--workers=4", "--consistency=softsync:2", "--optimizer=momentum", "--staleness-lr=divide",
             "--delay-compensation=adaptive:2", "--momentum-correction"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const ps::StalenessOptions staleness = staleness_of(presumed(line->config));
  EXPECT_TRUE(staleness.divide_rate);
  EXPECT_EQ(staleness.compensation, (ps::DelayCompensation{.lambda = 2, .adaptive = true}));
  EXPECT_TRUE(staleness.correct_momentum);
}

TEST(CommandLine, ShapesTheLinksOfOneHost) {
  const Result<CommandLine> line = parse({"--mode=ps", "--shape=100mbit+5ms"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.shape, *LinkShape::parse("100mbit+5ms"));
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("shape = \"100mbit+5ms\""));
  EXPECT_EQ(from_toml_text(to_toml(presumed(line->config)))->shape, line->config.shape);
  EXPECT_EQ(refusal({"--mode=ps", "--shape=fast"}), std::string("--shape=fast: link must be ") + LinkShape::forms());
  EXPECT_THAT(refusal({"--shape=1gbit"}),
              HasSubstr("only with --mode=allreduce, --mode=sharded, --mode=ps or --mode=hybrid"));
  EXPECT_THAT(refusal({"--mode=ps", "--shape=1gbit", "--hosts=a:1,b:1"}),
              StartsWith("--shape=1gbit: emulates a network on one host, and --hosts=a:1,b:1 names others"));
  EXPECT_EQ(refusal({"--mode=ps", "--shape=1gbit", "--hosts=localhost:2"}), "accepted");
}

TEST(CommandLine, ShapesOnlyWhatGoesOverATransport) {
  const auto refuses = [](const char* flag, const char* reason, const char* another = "--workers=2") {
    EXPECT_THAT(refusal({"--mode=allreduce", "--shape=1gbit", flag, another}), HasSubstr(reason)) << flag;
  };
  refuses("--collective=mpi", "--shape=1gbit: --collective=mpi has wires of its own", "--launcher=mpirun");
  refuses("--collective=nccl", "--shape=1gbit: --collective=nccl has wires of its own", "--device=cuda");
  refuses("--collective=direct", "--shape=1gbit: --collective=direct sends nothing in shared memory");
  EXPECT_EQ(refusal({"--mode=allreduce", "--shape=1gbit", "--collective=direct", "--transport=sockets"}), "accepted");
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    RunRequest config;
    config.mode = Mode::kAllreduce;
    config.device = device;
    config.shape = *LinkShape::parse("1gbit");
    EXPECT_TRUE(check(config).ok());
    EXPECT_EQ(resolved(config).collective, CollectiveKind::kBySize) << "chosen by the shaped link's speed";
    EXPECT_EQ(resolved(config).transport, TransportKind::kShm);
  }
}

TEST(CommandLine, TakesATopicOfTheHelp) {
  const auto topic_of = [](const std::vector<const char*>& words) {
    const Result<CommandLine> line = parse(words);
    if (!line.ok()) return line.status().message();
    return line->action == CommandLine::Action::kHelp ? "help: " + line->topic : std::string("no help");
  };
  EXPECT_EQ(topic_of({"--help"}), "help: ");
  EXPECT_EQ(topic_of({"-h"}), "help: ");
  EXPECT_EQ(topic_of({"--help=ps"}), "help: ps");
  EXPECT_EQ(topic_of({"--mode=ps", "--help"}), "help: ");
  EXPECT_EQ(topic_of({"compare", "--help"}), "help: compare");
  EXPECT_EQ(topic_of({"--help", "compare"}), "help: compare");
  for (const char* command : {"advise", "predict", "reproduce", "why", "profile", "stop"}) {
    EXPECT_EQ(topic_of({fmt::format("--help={}", command).c_str()}), fmt::format("help: {}", command));
  }
  EXPECT_EQ(topic_of({"advise", "--help"}), "help: advise");
  EXPECT_EQ(topic_of({"--help=stragler"}), "--help=stragler: no such topic or option; did you mean straggler?");
}

TEST(CommandLine, TellsTheVersion) { EXPECT_EQ(parse({"--version"})->action, CommandLine::Action::kVersion); }

TEST(CommandLine, ReadsAConfigFileBelowItsFlags) {
  const std::string path = testing::TempDir() + "command_line_test.toml";
  std::ofstream(path) << "mode = \"ps\"\nservers = 3 # three\nepochs = 2\n";
  const std::string flag = "--config=" + path;
  const Result<CommandLine> line = parse({"--steps=50", flag.c_str(), "--servers=5"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.mode, Mode::kPs);
  EXPECT_EQ(line->config.servers, 5);
  EXPECT_EQ(line->config.steps, 50);
  std::ofstream(path) << "sevrers = 3\n";
  EXPECT_EQ(refusal({flag.c_str()}), path + ": sevrers: no such option; did you mean servers?");
  std::ofstream(path) << "servers = 0\n";
  EXPECT_EQ(refusal({flag.c_str()}),
            path + ": --servers=0: parameter servers must be 1 to 1024, colocated or colocated+K");
  std::remove(path.c_str());
  EXPECT_THAT(refusal({flag.c_str()}),
              testing::ContainsRegex("must be a file that can be read.*No such file or directory"));
}

TEST(Compare, TakesTheSameFlagsBeforeAndBehindTheCommand) {
  const Result<CommandLine> line = parse({"--workers=4", "compare", "--servers=2", "--batch-size=32"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, CommandLine::Action::kCompare);
  ASSERT_EQ(line->runs.size(), 4u);
  EXPECT_EQ(line->runs[0].label, "local");
  EXPECT_EQ(resolved(line->runs[0].config).batch_size, 128) << "the batch of all workers together";
  EXPECT_EQ(line->runs[0].config.workers, 1);
  EXPECT_EQ(line->runs[1].config.mode, Mode::kAllreduce);
  EXPECT_EQ(line->runs[1].config.batch_size, 32);
  EXPECT_EQ(line->runs[3].label, "ps:async");
  EXPECT_EQ(line->runs[3].config.servers, 2);
}

TEST(Compare, LeavesLocalAtItsOwnPace) {
  const Result<CommandLine> line = parse({"compare", "--modes=local,ps:async", "--straggler=1:4x"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_TRUE(line->runs[0].config.stragglers.empty());
  EXPECT_EQ(line->runs[1].config.stragglers.to_string(), "1:4x");
  EXPECT_THAT(refusal({"compare", "--modes=local", "--straggler=1:4x"}), HasSubstr("has no effect on local"));
}

TEST(Compare, StartsOpenMpiForItsOwnCollective) {
  const Result<CommandLine> line = parse({"compare", "--modes=allreduce:mpi,ps:bounded:4"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->runs[0].config.launcher, LauncherKind::kMpirun);
  EXPECT_EQ(line->runs[1].config.consistency.to_string(), "bounded:4");
  EXPECT_EQ(line->runs[1].config.launcher, LauncherKind::kLocal);
}

TEST(Compare, TakesTheWaysToAverageWeights) {
  const Result<CommandLine> line =
      parse({"compare",
             "--modes=allreduce,allreduce:sync-every:8,allreduce:gossip,allreduce:gossip:4,"
             "allreduce:gossip-async,allreduce:gossip-async:4"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const auto config = [&](std::size_t at) { return line->runs[at].config; };
  EXPECT_FALSE(averages_weights(config(0)));
  EXPECT_EQ(config(1).sync_every, 8);
  EXPECT_EQ(config(1).gossip, Gossip::kOff);
  EXPECT_EQ(config(2).sync_every, 1);
  EXPECT_EQ(config(2).gossip, Gossip::kInStep);
  EXPECT_EQ(config(3).sync_every, 4);
  EXPECT_EQ(config(4).sync_every, 1);
  EXPECT_EQ(config(4).gossip, Gossip::kAsync);
  EXPECT_EQ(config(5).sync_every, 4);
  EXPECT_EQ(config(5).gossip, Gossip::kAsync);
  EXPECT_EQ(config(3).gossip, Gossip::kInStep);
  for (const char* modes :
       {"--modes=allreduce:sync-every:1", "--modes=allreduce:sync-every:", "--modes=allreduce:gossip:0",
        "--modes=allreduce:gossip:2x", "--modes=allreduce:gossip-async:0", "--modes=allreduce:gossip-asynch",
        "--modes=allreduce:sync-every:99999999"}) {
    EXPECT_THAT(refusal({"compare", modes}), HasSubstr("must be all, local, allreduce, ")) << modes;
  }
}

TEST(Compare, RefusesWhatNoModeOfTheListCanUse) {
  EXPECT_THAT(refusal({"compare", "--modes=local,allreduce", "--servers=2"}), HasSubstr("only with --mode=ps"));
  EXPECT_THAT(refusal({"compare", "--mode=ps"}), StartsWith("--mode=ps: compare takes its modes from --modes"));
  EXPECT_THAT(refusal({"compare", "--modes=ps"}), StartsWith("--modes: 'ps' must be all, local, allreduce"));
  EXPECT_THAT(refusal({"compare", "--modes=ps"}), HasSubstr("did you mean ps:async?"));
  EXPECT_THAT(refusal({"compare", "--modes=ps:boundd:4"}), HasSubstr("did you mean ps:bounded:k?"));
  EXPECT_THAT(refusal({"compare", "--modes=allreduce:rnig"}), HasSubstr("did you mean allreduce:ring?"));
  EXPECT_THAT(refusal({"compare", "--modes=ps:asink"}), HasSubstr("did you mean ps:async?"));
  EXPECT_THAT(refusal({"compare", "--modes="}), StartsWith("--modes"));
  EXPECT_THAT(refusal({"compare", "--modes=local,local"}), HasSubstr("names local twice"));
  EXPECT_THAT(refusal({"compare", "--lr-schedule=linear"}), HasSubstr("leave linear out, or local out of --modes"));
  EXPECT_THAT(refusal({"--modes=local"}), StartsWith("--modes"));
}

}  // namespace
}  // namespace syncopate::experiments
