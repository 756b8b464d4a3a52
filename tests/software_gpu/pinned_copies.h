// Copies from and to pinned memory that may be in flight, and what the host does to their ends meanwhile. Its loads and
// stores are not seen, but their traces are: a source must stay as it was when its copy was given to a stream, until
// the host has waited for the copy. (Functions of the host's that fill a source, in order of the stream, are not
// modelled.)
#pragma once

#include <cstddef>
#include <memory>

namespace software_gpu {

struct PinnedCopy;

// Called when a copy is given to a stream, or its graph is launched. Finds a fault if the host has changed the source
// of an earlier copy for which it has not waited. The target of a copy to the host is spoilt, so that nobody counts on
// it before the copy is done, unless a copy that is still to be done reads it.
std::shared_ptr<PinnedCopy> begin_upload(const void* from, std::size_t bytes);
std::shared_ptr<PinnedCopy> begin_download(void* to, std::size_t bytes);
// Called by the copy's work, before it is done. Finds a fault if the host has changed the source.
void carry_out(const std::shared_ptr<PinnedCopy>& copy);

}  // namespace software_gpu
