// A demonstration of two runs that take a second.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace syncopate::experiments {

inline const std::string kSmallDemo = R"toml(title = "Do servers help?"
question.1 = "How much faster is it"
question.2 = "with two servers?"
choice.a = "not at all"
choice.a.if = "growth < 1.1"
choice.b = "twice as fast"
choice.b.if = "growth > 1.9"
cluster = "simulated"
seconds = 5
run.speed.1 = "study --cluster=simulated --network=fifo --model=profile:resnet50 --compute=292ms --batch-size=64 --workers=4"
run.speed.2 = "--shape=2gbit+50us --modes=ps:sync --vary=servers=1,2 --steps=3 --warmup-steps=1"
why.one = "speed/ps:sync servers=1"
figure.growth = "[speed/ps:sync servers=2/samples_per_second] / [speed/ps:sync servers=1/samples_per_second]"
plot.1.kind = "lines"
plot.1.title = "Throughput over servers"
plot.1.run = "speed"
plot.1.x = "servers"
plot.1.y = "samples_per_second"
plot.1.x-label = "servers"
plot.1.y-label = "samples/s"
look = "where the line ends."
say.1 = "Two servers are {growth|x} as fast as one."
say.2.if = "growth > 1.1"
say.2.then = "They help."
say.2.else = "They do not help."
say.3.if = "[one/parts/incast/ms] > 0"
say.3.then = "One server's link costs {[one/parts/incast/ms]|0} ms a step."
exercise.1.text = "How many times as fast?"
exercise.1.key = "growth"
exercise.1.answer = "growth"
exercise.1.tolerance = 0.02
exercise.1.hint = "Divide."
exercise.2.text = "How many servers has the faster row?"
exercise.2.key = "servers"
exercise.2.answer = "pick(growth > 1, 2, 1)"
exercise.2.hint = "Look at the line."
exercise.3.text = "Which mode is it?"
exercise.3.key = "mode"
exercise.3.answer = "[speed/ps:sync servers=1/mode]"
exercise.3.hint = "It stands before servers=."
)toml";

inline std::vector<std::string> lines_of_small_demo() {
  std::vector<std::string> lines;
  std::istringstream stream(kSmallDemo);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace syncopate::experiments
