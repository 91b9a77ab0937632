// The choice of the SHA-1 kernel that names chunks on this machine.
//
// The environment variable SILTFS_SHA1_KERNEL forces a kernel by its name.
//
// All functions are thread-safe.
#pragma once

#include <span>

#include "chunker/sha1/batch.h"
#include "store/base/result.h"

namespace siltfs {

// All kernels of this build, even if the machine cannot run them. First come the kernels that may
// be chosen automatically, in order of preference, with "evp" as the last one. Then come the
// kernels that are used only if SILTFS_SHA1_KERNEL names them.
std::span<const Sha1Kernel> Sha1Kernels();

// Whether the kernel computes the SHA-1 of known messages correctly in all its lanes. Requires a
// kernel that this machine can run.
bool Sha1KernelWorks(const Sha1Kernel& kernel);

// The kernel named `forced`. If `forced` is null or empty: the first of `kernels` that runs here
// and computes SHA-1 correctly. kInvalidArgument if the forced kernel does not run here or is
// incorrect. Requires a kernel without steps in `kernels`.
Result<const Sha1Kernel*> ChooseSha1Kernel(std::span<const Sha1Kernel> kernels, const char* forced);

// The kernel of this process, chosen at the first call. If SILTFS_SHA1_KERNEL names a kernel,
// kInvalidArgument as for ChooseSha1Kernel.
Result<const Sha1Kernel*> Sha1KernelInUse();

}  // namespace siltfs
