#include "experiments/config/options/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/text/list_text.h"
#include "experiments/config/help_text.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/resolution.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using Flags = std::vector<std::string>;  // "mode=ps", without dashes

ResolvedRun run_of(const Flags& flags) {
  GivenOptions given;
  for (const std::string& flag : flags) given[flag.substr(0, flag.find('='))] = flag.substr(flag.find('=') + 1);
  const Result<RunRequest> request = apply_options(given);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return presumed(*request);
}

// What the words promise: flags with which the condition holds, and flags with which it does not.
struct Promise {
  std::vector<Flags> holds;
  std::vector<Flags> fails;
};

using Kind = ps::ConsistencyTraits;

// The kinds of consistency are named by their table, so that a new one has its place in the words at once.
std::string among(ps::ConsistencyTest test) { return "--consistency=" + list_text(ps::consistency_names(test), "or"); }
const std::string kStale = among([](const Kind& kind) { return kind.applies_stale_gradients(); });

// For all conditions, by their words.
const std::map<std::string, Promise> kPromises = {
    {"--mode=allreduce, --mode=sharded, --mode=ps or --mode=hybrid",
     {{{"mode=ps"}, {"mode=allreduce"}, {"mode=hybrid"}}, {{}}}},
    {"--mode=ps or --mode=hybrid, or a --collective of our own",
     {{{"mode=ps"}, {"mode=hybrid"}, {"mode=allreduce"}, {"mode=allreduce", "collective=ring"}},
      {{}, {"mode=allreduce", "collective=mpi"}, {"mode=allreduce", "collective=nccl"}}}},
    {"--mode=allreduce, and without --sync-every and --gossip, or --mode=ps",
     {{{"mode=allreduce"}, {"mode=ps"}}, {{}, {"mode=allreduce", "sync-every=4"}, {"mode=sharded"}, {"mode=hybrid"}}}},
    {"--transport=ipc or --transport=tcp",
     {{{"mode=ps", "transport=ipc"}, {"mode=allreduce", "transport=tcp"}},
      {{"mode=ps"}, {"mode=ps", "transport=shm"}, {"mode=allreduce", "transport=sockets"}}}},
    {"--device=cpu", {{{}, {"device=cpu"}}, {{"device=cuda"}}}},
    {"--device=cuda", {{{"device=cuda"}}, {{}, {"device=cpu"}}}},
    {"--device=cuda under local or --collective=nccl",
     {{{"device=cuda"}, {"mode=allreduce", "device=cuda", "collective=nccl"}},
      {{}, {"mode=ps", "device=cuda"}, {"mode=allreduce", "device=cuda", "collective=ring"}}}},
    {"--cluster=simulated",
     {{{"cluster=simulated"}, {"mode=ps", "cluster=simulated"}}, {{}, {"mode=ps"}, {"mode=ps", "cluster=real"}}}},
    {"--cluster=real or namespaces, which have processes",
     {{{}, {"mode=ps", "cluster=namespaces"}}, {{"cluster=simulated"}}}},
    {"--launcher=mpirun", {{{"mode=allreduce", "launcher=mpirun"}}, {{"mode=allreduce"}}}},
    {"--mode=allreduce and --collective=nccl",
     {{{"mode=allreduce", "collective=nccl"}}, {{"mode=allreduce"}, {"mode=ps"}}}},
    {"--cluster=simulated or namespaces",
     {{{"cluster=simulated"}, {"mode=ps", "cluster=namespaces"}}, {{}, {"mode=ps", "cluster=real"}}}},
    {"--cluster=real, whose time is not virtual", {{{}, {"mode=ps", "cluster=real"}}, {{"cluster=simulated"}}}},
    {"--cluster=simulated, and --hosts or --servers=colocated",
     {{{"mode=ps", "cluster=simulated", "hosts=4x2"},
       {"mode=allreduce", "cluster=simulated", "hosts=a:2,b:2"},
       {"mode=ps", "cluster=simulated", "servers=colocated"}},
      {{"mode=ps", "cluster=simulated"},
       {"mode=ps", "hosts=a:2"},
       {"mode=ps", "servers=colocated"},
       {"mode=allreduce", "cluster=simulated", "servers=colocated"},
       {"cluster=simulated", "hosts=4x2"}}}},
    {"a --model that learns, not profile:NAME",
     {{{}, {"model=lenet"}}, {{"model=profile:resnet50", "cluster=simulated", "compute=100ms"}}}},
    {"--hosts that names another host",
     {{{"mode=ps", "hosts=node1:2"}}, {{"mode=ps"}, {"mode=ps", "hosts=localhost:2"}, {"hosts=node1:2"}}}},
    {"--mode=allreduce, without --gossip and with another collective than nccl, which is never that of --sync-every, "
     "or with --mode=ps and "
     "a consistency other than local-sgd and easgd",
     {{{"mode=allreduce"},
       {"mode=allreduce", "collective=ring"},
       {"mode=allreduce", "sync-every=2"},
       {"mode=ps"},
       {"mode=ps", "consistency=sync"}},
      {{},
       {"mode=allreduce", "gossip=true"},
       {"mode=allreduce", "collective=nccl"},
       {"mode=hybrid"},
       {"mode=ps", "consistency=local-sgd:4"},
       {"mode=ps", "consistency=easgd:4"}}}},
    {"--compress=int8", {{{"mode=ps", "compress=int8"}}, {{"mode=ps"}, {"mode=ps", "compress=fp16"}}}},
    {"--compress=topk:R", {{{"mode=ps", "compress=topk:0.1"}}, {{"mode=ps"}, {"mode=ps", "compress=int8"}}}},
    {"--compress=topk:R or topk2bit:R",
     {{{"mode=ps", "compress=topk:0.1"}, {"mode=allreduce", "compress=topk2bit:0.1"}},
      {{"mode=ps"}, {"mode=ps", "compress=int8"}}}},
    {"--compress=topk:R and --optimizer=momentum or nesterov",
     {{{"mode=ps", "compress=topk:0.1", "optimizer=momentum"}, {"mode=ps", "compress=topk:0.1", "optimizer=nesterov"}},
      {{"mode=ps", "compress=topk:0.1"}, {"mode=ps", "compress=int8", "optimizer=momentum"}}}},
    {"--mode=ps and --compress", {{{"mode=ps", "compress=int8"}}, {{"mode=ps"}, {"mode=allreduce", "compress=int8"}}}},
    {"--mode=ps", {{{"mode=ps"}}, {{}, {"mode=allreduce"}, {"mode=hybrid"}}}},
    {"--mode=ps or --mode=hybrid", {{{"mode=ps"}, {"mode=hybrid"}}, {{}, {"mode=allreduce"}}}},
    {"--shard=random, --shuffle=global or off, and " + among([](const Kind& kind) { return kind.shares_work(); }) +
         " without --pipeline, or --gossip=async",
     {{{"mode=ps", "consistency=async"},
       {"mode=ps", "consistency=bounded:2"},
       {"mode=ps", "consistency=softsync:2"},
       {"mode=ps", "consistency=easgd:4"},
       {"mode=allreduce", "gossip=async"}},
      {{"mode=ps", "consistency=sync"},
       {"mode=ps", "consistency=local-sgd:4"},
       {"mode=ps", "consistency=async", "shard=labels"},
       {"mode=ps", "consistency=async", "shuffle=shard"},
       {"mode=ps", "consistency=async", "shuffle=worker"},
       {"mode=allreduce", "gossip=async", "shard=labels"},
       {"mode=allreduce", "gossip=true"}}}},
    {"--consistency=sync", {{{"mode=ps", "consistency=sync"}}, {{"mode=ps"}, {"mode=allreduce"}, {"mode=hybrid"}}}},
    {"--consistency=local-sgd",
     {{{"mode=ps", "consistency=local-sgd:4"}}, {{"mode=ps"}, {"mode=ps", "consistency=easgd:4"}, {"mode=hybrid"}}}},
    {"--consistency=easgd", {{{"mode=ps", "consistency=easgd:4"}}, {{"mode=ps"}, {"mode=ps", "consistency=sync"}}}},
    {kStale,
     {{{"mode=ps", "consistency=bounded:2"}, {"mode=ps", "consistency=softsync:2"}, {"mode=ps", "consistency=async"}},
      {{"mode=ps", "consistency=sync"}, {"mode=ps", "consistency=easgd:4"}, {"mode=ps", "consistency=local-sgd:4"}}}},
    {"--mode=ps and several shards (--servers, --shards-per-server)",
     {{{"mode=ps", "servers=2"}, {"mode=ps", "shards-per-server=2"}},
      {{"mode=ps"}, {"servers=2"}, {"mode=hybrid", "servers=2"}}}},
    {"--consistency=async, and without --delay-compensation",
     {{{"mode=ps", "consistency=async"}},
      {{"mode=ps", "consistency=async", "delay-compensation=0.04"}, {"mode=ps", "consistency=bounded:2"}}}},
    {"--device=cpu, --pipeline-depth=0, and " + among([](const Kind& kind) { return !kind.pushes_weights; }),
     {{{"mode=ps", "device=cpu", "pipeline-depth=0"}, {"mode=ps", "consistency=sync"}},
      {{"mode=ps", "device=cuda"},
       {"mode=ps", "pipeline-depth=1"},
       {"mode=ps", "consistency=local-sgd:4"},
       {"mode=ps", "consistency=easgd:4"}}}},
    {"--overlap-forward and --consistency=async",
     {{{"mode=ps", "overlap-forward=true", "consistency=async"}},
      {{"mode=ps", "consistency=async"}, {"mode=ps", "overlap-forward=true", "consistency=bounded:2"}}}},
    {"--mode=allreduce or --mode=hybrid and --collective=auto over another --transport than shm",
     {{{"mode=hybrid", "transport=sockets"},
       {"mode=allreduce", "transport=sockets"},
       {"mode=allreduce", "transport=tcp"}},
      {{"mode=allreduce"},
       {"mode=allreduce", "transport=sockets", "collective=ring"},
       {"mode=ps", "transport=sockets"}}}},
    {"--mode=allreduce", {{{"mode=allreduce"}}, {{}, {"mode=ps"}, {"mode=hybrid"}}}},
    {"--mode=sharded", {{{"mode=sharded"}}, {{}, {"mode=allreduce"}, {"mode=ps"}}}},
    {"--mode=allreduce, --mode=sharded or --mode=hybrid",
     {{{"mode=allreduce"}, {"mode=sharded"}, {"mode=hybrid"}}, {{}, {"mode=ps"}}}},
    {"--mode=allreduce, --mode=sharded or --mode=hybrid, and without --sync-every and --gossip",
     {{{"mode=allreduce"}, {"mode=sharded"}, {"mode=hybrid"}}, {{}, {"mode=ps"}, {"mode=allreduce", "sync-every=4"}}}},
    {"--mode=allreduce, with --sync-every and without --gossip",
     {{{"mode=allreduce", "sync-every=2"}},
      {{"mode=allreduce"}, {"mode=allreduce", "gossip=true"}, {"mode=allreduce", "sync-every=2", "gossip=true"}}}},
    {"--sync-every and an --outer-momentum above 0",
     {{{"mode=allreduce", "sync-every=2", "outer-momentum=0.9"}}, {{"mode=allreduce", "sync-every=2"}}}},
    {"--mode=allreduce, and without --sync-every and --gossip",
     {{{"mode=allreduce"}}, {{"mode=ps"}, {"mode=allreduce", "sync-every=2"}, {"mode=allreduce", "gossip=true"}}}},
    {"--mode=hybrid", {{{"mode=hybrid"}}, {{}, {"mode=ps"}, {"mode=allreduce"}, {"mode=sharded"}}}},
    {"--mode=allreduce, and without --sync-every and --gossip, and --model=ncf or wide-deep with --embeddings=sparse, "
     "or "
     "with --mode=hybrid and --exchange=auto",
     {{{"mode=allreduce", "model=ncf"},
       {"mode=allreduce", "model=wide-deep", "embeddings=sparse"},
       {"mode=hybrid", "model=ncf", "exchange=auto"}},
      {{"mode=allreduce"},
       {"mode=hybrid", "model=ncf"},
       {"mode=ps", "model=ncf", "exchange=auto"},
       {"mode=allreduce", "model=ncf", "embeddings=dense"},
       {"mode=allreduce", "model=ncf", "gossip=true"},
       {"mode=ps", "model=ncf"}}}},
    {"--mode=allreduce, --mode=sharded or --mode=hybrid and a schedule that sends messages, which direct in shared "
     "memory does not",
     {{{"mode=allreduce", "collective=ring"}, {"mode=allreduce", "collective=direct", "transport=tcp"}},
      {{"mode=allreduce", "collective=direct", "transport=shm"}, {"mode=allreduce", "collective=mpi"}, {"mode=ps"}}}},
    {"--mode=sharded with --stage=3",
     {{{"mode=sharded", "stage=3"}},
      {{}, {"mode=sharded"}, {"mode=sharded", "stage=2"}, {"mode=allreduce", "stage=3"}}}},
    {"a --pipeline of 2 or more, or --mode=sharded with --stage=3",
     {{{"mode=allreduce", "pipeline=2"}, {"mode=sharded", "stage=3"}},
      {{}, {"mode=allreduce"}, {"mode=sharded", "stage=2"}, {"mode=hybrid", "pipeline=2"}}}},
    {"a --pipeline of 2 or more",
     {{{"mode=allreduce", "pipeline=2"}, {"mode=allreduce", "pipeline=4"}, {"mode=ps", "pipeline=2"}},
      {{}, {"mode=allreduce", "pipeline=1"}, {"mode=sharded", "pipeline=2"}, {"mode=hybrid", "pipeline=2"}}}},
    {"a --pipeline of 2 or more with --pipeline-schedule=interleaved",
     {{{"mode=allreduce", "pipeline=2", "pipeline-schedule=interleaved"}},
      {{},
       {"mode=allreduce", "pipeline=2"},
       {"mode=allreduce", "pipeline=2", "pipeline-schedule=zero-bubble"},
       {"mode=allreduce", "pipeline-schedule=interleaved"}}}},
    {"--mode=allreduce, --mode=sharded or --mode=hybrid, without --gossip, --pipeline, --tensor and --gather=on-demand "
     "and with another collective than nccl",
     {{{"mode=allreduce"},
       {"mode=allreduce", "collective=direct"},
       {"mode=allreduce", "collective=ring"},
       {"mode=allreduce", "collective=tree"},
       {"mode=allreduce", "collective=mpi"}},
      {{},
       {"mode=ps"},
       {"mode=allreduce", "gossip=true"},
       {"mode=allreduce", "gossip=async"},
       {"mode=allreduce", "collective=nccl"}}}},
    {"--dataset=digits, patterns, grammar, zipf-ratings or zipf-clicks",
     {{{"dataset=digits"},
       {"dataset=patterns"},
       {"dataset=grammar"},
       {"dataset=zipf-ratings"},
       {"dataset=zipf-clicks"}},
      {{"dataset=mnist"}, {"dataset=ratings"}, {"dataset=clicks"}}}},
    {"--dataset=text or grammar", {{{"dataset=text"}, {"dataset=grammar"}}, {{}, {"dataset=mnist"}}}},
    {"--dataset=grammar", {{{"dataset=grammar"}}, {{}, {"dataset=text"}}}},
    {"--dataset=patterns", {{{"dataset=patterns"}}, {{}, {"dataset=cifar10"}}}},
    {"--dataset=patterns, or PATH, your own data",
     {{{"dataset=patterns"}, {"dataset=images/"}}, {{}, {"dataset=cifar10"}}}},
    {"--mode=allreduce, --mode=sharded, --mode=ps or --mode=hybrid, --dataset=digits, mnist, fashion-mnist, cifar10, "
     "patterns or your "
     "own, and a "
     "--model that learns, not profile:NAME",
     {{{"mode=ps"},
       {"mode=allreduce", "dataset=mnist"},
       {"mode=ps", "dataset=cifar10"},
       {"mode=ps", "dataset=patterns"},
       {"mode=ps", "dataset=iris.csv"}},
      {{}, {"mode=ps", "dataset=grammar"}, {"mode=ps", "dataset=zipf-clicks"}, {"mode=ps", "model=profile:vgg16"}}}},
    {"--dataset=cifar10", {{{"dataset=cifar10"}}, {{}, {"dataset=mnist"}}}},
    {"--dataset=digits, mnist, fashion-mnist, cifar10, patterns or your own, and a --model that learns, not "
     "profile:NAME",
     {{{}, {"dataset=mnist"}, {"dataset=patterns"}, {"dataset=cifar10", "model=resnet20"}, {"dataset=images/"}},
      {{"dataset=grammar"}, {"dataset=zipf-clicks"}, {"model=profile:vgg16"}}}},
    {"--dataset=digits, mnist or fashion-mnist, and a --model that learns, not profile:NAME",
     {{{}, {"dataset=mnist"}, {"dataset=fashion-mnist"}},
      {{"dataset=cifar10"}, {"dataset=patterns"}, {"dataset=grammar"}, {"dataset=images/"}, {"model=profile:vgg16"}}}},
    {"--dataset=PATH, your own data", {{{"dataset=iris.csv"}, {"dataset=./images"}}, {{}, {"dataset=mnist"}}}},
    {"--dataset=PATH and without --test-data, where the files have no test part of their own",
     {{{"dataset=iris.csv"}, {"dataset=images/"}}, {{}, {"dataset=iris.csv", "test-data=test.csv"}}}},
    {"--dataset=clicks, zipf-ratings or zipf-clicks",
     {{{"dataset=clicks"}, {"dataset=zipf-ratings"}, {"dataset=zipf-clicks"}}, {{}, {"dataset=ratings"}}}},
    {"--model=ncf or wide-deep", {{{"model=ncf"}, {"model=wide-deep"}}, {{}, {"model=gpt"}}}},
    {"--dataset=digits, patterns, grammar, ratings, zipf-ratings, zipf-clicks or your own",
     {{{"dataset=digits"},
       {"dataset=patterns"},
       {"dataset=grammar"},
       {"dataset=ratings"},
       {"dataset=zipf-ratings"},
       {"dataset=zipf-clicks"},
       {"dataset=iris.csv"}},
      {{"dataset=mnist"}, {"dataset=clicks"}}}},
    {"--optimizer=momentum, nesterov, rmsprop or lars",
     {{{"optimizer=momentum"}, {"optimizer=nesterov"}, {"optimizer=rmsprop"}},
      {{"optimizer=sgd"}, {"optimizer=adam"}}}},
    {kStale + " and --optimizer=momentum or nesterov",
     {{{"mode=ps", "consistency=async", "optimizer=momentum"},
       {"mode=ps", "consistency=bounded:2", "optimizer=nesterov"}},
      {{"mode=ps", "consistency=async"}, {"mode=ps", "consistency=sync", "optimizer=momentum"}}}},
    {"--optimizer=adam or adamw",
     {{{"optimizer=adam"}, {"optimizer=adamw"}}, {{"optimizer=adagrad"}, {"optimizer=adamax"}}}},
    {"--optimizer=adam, adamw, adamax, radam or lamb",
     {{{"optimizer=adam"}, {"optimizer=adamw"}, {"optimizer=adamax"}, {"optimizer=radam"}}, {{"optimizer=adagrad"}}}},
    {"--optimizer=rmsprop or adadelta",
     {{{"optimizer=rmsprop"}, {"optimizer=adadelta"}}, {{"optimizer=adam"}, {"optimizer=adagrad"}}}},
    {"--optimizer=adagrad", {{{"optimizer=adagrad"}}, {{"optimizer=adam"}}}},
    {"--optimizer=lars", {{{"optimizer=lars"}}, {{"optimizer=lamb"}}}},
    {"--mode=ps and any --optimizer but lars and lamb, whose chunks are whole tensors",
     {{{"mode=ps"}}, {{"mode=allreduce"}, {"mode=ps", "optimizer=lars"}}}},
    {"--optimizer=ftrl", {{{"optimizer=ftrl"}}, {{"optimizer=sgd"}}}},
    {"--optimizer=adam, adamw, adagrad, rmsprop, adadelta, adamax, radam or lamb",
     {{{"optimizer=adam"}, {"optimizer=adamw"}, {"optimizer=adagrad"}, {"optimizer=adadelta"}},
      {{"optimizer=sgd"}, {"optimizer=ftrl"}}}},
    {"any --optimizer but ftrl, which has --l2", {{{"optimizer=sgd"}, {"optimizer=adamw"}}, {{"optimizer=ftrl"}}}},
    {"a --weight-decay above 0",
     {{{"weight-decay=0.1"}}, {{}, {"weight-decay=0"}, {"optimizer=ftrl", "weight-decay=0.1"}}}},
    {"--dataset=digits, mnist, fashion-mnist, cifar10, patterns, text, grammar or your own, and a --model that learns, "
     "not profile:NAME",
     {{{},
       {"dataset=iris.csv"},
       {"dataset=mnist"},
       {"dataset=fashion-mnist"},
       {"dataset=cifar10", "model=resnet20"},
       {"dataset=text", "model=gpt"},
       {"dataset=grammar", "model=gpt"}},
      {{"dataset=clicks", "model=wide-deep"},
       {"dataset=zipf-ratings", "model=ncf"},
       {"model=profile:resnet50", "cluster=simulated", "compute=100ms"}}}},
    {"--mode=allreduce, or a program of your own (--command) under --mode=ps",
     {{{"mode=allreduce"}, {"mode=ps", "command=train"}, {"mode=allreduce", "command=train"}}, {{"mode=ps"}}}},
    {conditions::kOwnModel.words,
     {{{}, {"model=softmax"}},
      {{"model=profile:resnet50", "cluster=simulated", "compute=100ms"}, {"mode=ps", "command=train"}}}},
    {"--target-accuracy", {{{"target-accuracy=0.9"}}, {{}, {"target-accuracy=0"}}}},
    {"--checkpoint-every", {{{"checkpoint-every=100"}}, {{}, {"resume=there"}}}},
    {"--checkpoint-every or --resume", {{{"checkpoint-every=100"}, {"resume=there"}}, {{}}}},
    {"--mode=ps and --launcher=local, without --servers=colocated",
     {{{"mode=ps"}, {"mode=ps", "launcher=local"}},
      {{"mode=allreduce"}, {"mode=ps", "launcher=mpirun"}, {"mode=ps", "servers=colocated"}}}},
    {"--mode=ps and --launcher=local, without --servers=colocated, or --elastic",
     {{{"mode=ps", "launcher=local"}, {"mode=allreduce", "elastic=true"}},
      {{"mode=allreduce"}, {"mode=ps", "launcher=mpirun"}}}},
};

std::string text_of(const Flags& flags) {
  std::string text = "with";
  for (const std::string& flag : flags) text += " --" + flag;
  return text;
}

TEST(Conditions, HoldWhereTheirWordsSay) {
  for (const OptionSpec& option : option_table()) {
    const std::string words = option.only_with();
    if (words.empty()) continue;
    ASSERT_TRUE(kPromises.contains(words))
        << option.name << " has an effect only with " << words << ": add its promise";
    const Promise& promise = kPromises.at(words);
    for (const Flags& flags : promise.holds) {
      EXPECT_TRUE(option.has_effect(run_of(flags))) << option.name << " " << text_of(flags) << ", by: " << words;
    }
    for (const Flags& flags : promise.fails) {
      EXPECT_FALSE(option.has_effect(run_of(flags))) << option.name << " " << text_of(flags) << ", by: " << words;
    }
  }
}

// Nothing is needed that the words keep to themselves. A mode may go without saying, where another flag is of one mode.
TEST(Conditions, NeedNoOptionThatTheirWordsDoNotName) {
  for (const auto& [words, promise] : kPromises) {
    for (const Flags& flags : promise.holds) {
      for (const std::string& flag : flags) {
        const std::string name = flag.substr(0, flag.find('='));
        const bool is_said =
            words.find(name) != std::string::npos || words.find("a schedule that") != std::string::npos;
        EXPECT_TRUE(is_said || name == "mode") << words << ": does not name --" << name;
      }
    }
  }
}

TEST(Conditions, AreSaidAlikeByHelpAndByTheRefusal) {
  constexpr int kOneLine = 10000;
  for (const OptionSpec& option : option_table()) {
    const std::string words = option.only_with();
    const Result<std::string> help = help_text(option.name, kOneLine);
    ASSERT_TRUE(help.ok());
    if (words.empty()) {
      EXPECT_THAT(*help, testing::Not(HasSubstr("Only with"))) << option.name;
      continue;
    }
    EXPECT_THAT(*help, HasSubstr(" Only with " + words + ".")) << option.name;
    ASSERT_TRUE(kPromises.contains(words)) << option.name;
    const Status refused = check_effect({{option.name, "1"}}, {run_of(kPromises.at(words).fails.front())});
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << option.name;
    EXPECT_THAT(refused.message(), HasSubstr(": has an effect only with " + words + "; leave it out or add that"));
  }
}

}  // namespace
}  // namespace syncopate::experiments
