// Which compression functions this machine names chunks with.
//
// The environment variable SILTFS_SHA1_KERNEL forces a kernel by its name.
//
// All functions are thread-safe.
#pragma once

#include <span>

#include "chunker/sha1/batch.h"
#include "store/base/result.h"

namespace siltfs {

// All that this build has, whether or not the machine can run them: those that are chosen by
// themselves in the order of preference, down to "evp", and then those that have to be forced.
std::span<const Sha1Kernel> Sha1Kernels();

// Whether the kernel names known messages rightly, in all its lanes. Requires that it runs here.
bool Sha1KernelWorks(const Sha1Kernel& kernel);

// The first of `kernels` that runs here and works: one that gives a wrong SHA-1 is refused. Or the
// one of the name `forced`, unless that is null or empty; kInvalidArgument if it does not run here
// or does not work. Requires that a kernel without steps is among them.
Result<const Sha1Kernel*> ChooseSha1Kernel(std::span<const Sha1Kernel> kernels, const char* forced);

// The choice of this process, made when first asked for.
Result<const Sha1Kernel*> Sha1KernelInUse();

}  // namespace siltfs
