// Which bytes of the device's and of pinned memory which work has touched, and faults where two pieces of work, or two
// threads of a grid, touch the same bytes, one of them writes, and nothing orders them. That does not depend on the
// order that was drawn.
//
// Each byte has a cell with who wrote it last and who has read it since, as in FastTrack (Flanagan and Freund, 2009).
// Work of libraries says what it touches; a kernel's loads and stores are seen one by one, since .cu files are compiled
// with the compiler's calls for its thread sanitizer, which are answered here.
#pragma once

#include <cstddef>

namespace software_gpu {

// Memory that is watched. All of it with the lock.
void watch_device(const char* arena, std::size_t bytes);
void watch_pinned(const void* memory, std::size_t bytes);
void forget_pinned(const void* memory);
void watch_shared(const char* begin, const char* end);
// Nobody has touched this part of the device's memory.
void forget_device(const void* memory, std::size_t bytes);

// What the piece that runs (order.h) touches; its beginning and end are told, too.
void begin_accesses();
void end_accesses();
void reads(const void* memory, std::size_t bytes);
void writes(const void* memory, std::size_t bytes);

// The thread of a grid that runs from now on. Threads of a block are ordered by its barriers, those of a warp by its
// meetings too; those of different blocks are not.
struct Place {
  unsigned block = 0, thread = 0;
  unsigned barriers = 0, meetings = 0;  // behind it
};
void run_thread(const Place& place);
// atomicInc, by the thread that runs. What a block did before a barrier and then an atomic operation is ordered before
// what another does behind one on the same word and then a barrier. That both need fences, too, is not checked.
unsigned increment(unsigned* word, unsigned most);

}  // namespace software_gpu
