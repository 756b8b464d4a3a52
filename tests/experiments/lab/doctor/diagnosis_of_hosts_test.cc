#include "experiments/lab/doctor/diagnosis_of_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "experiments/lab/doctor/doctor_text.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

ExaminedHost host(const std::string& name) {
  ExaminedHost host{.name = name};
  host.report.fingerprint = "ours";
  host.report.environment.cores = 8;
  host.limits = {.cores_online = 8, .descriptors = 1 << 20, .interface = "eth0", .mtu = 1500};
  host.clock_within_ms = 0.1;
  return host;
}

// Three hosts with nothing wrong.
Examination well() {
  Examination examination{.hosts = {host("a"), host("b"), host("c")}};
  for (const auto& [one, other] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    examination.pairs.push_back({.one = static_cast<std::size_t>(one),
                                 .other = static_cast<std::size_t>(other),
                                 .latency_us = 50,
                                 .there = 117e6,
                                 .back = 117e6});
  }
  return examination;
}

auto finds(const std::string& where, const std::string& what) {
  return ElementsAre(AllOf(Field(&Finding::where, where), Field(&Finding::what, HasSubstr(what))));
}

TEST(Doctor, FindsNothingWrongWithHostsThatAreWell) { EXPECT_THAT(findings_of(well(), "ours"), IsEmpty()); }

struct Illness {
  const char* where;
  const char* what;
  void (*strike)(Examination&);
};

const Illness kIllnesses[] = {
    {"host b", "cannot be examined: no route", [](Examination& e) { e.hosts[1].failure = "no route"; }},
    {"host c", "of other sources (theirs)", [](Examination& e) { e.hosts[2].report.fingerprint = "theirs"; }},
    {"host b", "eth0 has an MTU of 9000, and the other hosts' is 1500",
     [](Examination& e) { e.hosts[1].limits.mtu = 9000; }},
    {"host a", "may run on 2 of its 8 cores", [](Examination& e) { e.hosts[0].report.environment.cores = 2; }},
    {"host a", "gives 1.5 of 8 cores' time", [](Examination& e) { e.hosts[0].limits.core_quota = 1.5; }},
    {"host a", "at most 256 files", [](Examination& e) { e.hosts[0].limits.descriptors = 256; }},
    {"host a", "of memory may be locked", [](Examination& e) { e.hosts[0].limits.locked_bytes = 4096; }},
    {"host c", "its clock is", [](Examination& e) { e.hosts[2].clock_ms = -90'000; }},
    {"host c", "has 1 × H100, and the other hosts have no GPU",
     [](Examination& e) {
       e.hosts[2].report.machine.gpus = {{.name = "H100"}};
       e.hosts[2].report.machine.gpu_program = true;
     }},
    {"host c", "driver '1'", [](Examination& e) { e.hosts[2].limits.gpu_driver = "1"; }},
    {"a and b", "cannot reach each other (connecting: late)",
     [](Examination& e) { e.pairs[0].failure = "connecting: late"; }},
    {"b and c", "small messages pass, large ones do not",
     [](Examination& e) { e.pairs[2].failure = "large messages: late"; }},
    {"a and c", "where the median pair has 117.00 MB/s", [](Examination& e) { e.pairs[1].back = 12e6; }},
};

TEST(Doctor, NamesEachIllnessAndNoOther) {
  for (const Illness& illness : kIllnesses) {
    Examination examination = well();
    illness.strike(examination);
    EXPECT_THAT(findings_of(examination, "ours"), finds(illness.where, illness.what));
  }
}

TEST(Doctor, TellsAllInEightyColumns) {
  Examination examination = well();
  for (const Illness& illness : kIllnesses) illness.strike(examination);
  examination.hosts[0].name = "a-host-with-a-rather-long-name.example.org";
  std::istringstream lines(doctor_text(examination, findings_of(examination, "ours")));
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(columns, 80) << line;
  }
}

}  // namespace
}  // namespace syncopate::experiments
