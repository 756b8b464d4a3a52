// A network of this program's own: a loopback interface and abstract names that nobody else of the machine shares. What
// the program starts has it, too, so that all that /proc/net shows there belongs to its own runs.
#pragma once

namespace syncopate::testing_support {

// Moves this program there, once; to be called before it has threads or children. Returns whether it is there: the
// kernel may refuse, above all to those who are not root.
bool enter_private_network();
// Whether it is there, and may still become any user.
bool can_become_another_user();

}  // namespace syncopate::testing_support
