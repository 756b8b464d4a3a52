// SYNCOPATE_CLONES, before the definition of a function: in a build for every x86-64 (SYNCOPATE_NATIVE=OFF) the
// compiler makes the function three times, for SSE2, for AVX2 and for AVX-512 (levels 1, 3 and 4 of the x86-64 psABI),
// and the loader takes the one that suits the processor it finds. In other builds the word means nothing.
//
// It is for a function whose time goes into one loop over many values. A callee is made once, for SSE2: so all that the
// loop calls is inlined by `flatten`, and must be defined in the same file or a header. A call goes through a pointer,
// which does not show beside a thousand values. All three give the same bits: such a build fuses no multiplication with
// an addition (cmake/Options.cmake), and no compiler option of ours lets sums of floats be reordered.
#pragma once

#ifdef SYNCOPATE_HAS_TARGET_CLONES
#define SYNCOPATE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), flatten))
#else
#define SYNCOPATE_CLONES
#endif
