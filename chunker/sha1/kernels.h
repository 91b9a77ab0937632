// Which compression functions this machine names chunks with.
//
// The environment variable SILTFS_SHA1_KERNEL forces a kernel by its name; a name that is unknown,
// or that of a kernel that this machine cannot run, is as if it were not set.
//
// All functions are thread-safe.
#pragma once

#include <span>

#include "chunker/sha1/batch.h"

namespace siltfs {

// All that this build has, whether or not the machine can run them: those that are chosen by
// themselves in the order of preference, down to "evp", and then those that have to be forced.
std::span<const Sha1Kernel> Sha1Kernels();

// Whether the kernel names known messages rightly, in all its lanes. Requires that it runs here.
bool Sha1KernelWorks(const Sha1Kernel& kernel);

// The kernel of the name `forced` (which may be null), otherwise the first of `kernels`, that runs
// here and works: one that gives a wrong SHA-1 is refused. Requires that a kernel without steps is
// among them.
const Sha1Kernel& ChooseSha1Kernel(std::span<const Sha1Kernel> kernels, const char* forced);

// The choice of this process, made when first asked for.
const Sha1Kernel& Sha1KernelInUse();
const char* Sha1KernelName();

}  // namespace siltfs
