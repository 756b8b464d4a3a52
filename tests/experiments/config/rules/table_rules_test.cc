#include "experiments/config/rules/table_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/command_line.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_with_tables(std::vector<const char*> flags) {
  for (const char* flag : {"--model=ncf", "--dataset=zipf-ratings", "--workers=4"}) flags.push_back(flag);
  const std::string message = refusal(flags);
  flags.push_back("--embeddings=dense");
  EXPECT_EQ(refusal(flags), "accepted") << "dense is the way out";
  return message;
}

TEST(TableRules, RefuseWhatServersCannotDoWithTables) {
  for (const char* consistency : {"softsync:2", "easgd:4", "local-sgd:4"}) {
    const std::string flag = std::string("--consistency=") + consistency;
    EXPECT_THAT(refusal_with_tables({"--mode=ps", flag.c_str()}),
                AllOf(HasSubstr(flag + ": servers update"), HasSubstr("use sync, bounded:k"),
                      HasSubstr("or --embeddings=dense")));
  }
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--consistency=sync", "--backup-workers=1"}),
              AllOf(HasSubstr("--backup-workers=1: "), HasSubstr("leave it out, or use --embeddings=dense")));
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--staleness-lr=divide"}), HasSubstr("--staleness-lr=divide: "));
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--delay-compensation=0.04"}),
              HasSubstr("--delay-compensation=0.04: "));
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--optimizer=momentum", "--momentum-correction"}),
              HasSubstr("--momentum-correction: "));
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--pipeline-depth=2"}), HasSubstr("--pipeline-depth=2: "));
  EXPECT_THAT(refusal_with_tables({"--mode=ps", "--overlap-forward", "--push-order=priority"}),
              HasSubstr("--push-order=priority: "));
}

TEST(TableRules, RefuseAveragingOfWeightsWithTables) {
  EXPECT_THAT(refusal_with_tables({"--mode=allreduce", "--sync-every=4"}),
              HasSubstr("--sync-every=4: weights are averaged"));
  for (const char* gossip : {"--gossip", "--gossip=async"}) {
    EXPECT_THAT(refusal_with_tables({"--mode=allreduce", gossip}), HasSubstr("--gossip: weights are averaged"));
  }
}

TEST(TableRules, RefuseServersOfTablesWhereThereAreNone) {
  for (const std::vector<const char*>& model :
       {std::vector{"--model=mlp"}, {"--model=ncf", "--dataset=ratings", "--embeddings=dense"}}) {
    std::vector<const char*> flags = model;
    flags.push_back("--mode=hybrid");
    EXPECT_THAT(refusal(flags), AllOf(HasSubstr("--mode=hybrid: its servers keep row-sparse tables, and "),
                                      HasSubstr("use --mode=allreduce, or --model=ncf or wide-deep")));
  }
}

TEST(TableRules, RefuseWhatServersOfTablesBesideSumsCannotDo) {
  const auto refused = [](const std::string& flag) {
    return refusal({"--mode=hybrid", "--model=ncf", "--dataset=zipf-ratings", flag.c_str()});
  };
  EXPECT_EQ(refused("--servers=2"), "accepted");
  EXPECT_EQ(refused("--collective=ring"), "accepted");
  for (const char* flag : {"--consistency=sync", "--consistency=async", "--sharding=tensor", "--replicas=1",
                           "--respawn=1", "--elastic", "--compress=int8", "--aggregation=host", "--overlap-forward",
                           "--sync-every=4", "--gossip", "--stage=2", "--sparse-exchange=rows"}) {
    EXPECT_THAT(refused(flag), AllOf(testing::StartsWith(flag), HasSubstr("has an effect only with "))) << flag;
  }
  for (const char* flag : {"--launcher=mpirun", "--collective=mpi"}) {
    EXPECT_THAT(refused(flag), HasSubstr("--mode=hybrid: has servers beside the workers that sum")) << flag;
  }
  EXPECT_EQ(refused("--exchange=auto"), "accepted");
  EXPECT_THAT(refused("--on-nan=skip"), HasSubstr("--on-nan=skip: rows of tables"));
  EXPECT_THAT(refused("--optimizer=lamb"), HasSubstr("--optimizer=lamb: needs the norm of a whole table"));
}

TEST(TableRules, ChooseExchangesByALinkThatIsKnown) {
  const auto refused = [](std::vector<const char*> flags) {
    for (const char* flag : {"--mode=hybrid", "--model=ncf", "--dataset=zipf-ratings", "--exchange=auto"}) {
      flags.push_back(flag);
    }
    return refusal(flags);
  };
  EXPECT_EQ(refused({"--transport=sockets"}), "accepted") << "--collective=auto measures it";
  EXPECT_EQ(refused({"--transport=sockets", "--collective=ring", "--shape=1gbit"}), "accepted");
  EXPECT_THAT(refused({"--transport=sockets", "--collective=ring"}),
              testing::StartsWith("--exchange=auto: needs the wire's speed, which --collective=ring does not measure"));
  EXPECT_THAT(refused({"--transport=sockets", "--collective=direct"}), testing::StartsWith("--exchange=auto: needs"));
  EXPECT_EQ(refused({"--checkpoint-every=20"}), "accepted");
}

TEST(TableRules, AcceptTheOtherModes) {
  for (const char* consistency : {"--consistency=sync", "--consistency=bounded:2", "--consistency=async"}) {
    EXPECT_EQ(refusal({"--model=ncf", "--dataset=zipf-ratings", "--mode=ps", consistency}), "accepted");
  }
  EXPECT_EQ(refusal({"--model=wide-deep:8", "--dataset=zipf-clicks", "--mode=allreduce"}), "accepted");
  EXPECT_EQ(refusal({"--model=wide-deep:8", "--dataset=clicks", "--table-rows=1000"}), "accepted");
}

TEST(TableRules, KeepRecommendersOnTheProcessor) {
  for (const char* embeddings : {"--embeddings=sparse", "--embeddings=dense"}) {
    EXPECT_THAT(refusal({"--model=ncf", "--dataset=ratings", "--device=cuda", embeddings}),
                AllOf(HasSubstr("--device=cuda: ncf looks its rows up"), HasSubstr("use --device=cpu")));
  }
}

TEST(TableRules, RefuseOptionsThatWouldHaveNoEffect) {
  EXPECT_THAT(refusal({"--embeddings=dense"}), HasSubstr("--model=ncf or wide-deep"));
  EXPECT_THAT(refusal({"--table-rows=10"}), HasSubstr("--dataset=clicks, zipf-ratings or zipf-clicks"));
  EXPECT_THAT(refusal({"--model=ncf", "--dataset=ratings", "--table-rows=10"}), HasSubstr("--dataset=clicks"));
  EXPECT_THAT(refusal({"--model=ncf:8:dense", "--dataset=ratings"}), HasSubstr("use --embeddings=dense"));
}

TEST(TableRules, NameModelAndDataAsTheWorkerReadsThem) {
  const auto config = [](std::vector<const char*> flags) { return parse(std::move(flags))->config; };
  EXPECT_EQ(model_spec(config({"--model=ncf:8", "--dataset=ratings"})), "ncf:8");
  EXPECT_EQ(model_spec(config({"--model=ncf:8", "--dataset=ratings", "--embeddings=dense"})), "ncf:8:dense");
  EXPECT_EQ(model_spec(config({})), "mlp");
  EXPECT_EQ(dataset_spec(config({"--model=ncf", "--dataset=ratings"})), "ratings");
  EXPECT_EQ(dataset_spec(config({"--model=wide-deep", "--dataset=clicks", "--table-rows=77"})), "clicks:77");
  EXPECT_EQ(dataset_spec(config({"--model=ncf", "--dataset=zipf-ratings", "--table-rows=77", "--train-samples=500",
                                 "--test-samples=60"})),
            "zipf-ratings:500-60-77");
}

}  // namespace
}  // namespace syncopate::experiments
